#include "base/metrics/http_server.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/metrics/http_client.h"

namespace mega {
namespace {

using mega::testing::HttpClient;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

std::unique_ptr<HttpServer> StartServer(HttpServer::Limits limits = HttpServer::Limits(),
                                        std::string body = "hello\n") {
  auto server = HttpServer::Start(
      {"127.0.0.1", 0},
      [body = std::move(body)](std::string_view path) -> HttpServer::Response {
        if (path != "/here") return {.code = 404, .body = "it is at /here\n"};
        return {.body = body};
      },
      limits);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::optional<std::string> Ask(const HttpServer& server, std::string_view request) {
  HttpClient client(server.address().port);
  EXPECT_TRUE(client.Send(request));
  return client.ReadToEnd(seconds(20));
}

TEST(HttpServer, AnswersAndClosesOneRequestAConnection) {
  const auto server = StartServer();
  EXPECT_THAT(Ask(*server, "GET /here?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"),
              Optional(AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                             HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"),
                             HasSubstr("Content-Length: 6\r\n"), HasSubstr("Connection: close\r\n"),
                             EndsWith("\r\n\r\nhello\n"))));
  EXPECT_THAT(Ask(*server, "HEAD /here HTTP/1.0\r\n\r\n"),
              Optional(AllOf(HasSubstr("Content-Length: 6\r\n"), EndsWith("\r\n\r\n"))));
  EXPECT_THAT(Ask(*server, "GET /there HTTP/1.1\n\n"), Optional(StartsWith("HTTP/1.1 404 ")));
  EXPECT_THAT(Ask(*server, "POST /here HTTP/1.1\r\n\r\n"), Optional(StartsWith("HTTP/1.1 405 ")));
  for (const char* bad :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /here\r\n\r\n", "GET /here SPDY\r\n\r\n"}) {
    EXPECT_THAT(Ask(*server, bad), Optional(StartsWith("HTTP/1.1 400 "))) << bad;
  }
}

TEST(HttpServer, ARequestThatComesInPiecesIsAnswered) {
  const auto server = StartServer();
  HttpClient client(server->address().port);
  for (const char byte : std::string("GET /here HTTP/1.1\r\n\r\n")) {
    ASSERT_TRUE(client.Send(std::string_view(&byte, 1)));
  }
  EXPECT_THAT(client.ReadToEnd(seconds(20)), Optional(EndsWith("hello\n")));
}

TEST(HttpServer, ALargeAnswerReachesASlowReaderWhole) {
  const std::string body(8 << 20, 'x');
  const auto server = StartServer(HttpServer::Limits(), body);
  HttpClient client(server->address().port, /*receive_bytes=*/4096);
  ASSERT_TRUE(client.Send("GET /here HTTP/1.1\r\n\r\n"));
  const auto answer = client.ReadToEnd(seconds(20));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ends_with(body));
}

TEST(HttpServer, ARequestThatGrowsForEverIsCutShort) {
  const auto server = StartServer();
  HttpClient client(server->address().port);
  ASSERT_TRUE(client.Send("GET /here HTTP/1.1\r\nX: " + std::string(20'000, 'x')));
  EXPECT_THAT(client.ReadToEnd(seconds(20)), Optional(HasSubstr("too long")));
}

TEST(HttpServer, WhoIsTooSlowIsCut) {
  const auto silent = StartServer({.request = milliseconds(50)});
  HttpClient half_open(silent->address().port);
  HttpClient half_asked(silent->address().port);
  ASSERT_TRUE(half_asked.Send("GET /here HTTP/1.1\r\n"));
  EXPECT_THAT(half_open.ReadToEnd(seconds(20)), Optional(std::string()));
  EXPECT_THAT(half_asked.ReadToEnd(seconds(20)), Optional(std::string()));

  constexpr size_t kLarge = 32 << 20;
  const auto large = StartServer({.request = milliseconds(200), .response = milliseconds(100)},
                                 std::string(kLarge, 'x'));
  HttpClient reads_nothing(large->address().port, /*receive_bytes=*/4096);
  ASSERT_TRUE(reads_nothing.Send("GET /here HTTP/1.1\r\n\r\n"));
  // When this one is cut, the time of the first has long been over.
  EXPECT_TRUE(HttpClient(large->address().port).ReadToEnd(seconds(20)).has_value());
  const auto rest = reads_nothing.ReadToEnd(seconds(20));
  ASSERT_TRUE(rest.has_value());
  EXPECT_LT(rest->size(), kLarge);
}

// Case: 225 half-open connections took /metrics away.
TEST(HttpServer, HundredsOfHalfOpenAndSlowConnectionsTakeNothingAway) {
  const auto server = StartServer(HttpServer::Limits(), std::string(1 << 20, 'x'));
  std::vector<std::unique_ptr<HttpClient>> rude;
  for (int i = 0; i < 400; ++i) {
    rude.push_back(std::make_unique<HttpClient>(server->address().port, /*receive_bytes=*/4096));
    if (i % 4 == 1) rude.back()->Send("G");                           // goes on byte by byte
    if (i % 4 == 2) rude.back()->Send("GET /here HTTP/1.1\r\n");      // no end
    if (i % 4 == 3) rude.back()->Send("GET /here HTTP/1.1\r\n\r\n");  // reads nothing
  }
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 1; i < rude.size(); i += 4) rude[i]->Send("E");
    HttpClient client(server->address().port);
    ASSERT_TRUE(client.Send("GET /here HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(client.ReadToEnd(seconds(1)), Optional(StartsWith("HTTP/1.1 200 OK")));
  }
}

TEST(HttpServer, EndsAtOnceWhoeverIsConnected) {
  auto server = StartServer();
  HttpClient half_open(server->address().port);
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(1));
  EXPECT_THAT(half_open.ReadToEnd(seconds(20)), Optional(std::string()));
}

}  // namespace
}  // namespace mega
