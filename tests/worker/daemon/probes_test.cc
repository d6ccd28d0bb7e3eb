// What a node finds wrong with itself, from a root folder of the test's own.
#include "worker/daemon/probes/probes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class Root : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + path).parent_path());
    std::ofstream(folder_ + path) << text;
  }
  ProbeInputs inputs(std::vector<std::string> paths = {}) const {
    return {.root = folder_, .paths = std::move(paths)};
  }
  const mega::testing::TempDir dir_;
  const std::string folder_ = dir_.path();
};

TEST_F(Root, MemoryThatIsNearlyGoneIsAnErrorAndPressureAWarning) {
  Write("/proc/meminfo", "MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: 500000 kB\n");
  EXPECT_THAT(CheckMemory(inputs()).findings, IsEmpty());
  Write("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 40000 kB\n");
  EXPECT_EQ(CheckMemory(inputs()).findings.at(0).severity(), v1::SEVERITY_WARNING);
  Write("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 4000 kB\n");
  EXPECT_EQ(CheckMemory(inputs()).findings.at(0).severity(), v1::SEVERITY_ERROR);
  Write("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n");
  Write("/proc/pressure/memory",
        "some avg10=9 avg60=99.00 avg300=0 total=0\nfull avg10=0 avg60=45.50 avg300=0 total=0\n");
  EXPECT_THAT(CheckMemory(inputs()).findings.at(0).message(), HasSubstr("46 %"));
  Write("/proc/meminfo", "nonsense\nMemTotal:\nMemAvailable: x kB\n");
  Write("/proc/pressure/memory", "full avg60=\n");
  EXPECT_THAT(CheckMemory(inputs()).findings, IsEmpty());
}

TEST_F(Root, AFolderThatCannotBeReadIsAnErrorAndOneToComeIsNot) {
  fs::create_directories(folder_ + "/state");
  EXPECT_THAT(CheckMounts(inputs({folder_ + "/state", folder_ + "/state/none/yet"})).findings,
              IsEmpty());
  Write("/file", "no folder");
  EXPECT_THAT(CheckMounts(inputs({folder_ + "/file"})).findings.at(0).message(),
              HasSubstr("Not a directory"));
}

TEST_F(Root, ProcessesInDStateAreNamedWhenTheyStayThere) {
  const std::string rest = " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ";
  Write("/proc/7/stat", "7 (a) b) D" + rest + "4711 0 0\n");
  Write("/proc/8/stat", "8 (fine) S" + rest + "1 0 0\n");
  Write("/proc/9/stat", "9 (short) D 1\n");
  Write("/proc/self/stat", "7 (x) D" + rest + "1 0 0\n");
  const ProbeAnswer answer = CheckBlocked(inputs());
  EXPECT_THAT(answer.samples, ElementsAre(Pair("7/a)_b", 4711)));
  Judge judge;
  judge.Answered("d_state", answer);
  EXPECT_THAT(judge.Findings(), IsEmpty());
  judge.Answered("d_state", answer);
  ASSERT_THAT(judge.Findings(), SizeIs(1));
  EXPECT_THAT(judge.Findings()[0].message(), HasSubstr("7/a)_b"));
  judge.Answered("d_state", {.samples = {{"7/a)_b", 4712}}});  // another process of that number
  EXPECT_THAT(judge.Findings(), IsEmpty());
}

TEST_F(Root, ErrorsOfANetworkInterfaceCountFromRunToRun) {
  Write("/sys/class/net/eth0/statistics/rx_errors", "100\n");
  Write("/sys/class/net/eth0/statistics/tx_errors", "5\n");
  Write("/sys/class/net/lo/statistics/rx_errors", "9\n");
  const ProbeAnswer before = CheckNic(inputs());
  EXPECT_THAT(before.samples, ElementsAre(Pair("eth0", 105)));
  Judge judge;
  judge.Answered("nic", before);
  EXPECT_THAT(judge.Findings(), IsEmpty());
  Write("/sys/class/net/eth0/statistics/rx_errors", "150\n");
  judge.Answered("nic", CheckNic(inputs()));
  ASSERT_THAT(judge.Findings(), SizeIs(1));
  EXPECT_THAT(judge.Findings()[0].message(), HasSubstr("eth0 has 50 more errors"));
  judge.Answered("nic", CheckNic(inputs()));
  EXPECT_THAT(judge.Findings(), IsEmpty());
}

TEST(Judge, AProbeWithoutAnAnswerIsAWarningAndTheSecondTimeAnError) {
  Judge judge;
  judge.GaveNone("mount", absl::Seconds(10));
  EXPECT_EQ(judge.Findings().at(0).severity(), v1::SEVERITY_WARNING);
  judge.GaveNone("mount", absl::Seconds(10));
  EXPECT_EQ(judge.Findings().at(0).severity(), v1::SEVERITY_ERROR);
  judge.Answered("mount", {});
  EXPECT_THAT(judge.Findings(), IsEmpty());
}

// Case: out of processes, the node lost its findings and took new ranks.
TEST(Judge, AProbeThatCannotBeStartedTakesNoFindingAwayAndTheSecondTimeIsOne) {
  Judge judge;
  judge.NotAsked("disk", "no more processes");
  EXPECT_THAT(judge.Findings(), IsEmpty());
  v1::Finding full;
  full.set_severity(v1::SEVERITY_WARNING);
  full.set_message("the disk is full");
  judge.Answered("disk", {.findings = {full}});
  judge.NotAsked("disk", "no more processes");
  EXPECT_EQ(judge.Findings().at(0).message(), "the disk is full");
  judge.NotAsked("disk", "no more processes");
  EXPECT_EQ(judge.Findings().at(0).severity(), v1::SEVERITY_ERROR);
  EXPECT_THAT(judge.Findings().at(0).message(), HasSubstr("twice and more: no more processes"));
  full.set_severity(v1::SEVERITY_ERROR);
  judge.Answered("disk", {.findings = {full}});
  for (int i = 0; i < 3; ++i) judge.NotAsked("disk", "no more processes");
  EXPECT_EQ(judge.Findings().at(0).message(), "the disk is full");
  judge.Answered("disk", {});
  EXPECT_THAT(judge.Findings(), IsEmpty());
}

TEST(Judge, AStepOfTheWallClockIsHeldAgainstTheNodeForAWhile) {
  Judge judge;
  const absl::Time wall = absl::FromUnixSeconds(1'700'000'000);
  judge.SeeClocks(wall, absl::Seconds(100));
  judge.SeeClocks(wall + absl::Seconds(30.1), absl::Seconds(130));
  EXPECT_THAT(judge.Findings(), IsEmpty());
  judge.SeeClocks(wall + absl::Seconds(3660), absl::Seconds(160));
  ASSERT_THAT(judge.Findings(), SizeIs(1));
  EXPECT_THAT(judge.Findings()[0].message(), HasSubstr("set by 59m59.9s"));
  judge.SeeClocks(wall + absl::Seconds(4360), absl::Seconds(860));
  EXPECT_THAT(judge.Findings(), IsEmpty());
}

TEST(ProbeAnswer, ComesBackFromItsTextAndNonsenseIsLeftOut) {
  ProbeAnswer answer{.samples = {{"eth0", -5}}};
  answer.findings.emplace_back().set_severity(v1::SEVERITY_ERROR);
  answer.findings[0].set_message("two\nlines of it");
  const ProbeAnswer back = FromText("what?\nfinding 99 x\nsample y z\n\n" + ToText(answer));
  ASSERT_THAT(back.findings, SizeIs(1));
  EXPECT_EQ(back.findings[0].message(), "two lines of it");
  EXPECT_EQ(back.findings[0].severity(), v1::SEVERITY_ERROR);
  EXPECT_EQ(back.samples, answer.samples);
}

class Running : public Root {
 protected:
  void Start(absl::Duration deadline,
             std::vector<std::string> program = {MEGA_BIN_DIR "/mega-worker", "probe"}) {
    probes_ = std::make_unique<Probes>(Probes::Options{.program = std::move(program),
                                                       .inputs = inputs({folder_}),
                                                       .first_after = absl::ZeroDuration(),
                                                       .every = absl::Milliseconds(10),
                                                       .deadline = deadline},
                                       clock_, [this](const std::vector<v1::Finding>& findings) {
                                         MutexLock lock(mu_);
                                         told_ = findings;
                                         changed_.NotifyAll();
                                       });
  }
  // What was told of the check, once it is as bad as that.
  std::string Await(const std::string& check, v1::Severity severity) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    MutexLock lock(mu_);
    while (true) {
      for (const v1::Finding& finding : told_) {
        if (finding.check() == check && finding.severity() == severity) return finding.message();
      }
      if (!changed_.WaitUntil(mu_, until) && std::chrono::steady_clock::now() >= until) return "";
    }
  }
  SystemClock clock_;
  Mutex mu_;
  CondVar changed_;
  std::vector<v1::Finding> told_ MEGA_GUARDED_BY(mu_);
  std::unique_ptr<Probes> probes_;
};

TEST_F(Running, AProbeThatHangsIsKilledAtItsDeadlineAndBecomesAFinding) {
  fs::create_directories(folder_ + "/proc");
  ASSERT_EQ(mkfifo((folder_ + "/proc/meminfo").c_str(), 0600), 0);  // to open it never ends
  Start(absl::Seconds(2));
  EXPECT_THAT(Await("memory", v1::SEVERITY_ERROR), HasSubstr("no answer within 2s twice"));
}

TEST_F(Running, WhatAChildFindsIsTold) {
  Write("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 4000 kB\n");
  Start(absl::Seconds(30));
  EXPECT_THAT(Await("memory", v1::SEVERITY_ERROR), HasSubstr("are available"));
  EXPECT_THAT(probes_->findings(), ::testing::Not(IsEmpty()));
}

TEST_F(Running, WhatWasFoundStandsWhenItsProbeCannotBeStarted) {
  const std::string program = folder_ + "/probe";
  Write("/probe", "#!/bin/sh\n[ $1 != disk ] || echo finding 2 the disk is nearly full\n");
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  Start(absl::Seconds(30), {program});
  EXPECT_EQ(Await("disk", v1::SEVERITY_WARNING), "the disk is nearly full");
  unlink(program.c_str());
  EXPECT_THAT(Await("disk", v1::SEVERITY_ERROR), HasSubstr("could not be started twice"));
}

}  // namespace
}  // namespace mega::daemon
