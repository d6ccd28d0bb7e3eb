// What the exporters say is what Prometheus takes, and every query of the dashboard finds a series.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// Body of GET http://127.0.0.1:PORT/path; empty when nobody answers.
std::string Get(const std::string& address, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  const sockaddr_in to = Loopback(std::stoi(address.substr(address.rfind(':') + 1)));
  std::string response;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
      char buffer[65536];
      for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) response.append(buffer, n);
    }
  }
  close(fd);
  const size_t body = response.find("\r\n\r\n");
  return body == std::string::npos ? "" : response.substr(body + 4);
}

std::string UrlEncoded(const std::string& text) {
  std::string out;
  char hex[4];
  for (const unsigned char c : text) {
    if (isalnum(c)) {
      out += static_cast<char>(c);
    } else {
      std::snprintf(hex, sizeof(hex), "%%%02X", c);
      out += hex;
    }
  }
  return out;
}

class Prometheus {
 public:
  Prometheus(const fs::path& folder, const std::vector<std::string>& targets)
      : address_("127.0.0.1:" + std::to_string(FreePort())) {
    std::string config =
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: mega\n"
        "    static_configs:\n      - targets: [";
    for (const std::string& target : targets) config += "'" + target + "',";
    config += "]\n";
    fs::create_directories(folder);
    WriteFile(folder / "prometheus.yml", config);
    process_ = std::make_unique<Process>(Process::Options{
        .argv = {"/usr/bin/prometheus", "--config.file=" + (folder / "prometheus.yml").string(),
                 "--storage.tsdb.path=" + (folder / "data").string(),
                 "--web.listen-address=" + address_},
        .output = folder / "log"});
  }
  // Series found by an instant query; -1 when the query is wrong.
  int64_t Query(const std::string& expression) const {
    const json answer =
        json::parse(Get(address_, "/api/v1/query?query=" + UrlEncoded(expression)), nullptr, false);
    if (!answer.is_object() || answer.value("status", "") != "success") return -1;
    return static_cast<int64_t>(answer["data"]["result"].size());
  }
  std::string Log() const { return process_->Output(); }

 private:
  const std::string address_;
  std::unique_ptr<Process> process_;
};

TEST(Monitoring, PromtoolAcceptsBothExporters) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "seen", 2, 5000));
  ASSERT_TRUE(cluster.WaitForStep(uid, 3, Seconds(60)));
  for (const std::string& address :
       {cluster.metrics_address(), cluster.worker_metrics_address("a")}) {
    const std::string text = Get(address, "/metrics");
    ASSERT_NE(text.find("mega_"), std::string::npos) << address;
    WriteFile(cluster.path() / "metrics", text);
    const Result check = RunProgram(
        {"/bin/sh", "-c", "promtool check metrics < " + (cluster.path() / "metrics").string()});
    EXPECT_EQ(check.code, 0) << check.out;
    EXPECT_EQ(check.out, "");
  }
  cluster.Ctl({"cancel", uid});
}

TEST(Monitoring, EveryQueryOfTheJobDashboardFindsSeriesOfALiveRun) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const Prometheus prometheus(cluster.path() / "prometheus",
                              {cluster.metrics_address(), cluster.worker_metrics_address("a")});
  std::string job = TinyJob(cluster.path(), "drawn", 2, 1000000);
  job.replace(job.find("eval_steps: 2"), 13, "eval_steps: 2, eval_interval: 50");
  const std::string uid = cluster.Submit(job + "  checkpoint: {interval_steps: 50}\n");
  ASSERT_TRUE(cluster.WaitForStep(uid, 120, Seconds(90)));
  const json dashboard =
      json::parse(ReadFile(std::string(MEGA_SOURCE_DIR) + "/deploy/grafana/job.json"));
  int queries = 0;
  for (const json& panel : dashboard["panels"]) {
    for (const json& target : panel["targets"]) {
      std::string query = target["expr"];
      for (size_t at; (at = query.find("$training_job")) != std::string::npos;) {
        query.replace(at, 13, "drawn");
      }
      EXPECT_TRUE(Eventually([&] { return prometheus.Query(query) > 0; }, Seconds(30)))
          << panel["title"] << ": " << query;
      ++queries;
    }
  }
  EXPECT_GE(queries, 12);
  EXPECT_EQ(prometheus.Query("mega_no_such_series"), 0);
  cluster.Ctl({"cancel", uid});
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_CANCELLED", Seconds(30)));
}

}  // namespace
}  // namespace mega::e2e
