// A resolver that knows what a test needs and asks no network: a test binary that includes this has
// a getaddrinfo of its own.
#pragma once

#include <dlfcn.h>
#include <netdb.h>

#include <string_view>

namespace mega::testing {

inline constexpr char kHostNamedTwice[] = "twice.test";  // 127.0.0.1, and 127.0.0.1
inline constexpr char kUnknownHost[] = "unknown.test";

}  // namespace mega::testing

extern "C" inline __attribute__((used)) int getaddrinfo(const char* host, const char* service,
                                                        const addrinfo* hints, addrinfo** list) {
  using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<GetAddrInfo>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = host == nullptr ? "" : host;
  if (name == mega::testing::kUnknownHost) return EAI_NONAME;
  if (name != mega::testing::kHostNamedTwice) return real(host, service, hints, list);
  if (const int error = real("127.0.0.1", service, hints, list); error != 0) return error;
  return real("127.0.0.1", service, hints, &(*list)->ai_next);
}
