// megactl checkpoints, and restart from one of them.
#include <gmock/gmock.h>

#include "manifest/manifest_file.h"
#include "nlohmann/json.hpp"
#include "tests/cli/commands/commands_fixture.h"
#include "tests/manifest/good.h"

namespace mega::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointsTest : public CommandsTest {
 protected:
  // The job's checkpoints of steps 10, pinned, and 20.
  void HasTwo() {
    coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
      Fill(job, v1::JOB_PHASE_RUNNING);
      for (const int64_t step : {10, 20}) Fill(job->add_checkpoints(), step, step == 10);
      return grpc::Status::OK;
    };
  }
  using CommandsTest::Fill;
  static void Fill(v1::Manifest* manifest, int64_t step, bool pinned) {
    manifest->set_step(step);
    manifest->set_pinned(pinned);
    manifest->set_directory("/checkpoints/step-" + std::to_string(step));
  }
  // A folder with a manifest of step 12, and none of its files.
  std::string Folder() {
    const std::string folder = folder_ + "/step-00000012";
    std::filesystem::create_directories(folder);
    v1::Manifest manifest = GoodManifest();
    manifest.set_job_name("tiny");
    manifest.set_epoch(5);
    for (v1::TensorInfo& tensor : *manifest.mutable_tensors()) {
      if (tensor.name() == "b") tensor.set_name("optimizer.exp_avg/b");
    }
    for (v1::TensorSlice& slice : *manifest.mutable_slices()) {
      if (slice.tensor() == "b") slice.set_tensor("optimizer.exp_avg/b");
    }
    std::ofstream(folder + "/manifest.json") << manifest::PrintManifest(manifest);
    return folder;
  }
};

TEST_F(CheckpointsTest, DescribeTellsOfAFolderWithoutACoordinator) {
  const std::string folder = Folder();
  const Result told = RunAlone({"checkpoints", "describe", folder});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("step 12"), HasSubstr(folder), HasSubstr("a.safetensors"),
                              HasSubstr("weights"), HasSubstr("optimizer.exp_avg")));
  const auto json =
      nlohmann::json::parse(RunAlone({"checkpoints", "describe", folder, "-o", "json"}).out);
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["tensors"].size(), 2u);

  std::filesystem::remove(folder + "/manifest.json");
  const Result torn = RunAlone({"checkpoints", "describe", folder});
  EXPECT_EQ(torn.code, 3);
  EXPECT_THAT(torn.err, HasSubstr("never completed"));
  EXPECT_EQ(RunAlone({"checkpoints", "describe", folder_ + "/nowhere"}).code, 3);
}

TEST_F(CheckpointsTest, DescribeTellsOfAJobsOneWhoUsesItAndWhatItsFolderAdds) {
  const std::string folder = Folder();
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_RUNNING);
    Fill(job->add_checkpoints(), 10, false);
    v1::Manifest& manifest = *job->add_checkpoints();
    Fill(&manifest, 12, true);
    manifest.set_epoch(5);
    manifest.set_directory(folder);
    for (const int64_t number : {1, 2, 3}) {
      v1::Attempt& attempt = *job->add_attempts();
      attempt.set_number(number);
      if (number > 1) *attempt.mutable_load() = manifest;
    }
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"checkpoints", "describe", "tiny", "12"}).out,
              AllOf(HasSubstr("step 12, pinned"), HasSubstr("attempts 2, 3"),
                    HasSubstr("optimizer.exp_avg")));
  // Its folder is not here: told is what the coordinator knows.
  EXPECT_THAT(Run({"checkpoints", "describe", "tiny", "10"}).out,
              AllOf(HasSubstr("step 10, not pinned"), HasSubstr("no attempt has started")));
  const Result missing = Run({"checkpoints", "describe", "tiny", "11"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("those of steps 10 12"));
}

TEST_F(CheckpointsTest, VerifyTellsAllDamageAndEndsWithOne) {
  const std::string folder = Folder();
  const Result damaged = RunAlone({"checkpoints", "verify", folder});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("a.safetensors: is missing"),
                                 HasSubstr("b.safetensors: is missing"), HasSubstr("DAMAGED")));
  const Result json = RunAlone({"checkpoints", "verify", folder, "-o", "json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(nlohmann::json::parse(json.out)["damage"].size(), 2u);
  int64_t epoch = 5;
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_RUNNING);
    Fill(job->add_checkpoints(), 12, false);
    job->mutable_checkpoints(0)->set_directory(folder);
    job->mutable_checkpoints(0)->set_epoch(epoch);
    return grpc::Status::OK;
  };
  const Result of_job = Run({"checkpoints", "verify", "tiny", "12"});
  EXPECT_THAT(of_job.out, AllOf(HasSubstr("b.safetensors"), Not(HasSubstr("epoch"))));
  // Case: the folder had been written over by another attempt, and was said to be whole.
  epoch = 4;
  EXPECT_THAT(Run({"checkpoints", "verify", "tiny", "12"}).out,
              HasSubstr("manifest.json: it is of step 12, saved in epoch 5, and the job's "
                        "checkpoint is of step 12, saved in epoch 4"));
  std::filesystem::remove(folder + "/manifest.json");
  const Result torn = RunAlone({"checkpoints", "verify", folder});
  EXPECT_EQ(torn.code, 1);
  EXPECT_THAT(torn.out, HasSubstr("TORN"));
  EXPECT_EQ(RunAlone({"checkpoints", "verify", folder_ + "/nowhere"}).code, 3);
}

TEST_F(CheckpointsTest, TheListShowsWhatIsPinned) {
  HasTwo();
  const std::string table = Run({"checkpoints", "list", "tiny"}).out;
  EXPECT_THAT(table, AllOf(HasSubstr("PINNED"), HasSubstr("yes")));
  EXPECT_EQ(Run({"checkpoints", "list", "tiny", "-o", "name"}).out,
            "/checkpoints/step-10\n/checkpoints/step-20\n");
}

TEST_F(CheckpointsTest, SaveDoesNotWaitForTheCheckpoint) {
  std::string asked;
  coordinator_.save = [&](const v1::SaveCheckpointRequest& request, v1::Job* job) {
    asked = request.name();
    Fill(job, v1::JOB_PHASE_RUNNING);
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"checkpoints", "save", "tiny"}).out, HasSubstr("job tiny saves after the step"));
  EXPECT_EQ(asked, "tiny");
}

TEST_F(CheckpointsTest, PinAndUnpinSendJobAndStep) {
  v1::PinCheckpointRequest asked;
  coordinator_.pin = [&](const v1::PinCheckpointRequest& request, v1::Manifest* manifest) {
    asked = request;
    Fill(manifest, request.step(), request.pinned());
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"checkpoints", "pin", "tiny", "10"}).out, HasSubstr("of step 10 is pinned"));
  EXPECT_EQ(asked.name(), "tiny");
  EXPECT_EQ(asked.step(), 10);
  EXPECT_TRUE(asked.pinned());
  EXPECT_TRUE(
      nlohmann::json::parse(Run({"checkpoints", "pin", "tiny", "10", "-o", "json"}).out)["pinned"]);
  EXPECT_THAT(Run({"checkpoints", "unpin", "tiny", "10", "-n", "team"}).out,
              HasSubstr("is not pinned"));
  EXPECT_FALSE(asked.pinned());
  EXPECT_EQ(asked.name(), "namespaces/team/jobs/tiny");
}

TEST_F(CheckpointsTest, DeleteSaysWhatIsLeftAndForcesOnlyWhenTold) {
  v1::DeleteCheckpointRequest asked;
  int calls = 0;
  coordinator_.delete_checkpoint = [&](const v1::DeleteCheckpointRequest& request, v1::Job* job) {
    asked = request;
    ++calls;
    Fill(job, v1::JOB_PHASE_RUNNING);
    Fill(job->add_checkpoints(), 20, false);
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"checkpoints", "delete", "tiny", "10"}).out,
              HasSubstr("the checkpoint of step 10 is deleted; job tiny has 1 left"));
  EXPECT_FALSE(asked.force());
  EXPECT_EQ(nlohmann::json::parse(
                Run({"checkpoints", "delete", "tiny", "10", "--force", "-o", "json"}).out)["uid"],
            "abc123");
  EXPECT_TRUE(asked.force());

  // It may have been carried out though the answer was lost: it is not sent again.
  calls = 0;
  coordinator_.delete_checkpoint = [&](const v1::DeleteCheckpointRequest&, v1::Job*) {
    ++calls;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  EXPECT_EQ(Run({"checkpoints", "delete", "tiny", "10"}).code, 6);
  EXPECT_EQ(calls, 1);
  EXPECT_GT(coordinator_.patience.load(), std::chrono::seconds(5)) << "it has much to do";
}

TEST_F(CheckpointsTest, WhatTheCoordinatorRefusesIsSaidWithItsReason) {
  coordinator_.pin = [](const v1::PinCheckpointRequest&, v1::Manifest*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "it has those of steps 10 and 20");
  };
  const Result missing = Run({"checkpoints", "pin", "tiny", "15"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("those of steps 10 and 20"));
  coordinator_.delete_checkpoint = [](const v1::DeleteCheckpointRequest&, v1::Job*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "it is pinned");
  };
  EXPECT_EQ(Run({"checkpoints", "delete", "tiny", "10"}).code, 4);
  for (const char* step : {"-1", "ten", "1e3", ""}) {
    EXPECT_EQ(Run({"checkpoints", "pin", "tiny", "--", step}).code, 2) << step;
  }
  EXPECT_EQ(Run({"checkpoints", "delete", "tiny"}).code, 2);
}

TEST_F(CheckpointsTest, RestartNamesTheCheckpoint) {
  v1::RestartJobRequest asked;
  coordinator_.restart = [&](const v1::RestartJobRequest& request, v1::Job* job) {
    asked = request;
    Fill(job, v1::JOB_PHASE_RUNNING);
    if (!request.from_beginning()) Fill(job->add_checkpoints(), 10, false);
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"restart", "tiny", "--from-step", "10"}).out, HasSubstr("from step 10"));
  EXPECT_EQ(asked.from_step(), 10);
  EXPECT_GT(coordinator_.patience.load(), std::chrono::seconds(5));
  EXPECT_THAT(Run({"restart", "tiny", "--from-beginning"}).out, HasSubstr("from its beginning"));
  EXPECT_TRUE(asked.from_beginning());
  const Result newest = Run({"restart", "tiny"});
  EXPECT_EQ(newest.code, 0) << newest.err;
  EXPECT_EQ(asked.from_step(), 0);
  EXPECT_FALSE(asked.from_beginning());
  EXPECT_EQ(Run({"restart", "tiny", "--from-step", "10", "--from-beginning"}).code, 2);
  EXPECT_EQ(Run({"restart", "tiny", "--from-step", "0"}).code, 2);
}

}  // namespace
}  // namespace mega::cli
