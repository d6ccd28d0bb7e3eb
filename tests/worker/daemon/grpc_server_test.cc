// The port that workers and coordinators have in common.
#include "base/grpc_server/grpc_server.h"

#include <filesystem>
#include <map>

#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "tests/base/metrics/http_client.h"

namespace mega {
namespace {

using ::testing::Contains;
using testing::HttpClient;
using ::testing::Pair;
constexpr std::chrono::seconds kPatience{20};

std::unique_ptr<GrpcServer> Start(const GrpcServer::Bounds& bounds) {
  grpc::ServerBuilder builder;
  auto server =
      GrpcServer::Start(builder, {"127.0.0.1", 0}, grpc::InsecureServerCredentials(), bounds);
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  return *std::move(server);
}

// What a server of HTTP/2 says first: the settings of the connection, by number.
std::map<int, uint32_t> ReadSettings(HttpClient& client) {
  constexpr size_t kHeader = 9;
  constexpr size_t kSetting = 6;
  const auto number = [](std::string_view bytes) {
    uint32_t value = 0;
    for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  };
  std::map<int, uint32_t> settings;
  const auto header = client.Read(kHeader, kPatience);
  if (!header) return settings;
  const auto body = client.Read(number(header->substr(0, 3)), kPatience);
  for (size_t at = 0; body && at + kSetting <= body->size(); at += kSetting) {
    settings[static_cast<int>(number(body->substr(at, 2)))] = number(body->substr(at + 2, 4));
  }
  return settings;
}

// Each call may hold a message that is never finished.
TEST(GrpcServer, AConnectionCarriesNoMoreCallsThanItMay) {
  constexpr int kMaxConcurrentStreams = 3;  // RFC 9113, 6.5.2
  const auto server =
      Start({.connections = 1000, .calls_per_connection = 17, .unparsed_bytes = 1 << 20});
  HttpClient client(server->address().port);
  EXPECT_THAT(ReadSettings(client), Contains(Pair(kMaxConcurrentStreams, 17u)));
}

TEST(GrpcServer, ConnectionsBeyondTheBoundAreClosed) {
  const int64_t open = std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                     std::filesystem::directory_iterator());
  const auto server =
      Start({.connections = open + 40, .calls_per_connection = 1, .unparsed_bytes = 1 << 20});
  HttpClient first(server->address().port);
  EXPECT_FALSE(ReadSettings(first).empty());
  std::vector<std::unique_ptr<HttpClient>> more;  // each takes two descriptors of this process
  for (int i = 0; i < 40; ++i) {
    more.push_back(std::make_unique<HttpClient>(server->address().port));
  }
  EXPECT_EQ(more.back()->ReadToEnd(kPatience), "");
}

}  // namespace
}  // namespace mega
