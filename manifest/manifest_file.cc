#include "manifest/manifest_file.h"

#include <google/protobuf/util/json_util.h>

#include "base/check.h"
#include "base/read_file.h"
#include "manifest/validate.h"

namespace mega::manifest {

absl::StatusOr<v1::Manifest> ParseManifest(std::string_view json) {
  if (static_cast<int64_t>(json.size()) > kMaxManifestBytes) {
    return InvalidArgument("the manifest has {} bytes, more than {}", json.size(),
                           kMaxManifestBytes);
  }
  v1::Manifest manifest;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // a later release may add some
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &manifest, options);
  if (!parsed.ok()) return InvalidArgument("not a manifest: {}", parsed.ToString());
  MEGA_RETURN_IF_ERROR(Validate(manifest));
  return manifest;
}

std::string PrintManifest(const v1::Manifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(manifest, &json, options);
  MEGA_CHECK_OK(printed);
  return json;
}

absl::StatusOr<v1::Manifest> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  MEGA_ASSIGN_OR_RETURN(const std::string json, ReadRegularFile(path, kMaxManifestBytes));
  absl::StatusOr<v1::Manifest> manifest = ParseManifest(json);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  manifest->set_directory(folder);
  return manifest;
}

}  // namespace mega::manifest
