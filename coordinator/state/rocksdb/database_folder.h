// A database's folder before RocksDB touches it: it waits for ever at a pipe, and where CURRENT is
// gone it makes an empty database among what is left of the old one, which the next start serves.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace rocksdb {
class Logger;
class Status;
}  // namespace rocksdb

namespace mega::state {

struct DatabaseFolder {
  bool has_database = false;  // CURRENT is there
  bool has_data = false;      // tables, or a log that is not empty
};
// Nothing in a folder that is absent. DATA_LOSS if it is no folder, or holds what is no file.
absl::StatusOr<DatabaseFolder> LookInto(const std::string& folder);

// DATA_LOSS with the way out.
absl::Status Damaged(const std::string& folder, std::string_view what);

// Files are gone, or are not what RocksDB wrote.
bool IsDamage(const rocksdb::Status& status);

// RocksDB's warnings go to our log. Its own log file is on the disk that it warns of: it writes on
// after a write that failed there, which ends the process on an assertion.
std::shared_ptr<rocksdb::Logger> MakeRocksDbLogger();

}  // namespace mega::state
