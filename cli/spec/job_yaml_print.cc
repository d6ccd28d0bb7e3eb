#include "cli/spec/job_yaml_print.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/spec/keys.h"
#include "cli/spec/scalar.h"

namespace mega::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Plain when no reader could take it for anything but text.
bool IsPlainWord(std::string_view text) {
  if (text.empty() || text == "auto" || text == "null" || text == "true" || text == "false")
    return false;
  if (!absl::ascii_isalpha(text[0]) && text[0] != '/' && text[0] != '_') return false;
  for (const char c : text)
    if (!absl::ascii_isalnum(c) && std::string_view("/_-.+").find(c) == std::string_view::npos)
      return false;
  return true;
}

std::string Quoted(std::string_view text) {
  if (IsPlainWord(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// A scalar, or element `index` of a list (−1: not a list).
std::string Scalar(const Message& message, const FieldDescriptor& field, int index) {
  const auto* reflection = message.GetReflection();
  const bool list = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(list ? reflection->GetRepeatedInt64(message, &field, index)
                               : reflection->GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return FormatNumber(list ? reflection->GetRepeatedDouble(message, &field, index)
                               : reflection->GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return Quoted(list ? reflection->GetRepeatedString(message, &field, index)
                         : reflection->GetString(message, &field));
    default: {
      google::protobuf::Duration duration;
      duration.CopyFrom(reflection->GetMessage(message, &field));
      return FormatDuration(duration);
    }
  }
}

void PrintSection(const Message& message, const std::string& indent, std::string& out) {
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_map() || FindKey(*message.GetDescriptor(), field.name()) == nullptr) continue;
    if (field.is_repeated()) {
      const int size = reflection->FieldSize(message, &field);
      if (size == 0) continue;
      absl::StrAppend(&out, indent, field.name(), ":\n");
      for (int item = 0; item < size; ++item)
        absl::StrAppend(&out, indent, "  - ", Scalar(message, field, item), "\n");
      continue;
    }
    if (!reflection->HasField(message, &field)) continue;
    if (!IsSection(field)) {
      absl::StrAppend(&out, indent, field.name(), ": ", Scalar(message, field, -1), "\n");
      continue;
    }
    std::string keys;
    PrintSection(reflection->GetMessage(message, &field), indent + "  ", keys);
    absl::StrAppend(&out, indent, field.name(), keys.empty() ? ": {}\n" : ":\n", keys);
  }
}

}  // namespace

std::string PrintJob(const v1::JobMetadata& metadata, const v1::JobSpec& spec) {
  std::string out = "apiVersion: mega/v1\nkind: TrainingJob\nmetadata:\n";
  PrintSection(metadata, "  ", out);
  if (!metadata.labels().empty()) {
    out += "  labels:\n";
    const std::map<std::string, std::string> sorted(metadata.labels().begin(),
                                                    metadata.labels().end());
    for (const auto& [key, value] : sorted)
      absl::StrAppend(&out, "    ", Quoted(key), ": ", Quoted(value), "\n");
  }
  out += "spec:\n";
  PrintSection(spec, "  ", out);
  return out;
}

}  // namespace mega::cli
