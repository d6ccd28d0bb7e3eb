// What doctor makes of a cluster and a machine, and what goodput says of a ledger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/version.h"
#include "nlohmann/json.hpp"
#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// {name: check}
nlohmann::json Checks(const std::string& out) {
  nlohmann::json checks = nlohmann::json::object();
  const nlohmann::json answer = nlohmann::json::parse(out);
  for (const nlohmann::json& check : answer["checks"]) {
    checks[check["name"].get<std::string>()] = check;
  }
  return checks;
}

TEST_F(CommandsTest, DoctorNamesEachThingAndTheWayOut) {
  coordinator_.nodes = [](const v1::ListNodesRequest&, v1::ListNodesResponse* response) {
    for (const char* name : {"well", "gone", "ill"}) {
      v1::Node& node = *response->add_nodes();
      node.set_name(name);
      node.set_state(v1::NODE_STATE_READY);
      node.set_version("9.9.9");
      *node.mutable_last_heartbeat() = ToProto(absl::Now() + absl::Minutes(5));
    }
    response->mutable_nodes(1)->set_state(v1::NODE_STATE_LOST);
    v1::Finding& finding = *response->mutable_nodes(2)->add_findings();
    finding.set_check("disk");
    finding.set_severity(v1::SEVERITY_ERROR);
    finding.set_message("1 GiB is free");
    return grpc::Status::OK;
  };
  const Result json = Run({"doctor", "-o", "json"});
  const nlohmann::json checks = Checks(json.out);
  EXPECT_EQ(checks["coordinator"]["verdict"], "ok") << json.out;
  EXPECT_EQ(checks["versions"]["verdict"], "warn") << json.out;
  EXPECT_EQ(checks["nodes"]["verdict"], "warn");
  EXPECT_THAT(checks["nodes"]["finding"].get<std::string>(), HasSubstr("lost: gone"));
  EXPECT_EQ(checks["node ill"]["verdict"], "fail");
  EXPECT_EQ(checks["clock"]["verdict"], "warn");
  EXPECT_THAT(checks["clock"]["finding"].get<std::string>(), HasSubstr("behind the coordinator"));
  EXPECT_EQ(nlohmann::json::parse(json.out)["ok"], false);
  EXPECT_EQ(json.code, 1);

  const Result text = Run({"doctor"});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr("is mega-worker running there"));
}

TEST_F(CommandsTest, ACoordinatorThatWasNamedAndDoesNotAnswerIsAFailure) {
  const Result named = RunAlone({"--coordinator", "127.0.0.1:1", "doctor", "-o", "json"});
  EXPECT_EQ(Checks(named.out)["coordinator"]["verdict"], "fail") << named.out;
  EXPECT_EQ(named.code, 1);
}

// What stands in the way of asking is a finding like any other, and the rest is still checked.
TEST_F(CommandsTest, ACoordinatorThatMayNotBeAskedIsAFailureAmongTheChecks) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--coordinator", "head:7070"}, {"--coordinator", "nowhere"}}) {
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), {"doctor", "-o", "json"});
    const Result doctor = RunAlone(arguments);
    EXPECT_EQ(doctor.code, 1) << doctor.err;
    const nlohmann::json checks = Checks(doctor.out);
    EXPECT_EQ(checks["coordinator"]["verdict"], "fail") << doctor.out;
    EXPECT_THAT(checks["coordinator"]["finding"].get<std::string>(), HasSubstr(words[1]));
    EXPECT_NE(checks["coordinator"]["way_out"], "");
    EXPECT_TRUE(checks.contains("programs"));
    EXPECT_TRUE(checks.contains("disk"));
  }
}

class GoodputTest : public CommandsTest {
 protected:
  void LedgerIs(std::vector<v1::GoodputCause> causes) {
    coordinator_.get = [causes](const v1::GetJobRequest&, v1::Job* job) {
      Fill(job, v1::JOB_PHASE_SUCCEEDED);
      double seconds = 0;
      for (const v1::GoodputCause& cause : causes) {
        *job->mutable_goodput()->add_causes() = cause;
        seconds += cause.seconds();
      }
      *job->mutable_create_time() = ToProto(absl::FromUnixSeconds(1000));
      *job->mutable_end_time() = ToProto(absl::FromUnixSeconds(1000) + absl::Seconds(seconds));
      return grpc::Status::OK;
    };
  }
  static v1::GoodputCause Cause(const char* name, double seconds, double device_seconds) {
    v1::GoodputCause cause;
    cause.set_cause(name);
    cause.set_seconds(seconds);
    cause.set_device_seconds(device_seconds);
    return cause;
  }
};

TEST_F(GoodputTest, TheShareComesFirstThenEachCause) {
  LedgerIs({Cause("queued", 30, 0), Cause("starting", 10, 80), Cause("training", 80, 640),
            Cause("rework", 10, 80)});
  const Result text = Run({"goodput", "tiny"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("goodput 80.0%")) << text.out;
  EXPECT_LT(text.out.find("\ntraining"), text.out.find("\nrework"));
  EXPECT_LT(text.out.find("\nrework"), text.out.find("\nstarting"));
  EXPECT_THAT(text.out, HasSubstr("640.0  80.0%  |███████████████████▎"));
  EXPECT_THAT(text.out, Not(HasSubstr("unknown")));

  const nlohmann::json json = nlohmann::json::parse(Run({"goodput", "tiny", "-o", "json"}).out);
  EXPECT_DOUBLE_EQ(json["goodput"], 0.8);
  EXPECT_EQ(json["wall_seconds"], 130);
  EXPECT_EQ(json["device_seconds"], 800);
  EXPECT_EQ(json["causes"].size(), 4u);
  EXPECT_THAT(Run({"describe", "tiny"}).out,
              HasSubstr("Goodput     80.0% of 800 device-seconds; rework 10.0%, starting 10.0%"));
}

TEST_F(GoodputTest, AJobThatHasHeldNothingHasNone) {
  LedgerIs({Cause("queued", 30, 0)});
  const Result text = Run({"goodput", "tiny"});
  EXPECT_THAT(text.out, HasSubstr("has held no device yet"));
  EXPECT_TRUE(
      nlohmann::json::parse(Run({"goodput", "tiny", "-o", "json"}).out)["goodput"].is_null());
  EXPECT_THAT(Run({"describe", "tiny"}).out, Not(HasSubstr("Goodput")));
}

}  // namespace
}  // namespace mega::cli
