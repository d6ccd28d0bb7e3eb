#include "coordinator/planner/spec/json_schema.h"

#include <span>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "coordinator/planner/spec/keys.h"
#include "coordinator/planner/spec/spec.h"
#include "coordinator/planner/spec/units.h"
#include "nlohmann/json.hpp"

namespace mega::spec {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

namespace {

std::string OneOf(std::span<const Suffix> suffixes) {
  std::string words;
  for (const Suffix& suffix : suffixes) words.append(words.empty() ? "" : "|").append(suffix.text);
  return "(" + words + ")";
}

// "1.5T" tokens, "500k" steps; 0123 is octal to others, and refused.
std::string QuantityPattern(std::string_view unit) {
  return absl::StrCat("^\\+?((0|[1-9][0-9]*)(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?",
                      OneOf(SuffixesOf(unit)), "?$");
}

// "1h30m", or seconds.
std::string DurationPattern() {
  const std::string number = "([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?";
  const std::string more = "[0-9]+\\.?[0-9]*([eE][+-]?[0-9]+)?";
  const std::string suffix = OneOf(TimeSuffixes());
  return absl::StrCat("^\\+?", number, "(", suffix, "(", more, suffix, ")*)?$");
}

// A rule's text as the JSON value of the field's type.
Json Value(const FieldDescriptor& field, const std::string& text) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      MEGA_CHECK(absl::SimpleAtoi(text, &value));
      return value;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      MEGA_CHECK(absl::SimpleAtod(text, &value));
      return value;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return text == "true";
    default:
      return text;
  }
}

Json Values(const FieldDescriptor& field, const std::vector<std::string>& texts) {
  Json values = Json::array();
  for (const std::string& text : texts) values.push_back(Value(field, text));
  return values;
}

std::vector<std::string> AvailableWords(const v1::KeyRule& rule) {
  const std::vector<std::string> refused = Words(rule.unavailable_words());
  std::vector<std::string> words;
  for (const std::string& word : Words(rule.one_of()))
    if (std::find(refused.begin(), refused.end(), word) == refused.end()) words.push_back(word);
  return words;
}

Json OrText(const Json& number, const std::string& pattern) {
  return {{"anyOf", {number, {{"type", "string"}, {"pattern", pattern}}}}};
}

Json NumberSchema(const FieldDescriptor& field, const v1::KeyRule& rule, const char* type) {
  Json number = {{"type", type}};
  if (!rule.min().empty()) number["minimum"] = Value(field, rule.min());
  if (!rule.max().empty()) number["maximum"] = Value(field, rule.max());
  if (!rule.unavailable_words().empty())
    number["not"] = {{"enum", Values(field, Words(rule.unavailable_words()))}};
  if (SuffixesOf(rule.unit()).empty()) return number;
  return OrText(number, QuantityPattern(rule.unit()));
}

// Its bounds are in seconds, as a bare number is.
Json DurationSchema(const v1::KeyRule& rule) {
  Json seconds = {{"type", "number"}};
  double bound = 0;
  if (absl::SimpleAtod(rule.min(), &bound)) seconds["minimum"] = bound;
  if (absl::SimpleAtod(rule.max(), &bound)) seconds["maximum"] = bound;
  return OrText(seconds, DurationPattern());
}

// What one value may be, before "auto" and lists.
Json ValueSchema(const FieldDescriptor& field, const v1::KeyRule& rule) {
  if (IsDuration(field)) return DurationSchema(rule);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return NumberSchema(field, rule, "integer");
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberSchema(field, rule, "number");
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    default: {
      const std::vector<std::string> words = AvailableWords(rule);
      if (!words.empty()) return {{"enum", words}};
      return {{"type", "string"}, {"minLength", 1}};
    }
  }
}

Json KeySchema(const FieldDescriptor& field) {
  const v1::KeyRule rule = RuleOf(field);
  Json schema;
  std::string description = rule.help();
  if (!rule.unavailable().empty()) {
    description += (description.empty() ? "" : ". ") + ("Not available: " + rule.unavailable());
    Json values = Values(field, Words(rule.inert()));
    values.push_back("auto");
    schema = {{"enum", values}};
  } else if (field.is_repeated()) {
    schema = {{"type", "array"}, {"items", ValueSchema(field, rule)}};
    if (rule.required()) schema["minItems"] = 1;
  } else if (rule.required()) {
    schema = ValueSchema(field, rule);
  } else {
    // Leaving a key out and writing auto are the same.
    schema = {{"anyOf", {ValueSchema(field, rule), {{"const", "auto"}}}}};
  }
  if (!description.empty()) schema["description"] = description;
  if (!rule.default_().empty()) schema["default"] = Value(field, rule.default_());
  return schema;
}

Json GroupSchema(const Descriptor& descriptor) {
  Json properties = Json::object();
  Json required = Json::array();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (!IsGroup(field)) {
      properties[field.name()] = KeySchema(field);
      if (RuleOf(field).required()) required.push_back(field.name());
      continue;
    }
    properties[field.name()] = GroupSchema(*field.message_type());
    if (properties[field.name()].contains("required")) required.push_back(field.name());
  }
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

Json MetadataSchema() {
  const Json dns_label = {
      {"type", "string"}, {"pattern", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}, {"maxLength", 63}};
  Json name = dns_label, name_space = dns_label;
  name["description"] = "Name of the job, unique in its namespace among unfinished jobs";
  name_space["description"] = "Namespace of the job";
  name_space["default"] = "default";
  return {{"type", "object"},
          {"additionalProperties", false},
          {"properties",
           {{"name", name},
            {"namespace", name_space},
            {"labels",
             {{"type", "object"},
              {"maxProperties", 64},
              {"additionalProperties", {{"type", "string"}, {"maxLength", 63}}}}}}},
          {"required", {"name"}}};
}

}  // namespace

Json JsonSchema() {
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "Mega training job"},
          {"type", "object"},
          {"additionalProperties", false},
          {"properties",
           {{"apiVersion", {{"const", "mega/v1"}}},
            {"kind", {{"const", "TrainingJob"}}},
            {"metadata", MetadataSchema()},
            {"spec", GroupSchema(*v1::JobSpec::descriptor())}}},
          {"required", {"apiVersion", "kind", "metadata", "spec"}}};
}

}  // namespace mega::spec
