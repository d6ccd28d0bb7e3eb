#include "coordinator/core/nodes/hello_size.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr size_t kLabels = 64;
constexpr size_t kLibraries = 64;
constexpr size_t kFindings = 256;
constexpr size_t kRunning = 8192;  // an old and a new attempt on every device
constexpr size_t kTextBytes = 512;
constexpr size_t kFindingBytes = 4096;
constexpr size_t kNodeBytes = 256 << 10;  // 4096 devices of 60 bytes each

// One part of `many` is enough to say: the largest.
template <typename Many, typename Size>
size_t Largest(const Many& many, const Size& size) {
  size_t largest = 0;
  for (const auto& one : many) largest = std::max(largest, size(one));
  return largest;
}

}  // namespace

std::string WhatIsTooLarge(const v1::Hello& hello) {
  const v1::Node& node = hello.node();
  std::string wrong;
  const auto check = [&wrong](size_t size, size_t most, std::string_view what) {
    if (size <= most) return;
    wrong += fmt::format("{}{} {} (at most {})", wrong.empty() ? "" : ", ", size, what, most);
  };
  const auto text = [](const std::string& one) { return one.size(); };
  check(node.labels().size(), kLabels, "labels");
  check(node.numeric_libraries().size(), kLibraries, "numeric libraries");
  check(hello.findings().size(), kFindings, "findings");
  check(hello.running().size(), kRunning, "running ranks");
  check(
      Largest(node.labels(),
              [](const auto& label) { return std::max(label.first.size(), label.second.size()); }),
      kTextBytes, "bytes in a label");
  check(Largest(node.numeric_libraries(), text), kTextBytes, "bytes in a library's name");
  check(Largest(node.devices(), [](const v1::Device& device) { return device.kind().size(); }),
        kTextBytes, "bytes in a device's kind");
  check(Largest(hello.findings(), [](const v1::Finding& one) { return one.ByteSizeLong(); }),
        kFindingBytes, "bytes in a finding");
  check(Largest(hello.running(), [](const v1::RankRef& rank) { return rank.job_uid().size(); }),
        kTextBytes, "bytes in a job's uid");
  check(node.boot_id().size(), kTextBytes, "bytes in the boot id");
  check(node.address().size(), kTextBytes, "bytes in the address");
  check(node.metrics_address().size(), kTextBytes, "bytes in the metrics address");
  check(node.version().size(), kTextBytes, "bytes in the version");
  check(node.state_folder_id().size(), kTextBytes, "bytes in the state folder's id");
  check(hello.cluster_id().size(), kTextBytes, "bytes in the cluster's id");
  check(node.ByteSizeLong(), kNodeBytes, "bytes in all that it says of itself");
  return wrong;
}

}  // namespace mega::core
