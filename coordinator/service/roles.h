// Who holds which role in which namespace: what the file of --access says.
//   users:
//     ada: {"*": admin}
//     bob: {"*": viewer, research: submitter}
// "*" stands for all namespaces and for what belongs to none, as nodes do. Of two roles that count
// in a namespace the higher one does.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mega::service {

// Each may do all that those before it may.
enum class Role { kNone, kViewer, kSubmitter, kOperator, kAdmin };
const char* NameOf(Role role);  // of kNone: "no role"

inline constexpr char kEverywhere[] = "*";

class Roles {
 public:
  using OfUser = std::map<std::string, Role>;  // by namespace, or kEverywhere

  // INVALID_ARGUMENT with all that is wrong, one mistake a line, each with its place in `source`.
  static absl::StatusOr<Roles> Parse(const std::string& source, std::string_view text);

  // A user that the file does not name has none.
  Role In(const std::string& user, const std::string& name_space) const;
  Role Everywhere(const std::string& user) const { return In(user, kEverywhere); }
  Role Highest(const std::string& user) const;  // in any namespace
  const OfUser& Of(const std::string& user) const;

  const std::string& source() const { return source_; }
  std::vector<std::string> Admins() const;

 private:
  friend class RolesReader;
  std::string source_;
  std::map<std::string, OfUser> users_;
};

}  // namespace mega::service
