#include "base/check.h"
#include "coordinator/planner/spec/keys.h"
#include "coordinator/planner/spec/spec.h"

namespace mega::spec {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

bool HasDefaults(const google::protobuf::Descriptor& descriptor) {
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (IsGroup(field) ? HasDefaults(*field.message_type()) : !RuleOf(field).default_().empty())
      return true;
  }
  return false;
}

void Apply(Message& message) {
  const auto& descriptor = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (IsGroup(field)) {
      if (reflection.HasField(message, &field) || HasDefaults(*field.message_type()))
        Apply(*reflection.MutableMessage(&message, &field));
      continue;
    }
    const v1::KeyRule rule = RuleOf(field);
    if (field.is_repeated() || rule.default_().empty() || reflection.HasField(message, &field))
      continue;
    // The texts are ours (job.proto); a test reads every one.
    MEGA_CHECK_OK(SetFromText(message, field, rule.default_()));
  }
}

}  // namespace

v1::KeyRule RuleOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::key); }

v1::JobSpec ApplyDefaults(const v1::JobSpec& spec) {
  v1::JobSpec resolved = spec;
  const auto& descriptor = *v1::JobSpec::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i)
    resolved.GetReflection()->MutableMessage(&resolved, descriptor.field(i));
  Apply(resolved);
  return resolved;
}

}  // namespace mega::spec
