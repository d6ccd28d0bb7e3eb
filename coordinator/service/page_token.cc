#include "coordinator/service/page_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/dns_name.h"
#include "base/utf8.h"
#include "coordinator/service/rpc_status.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

constexpr char kVersion[] = "1";
constexpr char kSeparator = '\n';  // in no namespace, uid or node name
constexpr std::string_view kNamespaces = "namespaces/";
constexpr size_t kShownBytes = 100;
constexpr int32_t kDefaultSize = 100;
constexpr int32_t kMostSize = 1000;

}  // namespace

std::string MakePageToken(std::string_view query, const std::vector<std::string>& place) {
  std::vector<std::string> parts{kVersion, std::string(query)};
  parts.insert(parts.end(), place.begin(), place.end());
  std::string token;
  absl::WebSafeBase64Escape(absl::StrJoin(parts, std::string(1, kSeparator)), &token);
  return token;
}

grpc::Status ReadPageToken(std::string_view token, std::string_view query, size_t place_size,
                           std::vector<std::string>* place) {
  place->clear();
  if (token.empty()) return grpc::Status::OK;
  std::string text;
  std::vector<std::string> parts;
  if (absl::WebSafeBase64Unescape(absl::string_view(token.data(), token.size()), &text)) {
    parts = absl::StrSplit(text, kSeparator);
  }
  if (parts.size() != 2 + place_size || parts[0] != kVersion || parts[1] != query) {
    return FieldInvalid("PAGE_TOKEN_INVALID", "page_token",
                        "page_token belongs to another query; start again without it");
  }
  place->assign(parts.begin() + 2, parts.end());
  return grpc::Status::OK;
}

grpc::Status ReadParent(const std::string& parent, std::string* name_space) {
  name_space->clear();
  if (parent.empty()) return grpc::Status::OK;
  if (!parent.starts_with(kNamespaces) || parent.size() == kNamespaces.size()) {
    return FieldInvalid("PARENT_INVALID", "parent",
                        fmt::format("parent is '{}'; write namespaces/NAMESPACE, or "
                                    "namespaces/- for all",
                                    parent));
  }
  const std::string name = parent.substr(kNamespaces.size());
  if (name == "-") return grpc::Status::OK;
  if (!IsDnsLabel(name)) {
    return FieldInvalid("PARENT_INVALID", "parent",
                        fmt::format("'{}' is not a namespace, which is {}",
                                    CutUtf8(name, kShownBytes), kDnsLabelRule));
  }
  *name_space = name;
  return grpc::Status::OK;
}

grpc::Status PageSize(int32_t asked, size_t* size) {
  if (asked < 0 || asked > kMostSize) {
    return FieldInvalid(
        "PAGE_SIZE_INVALID", "page_size",
        fmt::format("page_size is {}; choose 1 to {} (0: {})", asked, kMostSize, kDefaultSize));
  }
  *size = static_cast<size_t>(asked == 0 ? kDefaultSize : asked);
  return grpc::Status::OK;
}

}  // namespace mega::service
