#include "cli/client/target.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/time/clock.h"
#include "base/dns_name.h"
#include "base/listen_address.h"
#include "base/printable.h"
#include "base/yaml/yaml_tree.h"

namespace mega::cli {
namespace {

using Environment = std::function<const char*(const char*)>;

// What one place says of TLS.
struct Said {
  tls::Files files;
  std::optional<bool> insecure;  // unset: nothing
};

// What is said nearer to the user counts, and what is said elsewhere then does not; a bare "not in
// plain text" takes that back and leaves a certificate where it is.
void Overrule(const Said& said, tls::Options& tls) {
  if (said.files.any() || said.insecure == true)
    tls = {.files = said.files, .insecure = said.insecure.value_or(false)};
  if (said.insecure == false) tls.insecure = false;
}

absl::StatusOr<bool> ReadInsecure(const std::string& source, const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return InvalidArgument("{} is '{}'; write true or false", source, PrintableLine(text));
}

std::string NameOf(const Target& target) {
  return fmt::format("coordinator (from {})", target.source);
}

absl::StatusOr<ListenAddress> AddressOf(const Target& target) {
  return ParseServerAddress(NameOf(target), target.address);
}

absl::Status ReadConfig(const std::string& path, Target& target) {
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
    std::string* file = key == "tls_ca"     ? &target.tls.files.authority
                        : key == "tls_cert" ? &target.tls.files.certificate
                        : key == "tls_key"  ? &target.tls.files.key
                                            : nullptr;
    if (key != "coordinator" && key != "namespace" && key != "insecure" && file == nullptr) {
      return InvalidArgument(
          "{}:{}: {} is not a key; the keys are coordinator, namespace, tls_ca, tls_cert, tls_key "
          "and insecure",
          path, entry.key->at.line, Describe(*entry.key));
    }
    if (entry.value->kind != YamlNode::Kind::kScalar)
      return InvalidArgument("{}:{}: {} must be text", path, entry.key->at.line, key);
    if (file != nullptr && entry.value->text.empty()) {
      return InvalidArgument("{}:{}: {} is empty; give a file, or leave it out", path,
                             entry.key->at.line, key);
    }
    if (file != nullptr) {
      *file = std::filesystem::path(path).replace_filename(entry.value->text).string();
    } else if (key == "insecure") {
      MEGA_ASSIGN_OR_RETURN(target.tls.insecure,
                            ReadInsecure(fmt::format("{}:{}: insecure", path, entry.key->at.line),
                                         entry.value->text));
    } else if (key == "namespace") {
      target.name_space = entry.value->text;
    } else {
      target.address = entry.value->text;
      target.source = path;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Said> TlsOfEnvironment(const Environment& environment) {
  Said said;
  for (const auto& [name, path] : {std::pair("MEGACTL_TLS_CA", &said.files.authority),
                                   std::pair("MEGACTL_TLS_CERT", &said.files.certificate),
                                   std::pair("MEGACTL_TLS_KEY", &said.files.key)}) {
    const char* value = environment(name);
    if (value == nullptr) continue;
    if (*value == '\0') return InvalidArgument("{} is empty; give a file, or unset it", name);
    *path = value;
  }
  if (const char* insecure = environment("MEGACTL_INSECURE"); insecure && *insecure) {
    MEGA_ASSIGN_OR_RETURN(said.insecure, ReadInsecure("MEGACTL_INSECURE", insecure));
  }
  return said;
}

}  // namespace

absl::StatusOr<Target> FindTarget(const std::string& flag_address,
                                  const std::string& flag_namespace, const tls::Options& flag_tls,
                                  const Environment& environment) {
  Target target{.address = kDefaultCoordinator, .name_space = "", .source = "default"};
  const char* config_home = environment("XDG_CONFIG_HOME");
  const char* home = environment("HOME");
  std::string folder;
  if (config_home != nullptr && *config_home != '\0') {
    folder = config_home;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.config";
  }
  if (!folder.empty()) {
    MEGA_RETURN_IF_ERROR(ReadConfig(folder + "/megactl/config.yaml", target));
  }
  if (const char* address = environment("MEGACTL_COORDINATOR"); address && *address) {
    target.address = address;
    target.source = "MEGACTL_COORDINATOR";
  }
  if (const char* name_space = environment("MEGACTL_NAMESPACE"); name_space && *name_space)
    target.name_space = name_space;
  MEGA_ASSIGN_OR_RETURN(const Said of_environment, TlsOfEnvironment(environment));
  Overrule(of_environment, target.tls);
  if (flag_tls.files.any() || flag_tls.insecure) target.tls = flag_tls;
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
  MEGA_RETURN_IF_ERROR(AddressOf(target).status());
  return target;
}

absl::StatusOr<std::shared_ptr<const tls::Identity>> IdentityAt(const Target& target) {
  MEGA_RETURN_IF_ERROR(tls::CheckOneAsked(target.tls));
  MEGA_ASSIGN_OR_RETURN(const ListenAddress address, AddressOf(target));
  MEGA_ASSIGN_OR_RETURN(std::shared_ptr<const tls::Identity> identity,
                        tls::Load(target.tls.files, {tls::PeerName::Kind::kUser, ""}, absl::Now()));
  MEGA_RETURN_IF_ERROR(CheckPlainTextAllowed(
      NameOf(target), address, target.tls.insecure || identity != nullptr, tls::kRemedy));
  return identity;
}

}  // namespace mega::cli
