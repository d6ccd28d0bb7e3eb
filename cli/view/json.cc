#include "cli/view/json.h"

#include "absl/strings/ascii.h"
#include "base/check.h"
#include "google/protobuf/util/json_util.h"

namespace mega::cli {
namespace {

using nlohmann::ordered_json;

std::string Convert(const google::protobuf::Message& message, bool indented) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = indented;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  // Fails on times beyond year 9999, which only a broken peer sends.
  if (!status.ok()) return indented ? "{}\n" : "{}";
  return json;
}

// A word that YAML readers take for text; everything else goes in JSON's quotes, which YAML shares.
bool IsPlainWord(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (const std::string_view word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
    if (absl::AsciiStrToLower(text) == word) return false;
  for (const char c : text)
    if (!absl::ascii_isalnum(c) && std::string_view("_-/.").find(c) == std::string_view::npos)
      return false;
  return true;
}

std::string Scalar(const ordered_json& json) {
  if (json.is_string() && IsPlainWord(json.get<std::string>())) return json.get<std::string>();
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void AppendYaml(const ordered_json& json, const std::string& indent, std::string& out) {
  const auto value = [&](const ordered_json& child, const std::string& deeper) {
    if (child.is_structured() && !child.empty()) {
      out += "\n";
      AppendYaml(child, deeper, out);
    } else {
      out.append(" ").append(child.is_structured() ? child.dump() : Scalar(child)).append("\n");
    }
  };
  if (json.is_object()) {
    for (const auto& [key, child] : json.items()) {
      out += indent + Scalar(ordered_json(key)) + ":";
      value(child, indent + "  ");
    }
  } else if (json.is_array()) {
    for (const ordered_json& child : json) {
      out += indent + "-";
      value(child, indent + "  ");
    }
  } else {
    out += indent + Scalar(json) + "\n";
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) { return Convert(message, true); }

std::string ToJsonLine(const google::protobuf::Message& message) { return Convert(message, false); }

std::string ToYaml(const ordered_json& json) {
  std::string out;
  AppendYaml(json, "", out);
  return out;
}

std::string ToYaml(const google::protobuf::Message& message) {
  return ToYaml(ordered_json::parse(Convert(message, false)));
}

}  // namespace mega::cli
