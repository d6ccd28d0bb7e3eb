#include "coordinator/state/rocksdb/database_folder.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/folder.h"
#include "base/log.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace mega::state {
namespace {

namespace fs = std::filesystem;

class OurLog : public rocksdb::Logger {
 public:
  OurLog() : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using Logger::Logv;
  void LogHeader(const char*, va_list) override {}
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 1024> text;  // longer ones are cut
    std::vsnprintf(text.data(), text.size(), format, arguments);
    log::Warn("RocksDB warns", {{"message", std::string_view(text.data())}});
  }
};

}  // namespace

std::shared_ptr<rocksdb::Logger> MakeRocksDbLogger() { return std::make_shared<OurLog>(); }

absl::StatusOr<DatabaseFolder> LookInto(const std::string& folder) {
  DatabaseFolder found;
  std::error_code error;
  const fs::file_status itself = fs::status(folder, error);
  if (itself.type() == fs::file_type::not_found) return found;
  if (error) return ErrnoStatus(error.value(), fmt::format("state folder '{}'", folder));
  if (itself.type() != fs::file_type::directory) return DataLoss("'{}' is no folder", folder);
  MEGA_ASSIGN_OR_RETURN(const auto entries, ListFolder(folder));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (name == "lost+found") continue;
    if (!entry.is_regular_file(error)) {
      return DataLoss("'{}' is not a regular file", entry.path().string());
    }
    if (name == "CURRENT") found.has_database = true;
    const std::string kind = entry.path().extension();
    found.has_data |= kind == ".sst" || (kind == ".log" && entry.file_size(error) > 0);
  }
  return found;
}

absl::Status Damaged(const std::string& folder, std::string_view what) {
  return DataLoss(
      "state folder '{0}' is damaged: {1}. Restore it and {0}.revision from a backup; or, to "
      "forget "
      "all jobs and end their ranks, move '{0}' away and start, once, with --accept-lost-state",
      folder, what);
}

bool IsDamage(const rocksdb::Status& status) {
  return status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound() ||
         status.ToString().find("No such file or directory") != std::string::npos;
}

}  // namespace mega::state
