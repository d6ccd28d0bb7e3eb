#include "coordinator/planner/spec/keys.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "fmt/format.h"
#include "google/protobuf/duration.pb.h"

namespace mega::spec {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

void Visit(const Message& message, const std::string& prefix, const KeyVisitor& visit) {
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    const std::string path = prefix + field.name();
    if (IsGroup(field)) {
      Visit(message.GetReflection()->GetMessage(message, &field), path + ".", visit);
    } else {
      visit(message, field, path);
    }
  }
}

}  // namespace

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type() == google::protobuf::Duration::descriptor();
}

bool IsGroup(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsDuration(field);
}

std::vector<std::string> Words(std::string_view list) {
  return absl::StrSplit(View(list), ',', absl::SkipEmpty());
}

std::string Choices(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  if (words.size() == 1) return words[0];
  return absl::StrJoin(words.begin(), words.end() - 1, ", ") + " or " + words.back();
}

std::string TextOf(const Message& message, const FieldDescriptor& field, int index) {
  const auto& reflection = *message.GetReflection();
  const bool list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return fmt::format("{}", list ? reflection.GetRepeatedInt64(message, &field, index)
                                    : reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fmt::format("{}", list ? reflection.GetRepeatedDouble(message, &field, index)
                                    : reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_STRING:
      return list ? reflection.GetRepeatedString(message, &field, index)
                  : reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      google::protobuf::Duration span;
      span.CopyFrom(reflection.GetMessage(message, &field));
      return fmt::format("{}s", absl::ToDoubleSeconds(FromProto(span)));
    }
    default:
      return "";
  }
}

absl::Status SetFromText(Message& message, const FieldDescriptor& field, std::string_view text) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      if (!absl::SimpleAtoi(View(text), &value)) break;
      reflection.SetInt64(&message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(View(text), &value) || !std::isfinite(value)) break;
      reflection.SetDouble(&message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") break;
      reflection.SetBool(&message, &field, text == "true");
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&message, &field, std::string(text));
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      absl::Duration span;
      if (!absl::ParseDuration(View(text), &span)) break;
      reflection.MutableMessage(&message, &field)->CopyFrom(ToProto(span));
      return absl::OkStatus();
    }
    default:
      break;
  }
  return InvalidArgument("{} cannot be '{}'", field.name(), text);
}

void VisitKeys(const Message& message, const KeyVisitor& visit) { Visit(message, "", visit); }

}  // namespace mega::spec
