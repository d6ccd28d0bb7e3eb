// The keys of a job file, out of the proto's descriptors.
#pragma once

#include <string>
#include <string_view>

#include "google/protobuf/descriptor.h"

namespace mega::cli {

// "training" + "steps" → "training.steps"; "" + "training" → "training".
std::string JoinPath(std::string_view path, std::string_view key);

// The field that a job file gives by this key; null: there is none, or it is the coordinator's to
// set.
const google::protobuf::FieldDescriptor* FindKey(const google::protobuf::Descriptor& section,
                                                 std::string_view key);

// A message that is a section of keys (not a value such as a Duration).
bool IsSection(const google::protobuf::FieldDescriptor& field);

// "a whole number", "a list of text", "true or false" …
std::string TypeName(const google::protobuf::FieldDescriptor& field);

// "; did you mean training.steps?", or "; its keys are …": what to write instead of `key` in
// `section`, whose path is `path` ("" at the top of spec). Also finds a key of another section.
std::string Suggestion(const google::protobuf::Descriptor& section, std::string_view path,
                       std::string_view key);

}  // namespace mega::cli
