#include "tests/support/reference_cases.h"

#include <cstring>
#include <fstream>

#include "worker/engine/checkpoint/safetensors.h"

namespace mega::testing {
namespace {

const std::string& Folder() {
  static const std::string folder = MEGA_TEST_DATA "/ops/";
  return folder;
}

nlohmann::json Manifest() {
  std::ifstream file(Folder() + "manifest.json");
  nlohmann::json manifest = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  MEGA_CHECK(manifest.is_object());
  return manifest;
}

}  // namespace

HostTensor& ReferenceCase::Get(const std::string& tensor) {
  const auto it = tensors.find(tensor);
  if (it == tensors.end())
    check::Fail(__FILE__, __LINE__, fmt::format("case {}/{} has no {}", family, name, tensor));
  return it->second;
}

std::vector<std::string> ReferenceCaseNames() {
  std::vector<std::string> names;
  const nlohmann::json manifest = Manifest();
  for (const auto& [family, cases] : manifest.items())
    for (const auto& [name, about] : cases.items()) names.push_back(family + "/" + name);
  return names;
}

ReferenceCase LoadReferenceCase(const std::string& name) {
  const size_t slash = name.find('/');
  ReferenceCase result{.family = name.substr(0, slash), .name = name.substr(slash + 1)};
  result.about = Manifest().at(result.family).at(result.name);
  auto file = checkpoint::SafetensorsFile::Open(Folder() + result.family + ".safetensors");
  MEGA_CHECK_OK(file);
  for (const auto& [tensor, about] : result.about.at("tensors").items()) {
    const auto entry = file->Get(result.name + "/" + tensor);
    MEGA_CHECK_OK(entry);
    HostTensor& copy = result.tensors[tensor] = HostTensor(entry->shape, entry->dtype);
    if (!entry->data.empty())
      std::memcpy(copy.bytes().data(), entry->data.data(), entry->data.size());
  }
  return result;
}

}  // namespace mega::testing
