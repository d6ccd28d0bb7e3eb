#include "cli/view/json.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

using nlohmann::ordered_json;

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// {"step": "20"} → {"step": 20} for the int64 fields of `type`.
void NumbersForInt64(const Descriptor& type, ordered_json& json) {
  if (!json.is_object()) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const auto found = json.find(field.name());
    if (found == json.end() || field.is_map()) continue;
    const auto convert = [&field](ordered_json& value) {
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        NumbersForInt64(*field.message_type(), value);
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 && value.is_string()) {
        int64_t number = 0;
        if (absl::SimpleAtoi(value.get<std::string>(), &number)) value = number;
      }
    };
    if (found->is_array()) {
      for (ordered_json& value : *found) convert(value);
    } else {
      convert(*found);
    }
  }
}

}  // namespace

ordered_json JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  // Fails on times beyond year 9999, which only a broken peer sends.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok())
    return ordered_json::object();
  ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return ordered_json::object();
  NumbersForInt64(*message.GetDescriptor(), json);
  return json;
}

namespace {

std::string Dump(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
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
  return Dump(json, -1);
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

std::string ToJson(const ordered_json& json) { return Dump(json, 2) + "\n"; }

std::string ToJson(const google::protobuf::Message& message) { return ToJson(JsonOf(message)); }

std::string ToJsonLine(const google::protobuf::Message& message) {
  return Dump(JsonOf(message), -1);
}

std::string ToYaml(const ordered_json& json) {
  std::string out;
  AppendYaml(json, "", out);
  return out;
}

std::string ToYaml(const google::protobuf::Message& message) { return ToYaml(JsonOf(message)); }

std::string ToYamlDocument(const google::protobuf::Message& message) {
  return "---\n" + ToYaml(message);
}

}  // namespace mega::cli
