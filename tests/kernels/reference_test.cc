// Every case of tests/data/ops is run, or named here as not part of this release. A new case in the
// manifest is one or the other, or this test fails.
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kernels/reference_ops.h"
#include "tests/kernels/simd_targets.h"
#include "tests/support/reference_cases.h"

namespace mega::kernels {
namespace {

using testing::ReferenceCase;

const std::map<std::string, void (*)(ReferenceCase&)>& Runners() {
  static const std::map<std::string, void (*)(ReferenceCase&)> runners = {
      {"rmsnorm", RunRmsNorm}, {"silu", RunSilu},           {"swiglu", RunSwiGlu},
      {"rope", RunRope},       {"attention", RunAttention}, {"cross_entropy", RunCrossEntropy},
      {"linear", RunLinear},   {"embedding", RunEmbedding}, {"adamw", RunAdamW},
  };
  return runners;
}

// Why this release does not have the case; empty when it must run.
std::string NotInThisRelease(const ReferenceCase& c) {
  static const char* const kAbsent[] = {
      "layernorm",    "gelu_tanh",      "gelu_erf",  "quick_gelu", "relu",
      "squared_relu", "geglu_tanh",     "geglu_erf", "reglu",      "softmax",
      "log_softmax",  "grouped_linear", "sgd",       "adam_l2",
  };
  for (const char* op : kAbsent)
    if (c.op() == op) return "no such op";
  if (c.op() == "clip_grad_norm") return "no kernel: tests/worker/engine/optimizer runs it";
  for (const auto& [name, tensor] : c.about.at("tensors").items())
    if (tensor.at("dtype") == "bfloat16") return "bf16";
  for (const char* attribute : {"softcap", "label_smoothing", "z_coef", "scaling"})
    if (c.about.contains(attribute)) return attribute;
  return "";
}

std::vector<std::string> CasesToRun() {
  std::vector<std::string> names;
  for (const std::string& name : testing::ReferenceCaseNames())
    if (NotInThisRelease(testing::LoadReferenceCase(name)).empty()) names.push_back(name);
  return names;
}

class Reference : public ::testing::TestWithParam<std::string> {};

TEST_P(Reference, CaseAgreesOnEveryInstructionSet) {
  ReferenceCase c = testing::LoadReferenceCase(GetParam());
  const auto runner = Runners().find(c.op());
  ASSERT_NE(runner, Runners().end())
      << "nothing runs op '" << c.op() << "'; add a runner, or name it in NotInThisRelease";
  ForEachSimdTarget([&] { runner->second(c); });
}

INSTANTIATE_TEST_SUITE_P(Ops, Reference, ::testing::ValuesIn(CasesToRun()),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           name[name.find('/')] = '_';
                           return name;
                         });

// What runs is counted, so that a predicate that grew too wide is seen.
TEST(ReferenceCoverage, RunsAsManyCasesOfEachOpAsItMust) {
  std::map<std::string, int> run;
  for (const std::string& name : CasesToRun()) ++run[testing::LoadReferenceCase(name).op()];
  const std::map<std::string, int> expected = {
      {"rmsnorm", 7},        {"silu", 3},   {"swiglu", 3},    {"rope", 8}, {"attention", 14},
      {"cross_entropy", 11}, {"linear", 5}, {"embedding", 3}, {"adamw", 9}};
  EXPECT_THAT(run, ::testing::ContainerEq(expected));
}

}  // namespace
}  // namespace mega::kernels
