#include "manifest/validate.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/manifest/good.h"

namespace mega::manifest {
namespace {

using ::testing::HasSubstr;

TEST(Validate, RefusesWhatCouldNotBeLoadedAndSaysWhy) {
  struct Case {
    const char* message;
    std::function<void(v1::Manifest&)> spoil;
  };
  const Case cases[] = {
      {"version is 2", [](auto& m) { m.set_version(2); }},
      {"step 12", [](auto& m) { m.mutable_state()->set_step(11); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name("../a"); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name(".."); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name(""); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name("a/b"); }},
      {"-1 bytes", [](auto& m) { m.mutable_files(0)->set_bytes(-1); }},
      {"listed twice", [](auto& m) { m.mutable_files(0)->set_name("b.safetensors"); }},
      {"listed twice", [](auto& m) { m.mutable_tensors(1)->set_name("w"); }},
      {"does not list", [](auto& m) { m.mutable_slices(0)->set_tensor("v"); }},
      {"does not list", [](auto& m) { m.mutable_slices(0)->set_file("c"); }},
      {"not inside", [](auto& m) { m.mutable_slices(0)->add_shape(1); }},
      {"not inside", [](auto& m) { m.mutable_slices(3)->set_offset(1, 4); }},
      {"not inside", [](auto& m) { m.mutable_slices(0)->set_offset(0, -1); }},
      {"not inside", [](auto& m) { m.mutable_slices(0)->set_offset(0, INT64_MAX); }},
      {"not inside", [](auto& m) { m.mutable_slices(0)->set_shape(0, INT64_MAX); }},
      {"cover 18 of its 24", [](auto& m) { m.mutable_slices()->DeleteSubrange(1, 1); }},
      {"cover more than", [](auto& m) { *m.add_slices() = m.slices(0); }},
      {"overlap", [](auto& m) { m.mutable_slices(3)->set_offset(0, 1); }},
      {"impossible shape",
       [](auto& m) { m.mutable_tensors(0)->set_global_shape(0, INT64_MAX / 2); }},
      {"7 dimensions", [](auto& m) { m.mutable_tensors(0)->mutable_global_shape()->Resize(7, 1); }},
      {"consumed_samples", [](auto& m) { m.mutable_state()->set_consumed_samples(-1); }},
      {"consumed_tokens", [](auto& m) { m.mutable_state()->set_consumed_tokens(INT64_MAX); }},
      {"impossible shape", [](auto& m) { m.mutable_tensors(0)->set_global_shape(0, -4); }},
  };
  ASSERT_EQ(Validate(GoodManifest()), absl::OkStatus());
  for (const Case& c : cases) {
    v1::Manifest manifest = GoodManifest();
    c.spoil(manifest);
    const absl::Status status = Validate(manifest);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

// Case: a tensor of 100,000 dimensions was printed whole.
TEST(Validate, ItsErrorsAreForPeopleToRead) {
  const std::string longest(1 << 20, 'x');
  const std::function<void(v1::Manifest&)> cases[] = {
      [](auto& m) { m.mutable_tensors(0)->mutable_global_shape()->Resize(100'000, 1); },
      [](auto& m) { m.mutable_slices(0)->mutable_offset()->Resize(100'000, 1); },
      [](auto& m) { m.mutable_slices(0)->mutable_shape()->Resize(100'000, 1); },
      [&](auto& m) { m.mutable_tensors(0)->set_name(longest); },
      [&](auto& m) { m.mutable_tensors(0)->set_dtype(longest); },
      [&](auto& m) { m.mutable_files(0)->set_name(longest); },
      [&](auto& m) { m.mutable_slices(0)->set_tensor(longest); },
      [&](auto& m) { m.mutable_slices(0)->set_file(longest); },
      [&](auto& m) { m.mutable_slices(0)->set_name_in_file(longest); },
  };
  for (const auto& spoil : cases) {
    v1::Manifest manifest = GoodManifest();
    spoil(manifest);
    const absl::Status status = Validate(manifest);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), 500u) << status;
  }
}

}  // namespace
}  // namespace mega::manifest
