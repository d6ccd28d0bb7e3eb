# Language, warnings, sanitizers, compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Frame pointers make every profile and every sanitizer report readable; they cost under 1 %.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # else ccache passes by what uses precompiled headers
endif()
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
                    -fno-omit-frame-pointer)
# -O3 buys nothing here (the kernels vectorise by hand) and costs a fifth of the build.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wthread-safety -Werror=thread-safety)
endif()

if(MEGA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(MEGA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(NOT MEGA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "MEGA_SANITIZE is '${MEGA_SANITIZE}'; choose address, thread or nothing")
endif()
# The fuzzer is led by what its inputs reach, so what it tests must say so, not its own file alone.
if(MEGA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# Loops run serially under TSan: libgomp's barriers are not instrumented and would give false races.
# And under clang: its OpenMP runtime beside the libgomp that oneDNN brings would be two teams.
if(MEGA_SANITIZE STREQUAL "thread" OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(MEGA_OPENMP OFF)
else()
  set(MEGA_OPENMP ON)
endif()

# UCX hooks mmap and madvise as soon as it is linked, and that crashes threads that end under TSan.
# Such a build has the communicator over threads only.
if(MEGA_SANITIZE STREQUAL "thread")
  set(MEGA_UCX OFF)
endif()

# CI builds the same tree in another folder: paths are made relative so that the cache still hits.
# A precompiled header is a third of a gigabyte: without INODECACHE its bytes are hashed for every file.
find_program(MEGA_CCACHE ccache)
if(MEGA_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true
      CCACHE_SLOPPINESS=time_macros,pch_defines CCACHE_INODECACHE=true
      ${MEGA_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
