#include "tests/coordinator/service/mutations.h"

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "google/protobuf/descriptor.h"

namespace mega::service {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMany = 5000;
constexpr size_t kLong = 70'000;

bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// The member of a oneof that the message does not have.
bool IsOtherMember(const Message& message, const FieldDescriptor& field) {
  return field.real_containing_oneof() != nullptr &&
         !message.GetReflection()->HasField(message, &field);
}

using Change = std::function<void(Message&)>;

template <typename T>
std::vector<T> Extremes() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return {0, -1, Limits::max(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
  } else {
    return {0, 1, static_cast<T>(-1), Limits::min(), Limits::max(), Limits::max() / 2048};
  }
}

std::vector<std::string> Texts(bool is_bytes) {
  std::vector<std::string> texts = {"", "x", "../..", "a\nb", std::string(kLong, 'x')};
  if (is_bytes) texts.push_back(std::string("\0\xff\xfe", 3));
  return texts;
}

template <typename T, typename Set, typename Add>
void AddChanges(const FieldDescriptor* field, const std::vector<T>& values, Set set, Add add,
                std::vector<std::pair<std::string, Change>>& changes) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    changes.emplace_back(fmt::format("value {}", i), [=](Message& message) {
      const auto& reflection = *message.GetReflection();
      if (!field->is_repeated()) return (reflection.*set)(&message, field, value);
      reflection.ClearField(&message, field);
      (reflection.*add)(&message, field, value);
    });
  }
  if (!field->is_repeated()) return;
  changes.emplace_back("many", [=](Message& message) {
    for (int i = 0; i < kMany; ++i) {
      (message.GetReflection()->*add)(&message, field, values[i % values.size()]);
    }
  });
}

std::vector<std::pair<std::string, Change>> ChangesOf(const FieldDescriptor* field) {
  using google::protobuf::Reflection;
  std::vector<std::pair<std::string, Change>> changes;
  changes.emplace_back("absent", [field](Message& message) {
    message.GetReflection()->ClearField(&message, field);
  });
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      AddChanges(field, Extremes<int32_t>(), &Reflection::SetInt32, &Reflection::AddInt32, changes);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      AddChanges(field, Extremes<int64_t>(), &Reflection::SetInt64, &Reflection::AddInt64, changes);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      AddChanges(field, Extremes<uint32_t>(), &Reflection::SetUInt32, &Reflection::AddUInt32,
                 changes);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      AddChanges(field, Extremes<uint64_t>(), &Reflection::SetUInt64, &Reflection::AddUInt64,
                 changes);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      AddChanges(field, Extremes<double>(), &Reflection::SetDouble, &Reflection::AddDouble,
                 changes);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      AddChanges(field, Extremes<float>(), &Reflection::SetFloat, &Reflection::AddFloat, changes);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      AddChanges(field, std::vector<bool>{true, false}, &Reflection::SetBool, &Reflection::AddBool,
                 changes);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      AddChanges(field, std::vector<int>{0, 1, 2, 3, 4, -1, 1'000'000}, &Reflection::SetEnumValue,
                 &Reflection::AddEnumValue, changes);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      AddChanges(field, Texts(field->type() == FieldDescriptor::TYPE_BYTES), &Reflection::SetString,
                 &Reflection::AddString, changes);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field->is_repeated()) {
        changes.emplace_back("many", [field](Message& message) {
          const auto& reflection = *message.GetReflection();
          for (int i = 0; i < kMany; ++i) {
            Message* more = reflection.AddMessage(&message, field);
            if (field->is_map()) {  // or all would be one
              const FieldDescriptor* key = field->message_type()->map_key();
              more->GetReflection()->SetString(more, key, std::to_string(i));
            } else if (i > 0) {
              more->CopyFrom(reflection.GetRepeatedMessage(message, field, 0));
            }
          }
        });
      } else {
        changes.emplace_back("empty", [field](Message& message) {
          message.GetReflection()->MutableMessage(&message, field)->Clear();
        });
      }
      break;
  }
  return changes;
}

// Where a message lies in another: fields, and whether each is a list, of which it is the first.
using Path = std::vector<std::pair<const FieldDescriptor*, bool>>;

Message& Reach(Message& root, const Path& path) {
  Message* at = &root;
  for (const auto& [field, is_list] : path) {
    const auto& reflection = *at->GetReflection();
    at = is_list ? reflection.MutableRepeatedMessage(at, field, 0)
                 : reflection.MutableMessage(at, field);
  }
  return *at;
}

void AddMutations(const Message& here, const Path& path, const std::string& where,
                  std::vector<Mutation>& mutations) {
  const auto& reflection = *here.GetReflection();
  const Descriptor& type = *here.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (IsOtherMember(here, *field)) continue;
    const std::string name = where.empty() ? field->name() : where + "." + field->name();
    for (auto& [what, change] : ChangesOf(field)) {
      mutations.push_back({name + ": " + what, [path, change = std::move(change)](Message& root) {
                             change(Reach(root, path));
                           }});
    }
    if (!IsMessage(*field)) continue;
    if (field->is_repeated() && reflection.FieldSize(here, field) == 0) continue;
    Path inner = path;
    inner.push_back({field, field->is_repeated()});
    AddMutations(field->is_repeated() ? reflection.GetRepeatedMessage(here, field, 0)
                                      : reflection.GetMessage(here, field),
                 inner, name, mutations);
  }
}

}  // namespace

void Fill(Message& message, const Filling& filling) {
  const auto& reflection = *message.GetReflection();
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (IsOtherMember(message, *field)) continue;
    if (IsMessage(*field)) {
      if (!field->is_repeated()) {
        Fill(*reflection.MutableMessage(&message, field), filling);
      } else if (reflection.FieldSize(message, field) == 0) {
        Fill(*reflection.AddMessage(&message, field), filling);
      }
      continue;
    }
    const auto number = filling.numbers.find(field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 && !field->is_repeated() &&
        number != filling.numbers.end()) {
      reflection.SetInt64(&message, field, number->second);
    }
    const auto text = filling.strings.find(field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated() &&
        text != filling.strings.end()) {
      reflection.SetString(&message, field, text->second);
    }
  }
}

std::vector<Mutation> MutationsOf(const Message& base) {
  std::vector<Mutation> mutations;
  AddMutations(base, {}, "", mutations);
  return mutations;
}

}  // namespace mega::service
