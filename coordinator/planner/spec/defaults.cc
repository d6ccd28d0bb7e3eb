#include <map>
#include <string_view>

#include "base/check.h"
#include "coordinator/planner/spec/keys.h"
#include "coordinator/planner/spec/spec.h"

namespace mega::spec {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

// Keys that job.proto still calls unavailable though they have been built since. A line goes when
// the proto is edited; the next edit of it should take all of them.
struct Built {
  const char* default_value;
  const char* help;
};
const std::map<std::string_view, Built> kBuilt = {
    {"mega.v1.Scheduling.priority",
     {"0", "Jobs of higher priority come first, and take devices of lower ones"}},
    {"mega.v1.Scheduling.preemptible",
     {"true", "May be made to yield to a job of higher priority"}},
    {"mega.v1.Scheduling.preempt_grace", {"60s", "Time to save before it yields"}},
    {"mega.v1.Scheduling.time_limit",
     {"", "Holds devices at most so long, over all attempts; then it saves and ends"}},
    {"mega.v1.Scheduling.estimated_runtime",
     {"", "How long it will run, for estimates of when others start"}},
};

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

v1::KeyRule RuleOf(const FieldDescriptor& field) {
  v1::KeyRule rule = field.options().GetExtension(v1::key);
  const auto built = kBuilt.find(field.full_name());
  if (built == kBuilt.end()) return rule;
  rule.clear_unavailable();
  rule.clear_inert();
  rule.set_default_(built->second.default_value);
  rule.set_help(built->second.help);
  return rule;
}

v1::JobSpec ApplyDefaults(const v1::JobSpec& spec) {
  v1::JobSpec resolved = spec;
  const auto& descriptor = *v1::JobSpec::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i)
    resolved.GetReflection()->MutableMessage(&resolved, descriptor.field(i));
  Apply(resolved);
  return resolved;
}

}  // namespace mega::spec
