// A cluster whose parts know each other by their certificates, from `megactl pki init` to a trained
// model.
#include <csignal>

#include "gmock/gmock.h"
#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Flags(const std::filesystem::path& pki, const std::string& who) {
  return {"--tls-ca",           pki / "authority.crt", "--tls-cert",
          pki / (who + ".crt"), "--tls-key",           pki / (who + ".key")};
}

std::vector<std::string> With(std::vector<std::string> flags, std::vector<std::string> more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(Security, AJobRunsWhereEverybodyShowsACertificate) {
  Cluster cluster;
  cluster.coordinator().Signal(SIGTERM);
  ASSERT_TRUE(cluster.coordinator().Wait(Seconds(10)));
  const std::filesystem::path pki = cluster.path() / "pki";
  const Result init = cluster.Ctl({"pki", "init", pki});
  ASSERT_EQ(init.code, 0) << init.out;
  for (const char* node : {"n1", "n2"}) {
    const Result issued = cluster.Ctl({"pki", "issue", pki, "--node", node});
    ASSERT_EQ(issued.code, 0) << issued.out;
  }
  const auto secret = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  for (const char* key : {"authority.key", "coordinator.key", "node-n1.key", "user-admin.key"}) {
    EXPECT_EQ(std::filesystem::status(pki / key).permissions() & secret,
              std::filesystem::perms::none)
        << key;
  }
  const Result again = cluster.Ctl({"pki", "init", pki});
  EXPECT_EQ(again.code, 4) << "an authority is never written over: " << again.out;
  // A coordinator's certificate for other hosts is good for those of its own machine, too.
  for (const char* file : {"coordinator.key", "coordinator.crt"}) {
    std::filesystem::remove(pki / file);
  }
  ASSERT_EQ(cluster.Ctl({"pki", "issue", pki, "--host", "head.example.org"}).code, 0);

  cluster.StartCoordinator(Flags(pki, "coordinator"));
  const Result plain = cluster.Ctl({"nodes"});
  EXPECT_EQ(plain.code, 6) << plain.out;
  EXPECT_THAT(plain.out, HasSubstr("--tls-ca"));
  cluster.ShowCertificate(Flags(pki, "node-n1"));
  const Result of_node = cluster.Ctl({"nodes"});
  EXPECT_EQ(of_node.code, 2) << of_node.out;
  EXPECT_THAT(of_node.out, HasSubstr("is of node 'n1'"));
  cluster.ShowCertificate(Flags(pki, "user-admin"));
  EXPECT_THAT(cluster.Ctl({"whoami"}).out, HasSubstr("user:admin"));

  const Result stranger =
      RunProgram(With({Binary("mega-worker"), "--coordinator", cluster.address(), "--node", "n3",
                       "--state-dir", cluster.path() / "worker-n3"},
                      Flags(pki, "node-n2")));
  EXPECT_NE(stranger.code, 0);
  EXPECT_THAT(stranger.out, HasSubstr("is of node 'n2', and node 'n3' is needed here"));

  cluster.StartWorker("n1", 1, Flags(pki, "node-n1"));
  cluster.StartWorker("n2", 1, Flags(pki, "node-n2"));
  const std::string uid =
      cluster.Submit(TinyJob(cluster.path(), "secret", 2, 10) +
                     "  checkpoint: {directory: " + (cluster.path() / "saved").string() +
                     "}\n  resources: {nodes: {desired: 2}}\n");
  ASSERT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(60)))
      << cluster.Ctl({"describe", uid}).out;
  EXPECT_EQ(cluster.LastStep(uid), 10);
  EXPECT_EQ(cluster.Ctl({"logs", uid}).code, 0);
}

}  // namespace
}  // namespace mega::e2e
