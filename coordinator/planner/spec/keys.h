// Walks over the keys of a job file. A Duration is a scalar here: people write it as one ("60s").
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/planner/spec/spec.h"
#include "google/protobuf/message.h"

namespace mega::spec {

bool IsDuration(const google::protobuf::FieldDescriptor& field);
// A section or group of keys, as opposed to a value.
bool IsGroup(const google::protobuf::FieldDescriptor& field);

// "a,b,c" → {"a", "b", "c"}; "" → {}.
std::vector<std::string> Words(std::string_view list);
// "a, b or c".
std::string Choices(const std::vector<std::string>& words);

// The value as it would be written in a job file: shortest text that reads back the same. `index`
// counts within a list, and is ignored for a single value.
std::string TextOf(const google::protobuf::Message& message,
                   const google::protobuf::FieldDescriptor& field, int index = 0);

// Sets a single value from text (bounds are not checked here). INVALID_ARGUMENT if it is not one.
absl::Status SetFromText(google::protobuf::Message& message,
                         const google::protobuf::FieldDescriptor& field, std::string_view text);

// Calls `visit` for every key, set or not, with its path ("parallelism.rank_order"). Groups that
// are absent are walked as empty ones, so that their required keys are seen too.
using KeyVisitor =
    std::function<void(const google::protobuf::Message& parent,
                       const google::protobuf::FieldDescriptor& field, const std::string& path)>;
void VisitKeys(const google::protobuf::Message& message, const KeyVisitor& visit);

}  // namespace mega::spec
