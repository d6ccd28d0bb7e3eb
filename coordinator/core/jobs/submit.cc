#include "coordinator/core/jobs/submit.h"

#include "absl/status/status.h"
#include "coordinator/core/queue/quota.h"
#include "fmt/core.h"
#include "google/protobuf/util/message_differencer.h"

namespace mega::core {
namespace {

using google::protobuf::util::MessageDifferencer;

void Refuse(Draft& draft, const v1::CoreSubmit& submit, absl::StatusCode code,
            std::string_view reason, std::string message) {
  draft.ReplyError(submit.call(), code, reason, std::move(message));
}

void AnswerRepeated(Draft& draft, const v1::CoreSubmit& submit, const v1::JobMetadata& metadata,
                    const v1::Job& job) {
  if (!MessageDifferencer::Equals(job.spec(), submit.spec()) ||
      !MessageDifferencer::Equals(job.metadata(), metadata)) {
    return Refuse(draft, submit, absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
                  fmt::format("request_id '{}' already made job {} ('{}') from a different "
                              "specification; use a new request_id for a new job",
                              submit.request_id(), job.uid(), job.metadata().name()));
  }
  draft.ReplyJob(submit.call(), job.uid());
}

}  // namespace

void Submit(Draft& draft, const v1::CoreSubmit& submit) {
  v1::JobMetadata metadata = submit.metadata();
  if (metadata.namespace_().empty()) metadata.set_namespace_("default");
  const Index& index = draft.state().index;

  const auto repeated = index.request_ids.find(submit.request_id());
  if (repeated != index.request_ids.end()) {
    return AnswerRepeated(draft, submit, metadata, *draft.FindJob(repeated->second));
  }
  if (submit.request_id().empty() || submit.uid().empty() || metadata.name().empty()) {
    return Refuse(draft, submit, absl::StatusCode::kInvalidArgument, "INCOMPLETE_SUBMIT",
                  fmt::format("request_id '{}', uid '{}' and metadata.name '{}' must all be set",
                              submit.request_id(), submit.uid(), metadata.name()));
  }
  if (const v1::Job* same = draft.FindJob(submit.uid())) {
    return Refuse(draft, submit, absl::StatusCode::kAlreadyExists, "UID_TAKEN",
                  fmt::format("uid {} already belongs to job '{}'; submit again", submit.uid(),
                              same->metadata().name()));
  }
  const auto named = index.names.find({metadata.namespace_(), metadata.name()});
  if (named != index.names.end()) {
    return Refuse(draft, submit, absl::StatusCode::kAlreadyExists, "NAME_TAKEN",
                  fmt::format("an unfinished job named '{}' exists in namespace '{}' (uid {}); "
                              "choose another name, or cancel that job first",
                              metadata.name(), metadata.namespace_(), named->second));
  }
  const absl::Status quota = CheckQuota(draft.state(), metadata.namespace_(),
                                        submit.resolved_spec().scheduling().priority());
  if (!quota.ok()) {
    const bool is_too_high = absl::IsInvalidArgument(quota);
    return Refuse(draft, submit, quota.code(), is_too_high ? "PRIORITY_TOO_HIGH" : "NAMESPACE_FULL",
                  std::string(quota.message()));
  }

  v1::Job job;
  job.set_uid(submit.uid());
  job.set_name(fmt::format("namespaces/{}/jobs/{}", metadata.namespace_(), submit.uid()));
  *job.mutable_metadata() = metadata;
  *job.mutable_spec() = submit.spec();
  *job.mutable_resolved_spec() = submit.resolved_spec();
  job.set_request_id(submit.request_id());
  job.set_phase(v1::JOB_PHASE_QUEUED);
  job.set_reason("waiting for its turn in the queue");
  *job.mutable_create_time() = draft.wall();
  draft.AddJob(std::move(job));
  draft.AddEvent(submit.uid(), v1::SEVERITY_INFO, "SUBMITTED",
                 fmt::format("job '{}' was submitted", metadata.name()),
                 {{"request_id", submit.request_id()}});
  draft.ReplyJob(submit.call(), submit.uid());
}

}  // namespace mega::core
