// Cases of tests/data/ops: inputs, upstream gradients, outputs and gradients made by public
// implementations in float64.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/tensors.h"

namespace mega::testing {

struct ReferenceCase {
  std::string family, name;
  nlohmann::json about;                       // op, attributes, tensors
  std::map<std::string, HostTensor> tensors;  // "in.x", "dout.y", "out.y", "grad.x"

  std::string op() const { return about.at("op"); }
  bool Has(const std::string& tensor) const { return tensors.contains(tensor); }
  // Aborts the test when the case lacks it.
  HostTensor& Get(const std::string& tensor);
  template <typename T>
  T Attribute(const std::string& key, T otherwise) const {
    return about.value(key, otherwise);
  }
};

// "norms/rmsnorm_0" of every case in tests/data/ops/manifest.json.
std::vector<std::string> ReferenceCaseNames();
// With its tensors. BF16 ones stay as they are.
ReferenceCase LoadReferenceCase(const std::string& name);

}  // namespace mega::testing
