// Only the headers that CMakeLists.txt precompiles here are of interest.
