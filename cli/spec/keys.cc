#include "cli/spec/keys.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "fmt/core.h"
#include "mega/v1/job.pb.h"

namespace mega::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Metadata that the coordinator fills in: what a file said of it would do nothing.
bool IsOutputOnly(const FieldDescriptor& field) {
  return &field ==
         v1::JobMetadata::descriptor()->FindFieldByNumber(v1::JobMetadata::kOwnerFieldNumber);
}

// Path of the only key of a job spec with this name, in whatever section; empty when none or many.
std::string OnlyKeyNamed(std::string_view key) {
  struct Level {
    const Descriptor* section;
    std::string path;
  };
  std::string found;
  std::vector<Level> todo = {{v1::JobSpec::descriptor(), ""}};
  while (!todo.empty()) {
    const Level level = todo.back();
    todo.pop_back();
    for (int i = 0; i < level.section->field_count(); ++i) {
      const FieldDescriptor& field = *level.section->field(i);
      if (field.name() == key) {
        if (!found.empty()) return "";
        found = JoinPath(level.path, field.name());
      }
      if (IsSection(field))
        todo.push_back({field.message_type(), JoinPath(level.path, field.name())});
    }
  }
  return found;
}

}  // namespace

std::string JoinPath(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

const FieldDescriptor* FindKey(const Descriptor& section, std::string_view key) {
  const FieldDescriptor* field = section.FindFieldByName(std::string(key));
  return field == nullptr || IsOutputOnly(*field) ? nullptr : field;
}

bool IsSection(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map() &&
         field.message_type()->full_name() != "google.protobuf.Duration";
}

std::string TypeName(const FieldDescriptor& field) {
  if (field.is_map()) return "a section of labels";
  std::string one;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      one = "true or false";
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      one = field.is_repeated() ? "numbers" : "a number";
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      one = field.is_repeated() ? "whole numbers" : "a whole number";
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      one = "text";
      break;
    default:
      one = IsSection(field) ? "a section" : "a span of time";
      break;
  }
  return field.is_repeated() ? absl::StrCat("a list of ", one) : one;
}

std::string Suggestion(const Descriptor& section, std::string_view path, std::string_view key) {
  std::vector<std::string> keys;
  for (int i = 0; i < section.field_count(); ++i)
    if (!IsOutputOnly(*section.field(i))) keys.push_back(section.field(i)->name());
  if (const std::string elsewhere = OnlyKeyNamed(key); !elsewhere.empty())
    return absl::StrCat("; did you mean ", elsewhere, "?");
  if (const std::string nearest = Nearest(key, keys); !nearest.empty())
    return absl::StrCat("; did you mean ", JoinPath(path, nearest), "?");
  return absl::StrCat("; the keys here are ", absl::StrJoin(keys, ", "));
}

}  // namespace mega::cli
