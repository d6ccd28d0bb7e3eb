#include "coordinator/state/rocksdb/rocksdb_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "coordinator/core/apply.h"
#include "coordinator/state/rocksdb/database_folder.h"
#include "coordinator/state/rocksdb/keys.h"
#include "coordinator/state/rocksdb/records.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

namespace mega::state {
namespace {

// Rises when an older release could not read what a newer one writes.
constexpr std::string_view kFormatVersion = "1";
// Where nobody knows how many were given away.
constexpr int64_t kNumbersSkipped = int64_t{1} << 32;

absl::Status FromRocks(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = fmt::format("{}: {}", what, status.ToString());
  if (status.IsCorruption()) return absl::DataLossError(text);
  if (status.IsNotFound()) return absl::NotFoundError(text);
  if (status.IsNoSpace()) {
    return absl::ResourceExhaustedError(
        text + "; make room there, then start again: all that was acknowledged is there");
  }
  return absl::UnavailableError(text);
}

rocksdb::DBOptions MakeOptions(rocksdb::Env* env) {
  rocksdb::DBOptions options;
  if (env != nullptr) options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.paranoid_checks = true;
  // A crash may tear the last record. Damage before it means that acknowledged data is gone, and
  // that is said instead of opening an older state.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_total_wal_size = 64 << 20;
  options.max_open_files = 256;
  options.info_log = MakeRocksDbLogger();
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  return options;
}

rocksdb::ColumnFamilyOptions MakeFamilyOptions() {
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = 16 << 20;
  return options;
}

template <typename Message>
absl::Status Parse(const rocksdb::Slice& key, const rocksdb::Slice& value, Message* message) {
  if (message->ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return absl::OkStatus();
  }
  return DataLoss(
      "the record under key {} of the state store is damaged; restore the state folder "
      "from a backup, or start with an empty one",
      key.ToString(/*hex=*/true));
}

// Another process, or this one, has the folder open. RocksDB says so in words alone, and says
// "lock" also when its lock file cannot be opened, when the file system has no locks to give
// (ENOLCK, which RocksDB takes for its own process's word as well), or when the path has it.
bool IsLocked(const rocksdb::Status& status, const std::string& folder) {
  const std::string words = status.ToString();
  const auto has = [&words](const std::string& part) {
    return words.find(part) != std::string::npos;
  };
  const bool is_held =
      has("While lock file: " + folder + "/LOCK") && !has("/LOCK: No locks available");
  return status.IsIOError() && (is_held || has("lock hold by current process"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(const std::string& folder,
                                                                 rocksdb::Env* env,
                                                                 bool accept_loss) {
  std::unique_ptr<RocksDbStore> store(new RocksDbStore(folder, accept_loss));
  const auto found = LookInto(folder);
  if (absl::IsDataLoss(found.status()))
    return Damaged(folder, std::string(found.status().message()));
  MEGA_RETURN_IF_ERROR(found.status());
  if (!found->has_database) MEGA_RETURN_IF_ERROR(store->CheckMayBegin(found->has_data));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("state folder '{}'", folder));
  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
      {rocksdb::kDefaultColumnFamilyName, MakeFamilyOptions()}, {"steps", MakeFamilyOptions()}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(MakeOptions(env), folder, families, &handles, &db);
  if (IsLocked(status, folder)) {
    return FailedPrecondition(
        "state folder '{}' is in use by another coordinator; stop it, or give "
        "this one another --state-dir ({})",
        folder, status.ToString());
  }
  if (status.IsInvalidArgument()) {
    return FailedPrecondition("state folder '{}' was written by a newer release: {}", folder,
                              status.ToString());
  }
  if (IsDamage(status)) return Damaged(folder, status.ToString());
  MEGA_RETURN_IF_ERROR(FromRocks(status, fmt::format("opening state folder '{}'", folder)));
  store->db_.reset(db);
  store->state_ = handles[0];
  store->steps_ = handles[1];
  MEGA_RETURN_IF_ERROR(store->CheckFormat(!found->has_database));
  return store;
}

RocksDbStore::RocksDbStore(std::string folder, bool accept_loss)
    : folder_(std::move(folder)), accept_loss_(accept_loss), mark_(folder_ + ".revision") {}

// Without CURRENT RocksDB makes a database. The mark comes before it, so that a start that is cut
// short in between leaves no database without one.
absl::Status RocksDbStore::CheckMayBegin(bool has_data) {
  if (has_data) return Damaged(folder_, "it holds data, but CURRENT is gone");
  const auto promised = mark_.Read();
  if (absl::IsPermissionDenied(promised.status())) return promised.status();
  const bool has_promised = !promised.ok() || promised->value_or(0) > 0;
  if (has_promised && !accept_loss_) {
    return Damaged(folder_, promised.ok()
                                ? fmt::format("it holds no database, but changes up to revision {} "
                                              "were acknowledged ({})",
                                              **promised, mark_.path())
                                : fmt::format("it holds no database, and {}",
                                              std::string(promised.status().message())));
  }
  if (has_promised || promised->has_value()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path(), error);
  if (error) return ErrnoStatus(error.value(), fmt::format("state folder '{}'", folder_));
  const absl::Status made = mark_.Make(0);
  if (!absl::IsResourceExhausted(made)) return made;
  return absl::ResourceExhaustedError(
      absl::StrCat(made.message(), "; make room there, then start again"));
}

RocksDbStore::~RocksDbStore() {
  if (db_ == nullptr) return;
  db_->DestroyColumnFamilyHandle(state_);
  db_->DestroyColumnFamilyHandle(steps_);
}

absl::Status RocksDbStore::CheckFormat(bool is_new) {
  const std::string key(keys::kFormat);
  std::string found;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), state_, key, &found);
  if (status.IsNotFound()) {
    // A first start may have been cut short before the key was there; then there is nothing else.
    std::unique_ptr<rocksdb::Iterator> any(db_->NewIterator(rocksdb::ReadOptions(), state_));
    any->SeekToFirst();
    if (!is_new && any->Valid()) {
      return DataLoss(
          "state folder '{}' holds data but no format version; it is not this "
          "program's, or damaged",
          folder_);
    }
    rocksdb::WriteOptions synced;
    synced.sync = true;
    return FromRocks(db_->Put(synced, state_, key, std::string(kFormatVersion)),
                     fmt::format("writing to state folder '{}'", folder_));
  }
  MEGA_RETURN_IF_ERROR(FromRocks(status, fmt::format("reading state folder '{}'", folder_)));
  if (found == kFormatVersion) return absl::OkStatus();
  return FailedPrecondition(
      "state folder '{}' has format '{}', and this release reads '{}'; start "
      "the release that wrote it, or use another --state-dir",
      folder_, found, kFormatVersion);
}

absl::StatusOr<core::State> RocksDbStore::Load() const {
  core::State state;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const rocksdb::Slice key = it->key();
    if (key == rocksdb::Slice(keys::kFormat.data(), keys::kFormat.size())) continue;
    v1::Mutation mutation;
    switch (key[0]) {
      case 'm':
        MEGA_RETURN_IF_ERROR(Parse(key, it->value(), mutation.mutable_put_meta()));
        break;
      case keys::kJob:
        MEGA_RETURN_IF_ERROR(Parse(key, it->value(), mutation.mutable_put_job()));
        break;
      case keys::kNode:
        MEGA_RETURN_IF_ERROR(Parse(key, it->value(), mutation.mutable_put_node()));
        break;
      case keys::kEvent:
        MEGA_RETURN_IF_ERROR(Parse(key, it->value(), mutation.mutable_put_event()));
        break;
      case keys::kCommand:
        MEGA_RETURN_IF_ERROR(Parse(key, it->value(), mutation.mutable_put_command()));
        break;
      case keys::kNamespace:
        MEGA_RETURN_IF_ERROR(Parse(key, it->value(), mutation.mutable_put_namespace()));
        break;
      default:
        return FailedPrecondition(
            "state folder '{}' holds a record of an unknown kind under key "
            "{}; a newer release wrote it",
            folder_, key.ToString(/*hex=*/true));
    }
    core::Apply(state, mutation);
  }
  MEGA_RETURN_IF_ERROR(FromRocks(it->status(), fmt::format("reading state folder '{}'", folder_)));
  MEGA_RETURN_IF_ERROR(CheckPromises(state.durable.meta));
  return state;
}

// Numbers that were given away since must not be given again: epochs, above all, tell a rank that
// may still run from the one that replaces it.
absl::Status RocksDbStore::CheckPromises(v1::Meta& meta) const {
  const auto promised = mark_.Read();
  if (absl::IsPermissionDenied(promised.status())) return promised.status();
  // A first start may have been cut short before there was a mark; then nothing is in the store.
  const bool is_known = promised.ok() && (promised->has_value() || meta.revision() == 0);
  if (is_known && promised->value_or(0) <= meta.revision()) return absl::OkStatus();
  if (!accept_loss_ && is_known) {
    return DataLoss(
        "state folder '{}' is at revision {}, but changes up to revision {} were acknowledged "
        "({}): what was decided in between is missing, as when its log was cut or a file of it "
        "removed. Restore the whole state folder from a backup; or go on without that, once, with "
        "--accept-lost-state: jobs that were submitted since are forgotten, and their ranks ended",
        folder_, meta.revision(), **promised, mark_.path());
  }
  if (!accept_loss_) {
    return DataLoss(
        "state folder '{}' is at revision {}, but up to which revision changes were acknowledged "
        "cannot be told: {}. Restore the whole state folder from a backup; or go on, once, with "
        "--accept-lost-state: what is missing, if anything is, is forgotten",
        folder_, meta.revision(),
        promised.ok() ? mark_.path() + " is gone" : std::string(promised.status().message()));
  }
  const int64_t next = is_known ? **promised : meta.revision() + kNumbersSkipped;
  log::Error("going on without changes that were acknowledged, as --accept-lost-state says",
             {{"state_dir", folder_},
              {"revision", meta.revision()},
              {"acknowledged", is_known ? fmt::format("{}", next) : "unknown"}});
  // Each epoch has an event, and each event a revision; witness sets have no such measure.
  meta.set_next_epoch(meta.next_epoch() + next - meta.revision());
  meta.set_next_witness_set(meta.next_witness_set() + kNumbersSkipped);
  meta.set_revision(next);
  return absl::OkStatus();
}

// One writer at a time, and none after a write that failed: RocksDB's log is broken from then on,
// and to touch it again ends the process on an assertion.
absl::Status RocksDbStore::Write(rocksdb::WriteBatch& batch, bool sync, std::string_view what) {
  MutexLock lock(write_mu_);
  if (!failure_.ok()) {
    return FailedPrecondition(
        "an earlier write to state folder '{}' failed; restart to continue from what is on the "
        "disk ({})",
        folder_, std::string(failure_.message()));
  }
  rocksdb::WriteOptions options;
  options.sync = sync;
  failure_ = FromRocks(db_->Write(options, &batch),
                       fmt::format("writing {} to state folder '{}'", what, folder_));
  return failure_;
}

absl::Status RocksDbStore::Commit(std::span<const v1::Mutation> mutations) {
  rocksdb::WriteBatch batch;
  Records records(batch, state_, steps_);
  std::optional<int64_t> revision;
  for (const v1::Mutation& mutation : mutations) {
    MEGA_RETURN_IF_ERROR(records.Add(mutation));
    if (mutation.has_put_meta()) revision = mutation.put_meta().revision();
  }
  MEGA_RETURN_IF_ERROR(Write(batch, /*sync=*/true, "changes"));
  if (revision) mark_.Write(*revision);
  return absl::OkStatus();
}

absl::Status RocksDbStore::AppendSteps(std::span<const v1::StepReport> reports) {
  rocksdb::WriteBatch batch;
  Records records(batch, state_, steps_);
  for (const v1::StepReport& report : reports) MEGA_RETURN_IF_ERROR(records.Add(report));
  return Write(batch, /*sync=*/false, "steps");
}

absl::StatusOr<std::vector<v1::StepReport>> RocksDbStore::ReadSteps(const std::string& job_uid,
                                                                    int64_t from_step,
                                                                    int64_t limit) const {
  std::vector<v1::StepReport> reports;
  const std::string prefix = keys::Of(keys::kStep, job_uid);
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), steps_));
  it->Seek(keys::Of(keys::kStep, job_uid, std::max<int64_t>(from_step, 0)));
  for (; it->Valid() && it->key().starts_with(prefix) && std::ssize(reports) < limit; it->Next()) {
    MEGA_RETURN_IF_ERROR(Parse(it->key(), it->value(), &reports.emplace_back()));
  }
  MEGA_RETURN_IF_ERROR(
      FromRocks(it->status(), fmt::format("reading steps from state folder '{}'", folder_)));
  return reports;
}

absl::StatusOr<std::optional<v1::StepReport>> RocksDbStore::NewestStep(const std::string& job_uid,
                                                                       int64_t epoch,
                                                                       int64_t after_step) const {
  const std::string first = keys::Of(keys::kStep, job_uid, std::max<int64_t>(after_step, 0) + 1);
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), steps_));
  for (it->SeekForPrev(keys::Of(keys::kStep, job_uid, INT64_MAX));
       it->Valid() && it->key().compare(first) >= 0; it->Prev()) {
    v1::StepReport report;
    MEGA_RETURN_IF_ERROR(Parse(it->key(), it->value(), &report));
    if (report.epoch() == epoch) return report;
  }
  MEGA_RETURN_IF_ERROR(
      FromRocks(it->status(), fmt::format("reading steps from state folder '{}'", folder_)));
  return std::nullopt;
}

}  // namespace mega::state
