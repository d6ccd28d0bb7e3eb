#include "manifest/step_folder.h"

#include "gtest/gtest.h"

namespace mega::manifest {
namespace {

TEST(StepFolder, IsReadBack) {
  EXPECT_EQ(StepFolderName(200), "step-00000200");
  for (const int64_t step : {int64_t{0}, int64_t{200}, int64_t{99'999'999}, INT64_MAX}) {
    EXPECT_EQ(ParseStepFolderName(StepFolderName(step)), step);
  }
  EXPECT_EQ(ParseStepFolderName("step-7"), 7);
}

TEST(StepFolder, NothingElseIsOne) {
  for (const char* name : {"", "step", "step-", "step-x", "step--1", "step-+1", "step-7.bak",
                           "a-step-7", "Step-7", "step- 7", "step-99999999999999999999"}) {
    EXPECT_FALSE(ParseStepFolderName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace mega::manifest
