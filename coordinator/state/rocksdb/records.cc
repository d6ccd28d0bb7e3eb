#include "coordinator/state/rocksdb/records.h"

#include "coordinator/state/rocksdb/keys.h"
#include "rocksdb/slice.h"
#include "rocksdb/write_batch.h"

namespace mega::state {

using keys::Of;

absl::Status Records::Add(const v1::Mutation& mutation) {
  switch (mutation.kind_case()) {
    case v1::Mutation::kPutJob:
      return Put(state_, Of(keys::kJob, mutation.put_job().uid()), mutation.put_job());
    case v1::Mutation::kPutNode:
      return Put(state_, Of(keys::kNode, mutation.put_node().name()), mutation.put_node());
    case v1::Mutation::kDeleteNode:
      return Delete(Of(keys::kNode, mutation.delete_node()));
    case v1::Mutation::kPutEvent: {
      const v1::JobEvent& event = mutation.put_event();
      return Put(state_, Of(keys::kEvent, event.job_uid(), event.revision()), event);
    }
    case v1::Mutation::kDeleteEvent: {
      const v1::JobEventKey& key = mutation.delete_event();
      return Delete(Of(keys::kEvent, key.job_uid(), key.revision()));
    }
    case v1::Mutation::kPutMeta:
      return Put(state_, std::string(keys::kMeta), mutation.put_meta());
    case v1::Mutation::kPutCommand: {
      const v1::PendingCommand& pending = mutation.put_command();
      return Put(state_, Of(keys::kCommand, pending.node(), pending.command().seq()), pending);
    }
    case v1::Mutation::kDeleteCommand: {
      const v1::PendingCommandKey& key = mutation.delete_command();
      return Delete(Of(keys::kCommand, key.node(), key.seq()));
    }
    case v1::Mutation::kPutNamespace: {
      const v1::Namespace& limits = mutation.put_namespace();
      return Put(state_, Of(keys::kNamespace, limits.name()), limits);
    }
    case v1::Mutation::kDeleteNamespace:
      return Delete(Of(keys::kNamespace, mutation.delete_namespace()));
    case v1::Mutation::kDeleteJob: {
      const std::string& uid = mutation.delete_job();
      batch_.DeleteRange(state_, Of(keys::kEvent, uid, 0), Of(keys::kEvent, uid, -1));
      batch_.DeleteRange(steps_, Of(keys::kStep, uid, 0), Of(keys::kStep, uid, -1));
      return Delete(Of(keys::kJob, uid));
    }
    case v1::Mutation::KIND_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

absl::Status Records::Add(const v1::StepReport& report) {
  return Put(steps_, Of(keys::kStep, report.job_uid(), report.step()), report);
}

absl::Status Records::Put(rocksdb::ColumnFamilyHandle* family, const std::string& key,
                          const google::protobuf::Message& record) {
  std::string bytes;
  if (record.ByteSizeLong() > most_bytes_ || !record.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError(
        fmt::format("a {} has {} bytes, and a record may have {}; it is the one under key {}",
                    record.GetTypeName(), record.ByteSizeLong(), most_bytes_,
                    rocksdb::Slice(key).ToString(/*hex=*/true)));
  }
  batch_.Put(family, key, bytes);
  return absl::OkStatus();
}

absl::Status Records::Delete(const std::string& key) {
  batch_.Delete(state_, key);
  return absl::OkStatus();
}

}  // namespace mega::state
