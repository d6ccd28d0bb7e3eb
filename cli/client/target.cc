#include "cli/client/target.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "base/dns_name.h"
#include "base/listen_address.h"
#include "cli/spec/yaml_tree.h"

namespace mega::cli {
namespace {

absl::Status ReadConfig(const std::string& path, Target& target, tls::Files& files) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::OkStatus();  // it is optional
  std::string text(kMaxYamlBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  YamlError error;
  const YamlTree tree = YamlTree::Parse(text, &error);
  if (tree.root() == nullptr)
    return InvalidArgument("{}:{}:{}: {}", path, error.at.line, error.at.column, error.message);
  for (const YamlNode::Entry& entry : tree.root()->entries) {
    const std::string& key = entry.key->text;
    std::string* file = key == "tls_ca"     ? &files.authority
                        : key == "tls_cert" ? &files.certificate
                        : key == "tls_key"  ? &files.key
                                            : nullptr;
    if (key != "coordinator" && key != "namespace" && file == nullptr) {
      return InvalidArgument(
          "{}:{}: {} is not a key; the keys are coordinator, namespace, tls_ca, tls_cert and "
          "tls_key",
          path, entry.key->at.line, Describe(*entry.key));
    }
    if (entry.value->kind != YamlNode::Kind::kScalar)
      return InvalidArgument("{}:{}: {} must be text", path, entry.key->at.line, key);
    if (file != nullptr) {
      *file = std::filesystem::path(path).replace_filename(entry.value->text).string();
    } else if (key == "namespace") {
      target.name_space = entry.value->text;
    } else {
      target.address = entry.value->text;
      target.source = path;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Target> FindTarget(const std::string& flag_address,
                                  const std::string& flag_namespace, const tls::Files& flag_tls,
                                  const std::function<const char*(const char*)>& environment) {
  Target target{.address = kDefaultCoordinator, .name_space = "", .source = "default"};
  const char* config_home = environment("XDG_CONFIG_HOME");
  const char* home = environment("HOME");
  std::string folder;
  if (config_home != nullptr && *config_home != '\0') {
    folder = config_home;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.config";
  }
  tls::Files files;
  if (!folder.empty()) {
    MEGA_RETURN_IF_ERROR(ReadConfig(folder + "/megactl/config.yaml", target, files));
  }
  if (const char* address = environment("MEGACTL_COORDINATOR"); address && *address) {
    target.address = address;
    target.source = "MEGACTL_COORDINATOR";
  }
  if (const char* name_space = environment("MEGACTL_NAMESPACE"); name_space && *name_space)
    target.name_space = name_space;
  const auto said = [&](const char* name) {
    const char* value = environment(name);
    return std::string(value != nullptr ? value : "");
  };
  const tls::Files of_environment{said("MEGACTL_TLS_CA"), said("MEGACTL_TLS_CERT"),
                                  said("MEGACTL_TLS_KEY")};
  if (of_environment.any()) files = of_environment;
  if (flag_tls.any()) files = flag_tls;
  if (!flag_address.empty()) {
    target.address = flag_address;
    target.source = "--coordinator";
  }
  if (!flag_namespace.empty()) target.name_space = flag_namespace;
  if (!target.name_space.empty() && !IsDnsLabel(target.name_space)) {
    return InvalidArgument("namespace '{}' (from {}) is not a namespace, which is {}",
                           target.name_space,
                           !flag_namespace.empty()                       ? "--namespace"
                           : environment("MEGACTL_NAMESPACE") != nullptr ? "MEGACTL_NAMESPACE"
                                                                         : "config.yaml",
                           kDnsLabelRule);
  }
  MEGA_RETURN_IF_ERROR(
      ParseServerAddress(fmt::format("coordinator (from {})", target.source), target.address)
          .status());
  MEGA_ASSIGN_OR_RETURN(target.identity,
                        tls::Load(files, {tls::PeerName::Kind::kUser, ""}, absl::Now()));
  return target;
}

}  // namespace mega::cli
