// Messages that are wrong in one place, for whoever must stand anything that comes from outside.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace mega::service {

// Sets every field by these values, by name, and gives each list one element, so that there is
// something to be wrong in. Of a oneof only the member that is set.
struct Filling {
  std::map<std::string, int64_t> numbers;
  std::map<std::string, std::string> strings;
};
void Fill(google::protobuf::Message& message, const Filling& filling);

// Changes one field of a message, at any depth.
struct Mutation {
  std::string where;  // the field, and what becomes of it
  std::function<void(google::protobuf::Message&)> apply;
};
// All for messages of the shape of `base`: extreme numbers, long and empty texts, absent and empty
// parts, lists without an element and with thousands.
std::vector<Mutation> MutationsOf(const google::protobuf::Message& base);

}  // namespace mega::service
