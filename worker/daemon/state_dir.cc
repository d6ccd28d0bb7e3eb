#include "worker/daemon/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <system_error>

#include "base/atomic_file.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "google/protobuf/util/json_util.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;

// A record holds at most some hundred exits with 64 KiB of stderr each.
constexpr size_t kMaxRecordBytes = 256 << 20;

absl::Status CreateFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot create the folder {}", path));
  return absl::OkStatus();
}

}  // namespace

bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 128 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_';
         });
}

std::string DrawStateFolderId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

absl::StatusOr<int64_t> NextIncarnation(int64_t last, absl::Time now) {
  if (last == INT64_MAX) {
    return DataLoss(
        "the incarnation {} in worker.json is damaged; start the worker with another state folder "
        "once no mega-engine of this node runs any more",
        last);
  }
  return std::max(last + 1, absl::ToUnixNanos(now));
}

absl::StatusOr<std::unique_ptr<StateDir>> StateDir::Open(const std::string& given) {
  std::error_code error;
  const std::string path = fs::absolute(given, error).lexically_normal().string();
  if (error) return ErrnoStatus(error.value(), fmt::format("--state-dir {}", given));
  // It stands in every order to an engine, and the folder that it counts from may be at fault.
  if (!IsUtf8(path)) return InvalidArgument("--state-dir is {}, which is not UTF-8", path);
  MEGA_RETURN_IF_ERROR(CreateFolders(path + "/jobs"));
  const std::string lock_path = path + "/lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return ErrnoStatus(errno, fmt::format("cannot open {}", lock_path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return FailedPrecondition(
          "another mega-worker uses the state folder {}; give this one another --state-dir", path);
    }
    return ErrnoStatus(errno, fmt::format("cannot lock {}", lock_path));
  }
  return std::unique_ptr<StateDir>(new StateDir(path, std::move(lock)));
}

absl::StatusOr<v1::WorkerRecord> StateDir::ReadRecord() const {
  const std::string file = path_ + "/worker.json";
  v1::WorkerRecord record;
  const absl::StatusOr<std::string> text = ReadRegularFile(file, kMaxRecordBytes);
  if (absl::IsNotFound(text.status())) return record;
  MEGA_RETURN_IF_ERROR(text.status());
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // a newer worker may have written it
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &record, options);
  if (!parsed.ok()) {
    return DataLoss(
        "{} is not readable ({}); remove it once no mega-engine of this node runs any more", file,
        std::string(parsed.message()));
  }
  return record;
}

absl::Status StateDir::WriteRecord(const v1::WorkerRecord& record) const {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(record, &text, options);
  if (!printed.ok()) return Internal("worker.json: {}", std::string(printed.message()));
  return WriteFileAtomically(path_ + "/worker.json", text);
}

absl::StatusOr<std::string> StateDir::RunDirectory(const std::string& job_uid) const {
  if (!IsPlainName(job_uid)) {
    return InvalidArgument("job uid '{}' is no plain name (letters, digits, '-', '_')", job_uid);
  }
  std::string folder = path_ + "/jobs/" + job_uid;
  MEGA_RETURN_IF_ERROR(CreateFolders(folder));
  return folder;
}

}  // namespace mega::daemon
