// The API messages as JSON and YAML, a stable interface for scripts: the proto3 mapping with the
// proto's own field names (one spelling everywhere), unset scalars shown, and int64 as numbers
// (proto3 JSON readers take both; jq and Python can count with them). Checksums stay text.
#pragma once

#include <string>

#include "google/protobuf/message.h"
#include "nlohmann/json_fwd.hpp"

namespace mega::cli {

nlohmann::ordered_json JsonOf(const google::protobuf::Message& message);
std::string ToJson(const google::protobuf::Message& message);  // indented, newline at the end
std::string ToJson(const nlohmann::ordered_json& json);
std::string ToJsonLine(const google::protobuf::Message& message);  // one line, without newline
std::string ToYaml(const google::protobuf::Message& message);
std::string ToYamlDocument(const google::protobuf::Message& message);  // after ---, one of several
std::string ToYaml(const nlohmann::ordered_json& json);

}  // namespace mega::cli
