#include "coordinator/service/roles.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_join.h"
#include "base/dns_name.h"
#include "base/nearest.h"
#include "base/tls/peer_name.h"
#include "base/yaml/yaml_tree.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

constexpr size_t kMostMistakes = 100;
constexpr std::array kRoles = {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin};

std::optional<Role> RoleNamed(const std::string& name) {
  for (const Role role : kRoles)
    if (name == NameOf(role)) return role;
  return std::nullopt;
}

std::string Meant(const std::string& typed, const std::vector<std::string>& words) {
  const std::string nearest = Nearest(typed, words);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

}  // namespace

const char* NameOf(Role role) {
  switch (role) {
    case Role::kNone:
      return "no role";
    case Role::kViewer:
      return "viewer";
    case Role::kSubmitter:
      return "submitter";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

// Goes on after a mistake, so that one look shows them all.
class RolesReader {
 public:
  explicit RolesReader(Roles& out) : out_(out) {}

  void Read(const YamlNode& root) {
    if (!IsSection(root, "the file", "a section 'users'")) return;
    const YamlNode* users = nullptr;
    for (const auto& [key, value] : root.entries) {
      if (key->text != "users") {
        Add(key->at, fmt::format("{} is not a key; the one key is users{}", Describe(*key),
                                 Meant(key->text, {"users"})));
      } else if (users != nullptr) {
        Add(key->at, fmt::format("users is there twice; the first is in line {}", users->at.line));
      } else {
        users = value;
        ReadUsers(*value);
      }
    }
    if (users == nullptr) Add(root.at, "there is no section 'users': nobody could do anything");
  }

  absl::Status Result() const {
    if (mistakes_.empty()) return absl::OkStatus();
    std::vector<std::string> shown(
        mistakes_.begin(),
        mistakes_.begin() + static_cast<std::ptrdiff_t>(std::min(mistakes_.size(), kMostMistakes)));
    if (mistakes_.size() > kMostMistakes)
      shown.push_back(fmt::format("and {} more", mistakes_.size() - kMostMistakes));
    return InvalidArgument("{}", absl::StrJoin(shown, "\n"));
  }

  void Add(Position at, const std::string& mistake) {
    mistakes_.push_back(
        at.line == 0 ? fmt::format("{}: {}", out_.source_, mistake)
                     : fmt::format("{}:{}:{}: {}", out_.source_, at.line, at.column, mistake));
  }

 private:
  bool IsSection(const YamlNode& node, const std::string& name, const char* wanted) {
    if (node.kind == YamlNode::Kind::kMap && !node.entries.empty()) return true;
    Add(node.at, fmt::format("{} is {}; write {}", name,
                             node.kind == YamlNode::Kind::kMap ? "empty" : Describe(node), wanted));
    return false;
  }

  void ReadUsers(const YamlNode& users) {
    if (!IsSection(users, "users", "the names of users, each with its roles")) return;
    std::map<std::string, int> lines;
    for (const auto& [key, value] : users.entries) {
      if (key->kind != YamlNode::Kind::kScalar || !tls::IsUserName(key->text)) {
        Add(key->at,
            fmt::format("users.{} is no name of a user: {}", Describe(*key), tls::kUserNameRule));
        continue;
      }
      const auto [line, is_new] = lines.emplace(key->text, key->at.line);
      if (!is_new) {
        Add(key->at, fmt::format("users.{} is there twice; the first is in line {}", key->text,
                                 line->second));
        continue;
      }
      ReadRoles("users." + key->text, *value, out_.users_[key->text]);
    }
  }

  void ReadRoles(const std::string& path, const YamlNode& roles, Roles::OfUser& out) {
    if (!IsSection(roles, path, "namespaces with roles, such as {\"*\": viewer}")) return;
    for (const auto& [key, value] : roles.entries) {
      const bool is_everywhere = key->text == kEverywhere;
      if (key->kind != YamlNode::Kind::kScalar || !(is_everywhere || IsDnsLabel(key->text))) {
        Add(key->at, fmt::format("{}.{} is no namespace: {}; or \"*\" for all of them", path,
                                 Describe(*key), kDnsLabelRule));
        continue;
      }
      const std::string place = fmt::format("{}.{}", path, key->text);
      if (out.count(key->text) != 0) {
        Add(key->at, fmt::format("{} is there twice", place));
        continue;
      }
      const std::optional<Role> role =
          value->kind == YamlNode::Kind::kScalar ? RoleNamed(value->text) : std::nullopt;
      if (!role) {
        Add(value->at,
            fmt::format("{} is {}; the roles are viewer, submitter, operator and admin{}", place,
                        Describe(*value),
                        Meant(value->text, {"viewer", "submitter", "operator", "admin"})));
        continue;
      }
      if (*role > Role::kSubmitter && !is_everywhere) {
        Add(value->at, fmt::format("{} is {}, which counts for all namespaces or not at all: nodes "
                                   "and quotas belong to none; write submitter here, or \"*\": {}",
                                   place, value->text, value->text));
        continue;
      }
      out[key->text] = *role;
    }
  }

  Roles& out_;
  std::vector<std::string> mistakes_;
};

absl::StatusOr<Roles> Roles::Parse(const std::string& source, std::string_view text) {
  Roles roles;
  roles.source_ = source;
  RolesReader reader(roles);
  YamlError error;
  const YamlTree tree = YamlTree::Parse(text, &error);
  if (tree.root() == nullptr) {
    reader.Add(error.at, error.message);
  } else {
    reader.Read(*tree.root());
  }
  MEGA_RETURN_IF_ERROR(reader.Result());
  return roles;
}

const Roles::OfUser& Roles::Of(const std::string& user) const {
  static const auto* none = new OfUser();
  const auto it = users_.find(user);
  return it == users_.end() ? *none : it->second;
}

Role Roles::In(const std::string& user, const std::string& name_space) const {
  Role highest = Role::kNone;
  for (const auto& [where, role] : Of(user))
    if (where == kEverywhere || where == name_space) highest = std::max(highest, role);
  return highest;
}

Role Roles::Highest(const std::string& user) const {
  Role highest = Role::kNone;
  for (const auto& [where, role] : Of(user)) highest = std::max(highest, role);
  return highest;
}

std::vector<std::string> Roles::Admins() const {
  std::vector<std::string> admins;
  for (const auto& [user, roles] : users_)
    if (Everywhere(user) == Role::kAdmin) admins.push_back(user);
  return admins;
}

}  // namespace mega::service
