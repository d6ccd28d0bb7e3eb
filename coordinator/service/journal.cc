#include "coordinator/service/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/read_file.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace mega::service {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "MEGAJNL1";
constexpr size_t kMagicBytes = 8;
constexpr char kSuffix[] = ".journal";
constexpr int64_t kSegments = 16;

const std::array<uint32_t, 256>& CrcTable() {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
      out[i] = crc;
    }
    return out;
  }();
  return table;
}

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (unsigned char c : bytes) crc = (crc >> 8) ^ CrcTable()[(crc ^ c) & 0xff];
  return ~crc;
}

void AppendWord(std::string& out, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift);
}

uint32_t ReadWord(const char* in) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = (word << 8) | static_cast<unsigned char>(in[i]);
  return word;
}

// Map fields in one order, so that equal messages are equal bytes.
std::string Canonical(const google::protobuf::Message& message) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

std::string Frame(const v1::JournalRecord& record) {
  const std::string payload = record.SerializeAsString();
  std::string out;
  out.reserve(payload.size() + 8);
  AppendWord(out, static_cast<uint32_t>(payload.size()));
  AppendWord(out, Crc32c(payload));
  return out + payload;
}

std::string SegmentName(int64_t number) { return fmt::format("{:020}{}", number, kSuffix); }

// Far from where counting on would overflow.
constexpr int64_t kHighestNumber = 1'000'000'000'000'000'000;

int64_t FirstNumber(const fs::path& segment) {
  return std::strtoll(segment.filename().c_str(), nullptr, 10);
}

// Another file may lie in the folder; its number would be the next one's measure.
bool IsSegment(const fs::path& path) {
  const std::string name = path.filename();
  return path.extension() == kSuffix && FirstNumber(path) > 0 &&
         FirstNumber(path) <= kHighestNumber && name == SegmentName(FirstNumber(path));
}

// One past the highest input number any segment holds: numbers rise over the folder's life. The
// newest may hold none, when the process ended right after it made the file.
int64_t NextNumber(const std::string& folder) {
  const auto segments = JournalSegments(folder);
  if (!segments.ok() || segments->empty()) return 1;
  int64_t last = FirstNumber(segments->back()) - 1;
  bool torn = false;
  const absl::Status status = ReadSegment(
      segments->back(),
      [&](const v1::JournalRecord& record) {
        if (record.number() > kHighestNumber) {
          return DataLoss("{} holds the number {}", segments->back(), record.number());
        }
        last = std::max(last, record.number());
        return absl::OkStatus();
      },
      &torn);
  if (!status.ok()) {
    log::Warn("the newest journal segment cannot be read; a new one begins after it",
              {{"error", status.ToString()}});
    last = FirstNumber(segments->back()) + 1'000'000'000;
  }
  return last + 1;
}

}  // namespace

uint64_t DecisionHash(const core::Decision& decision) {
  uint64_t hash = Fnv1a("");
  const auto add = [&hash](char kind, const google::protobuf::Message& message) {
    const std::string bytes = Canonical(message);
    hash = Fnv1a(bytes, Fnv1a(fmt::format("{}{}:", kind, bytes.size()), hash));
  };
  for (const v1::Mutation& mutation : decision.mutations) add('m', mutation);
  for (const v1::Effect& effect : decision.effects) add('e', effect);
  return hash;
}

Journal::Journal(std::string folder, int64_t most_bytes, int64_t most_waiting_bytes,
                 int64_t most_snapshot_bytes)
    : folder_(std::move(folder)),
      most_bytes_(most_bytes),
      most_waiting_bytes_(most_waiting_bytes),
      most_snapshot_bytes_(most_snapshot_bytes),
      next_number_(1) {
  std::error_code error;
  fs::create_directories(folder_, error);  // a failure shows when the first segment opens
  next_number_ = NextNumber(folder_);
  thread_ = std::jthread([this] { Run(); });
}

Journal::~Journal() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    wake_.NotifyOne();
  }
  thread_.join();
  if (fd_ >= 0) close(fd_);
}

int64_t Journal::InputsAfter(int64_t snapshot_bytes) const {
  return std::max(most_bytes_ / kSegments, snapshot_bytes);
}

bool Journal::WantsSnapshot() {
  if (!wants_snapshot_) return false;
  MutexLock lock(mu_);
  return waiting_bytes_ + waiting_snapshot_bytes_ <= most_waiting_bytes_ / 4;
}

void Journal::StartSegment(v1::CoreSnapshot snapshot) {
  Piece piece;
  piece.record.set_number(next_number_);
  *piece.record.mutable_snapshot() = std::move(snapshot);
  piece.bytes = static_cast<int64_t>(piece.record.ByteSizeLong());
  wants_snapshot_ = false;
  room_ = InputsAfter(piece.bytes);
  const bool was_too_large = std::exchange(too_large_, piece.bytes > most_snapshot_bytes_);
  gap_ = too_large_;
  if (too_large_) {
    if (!was_too_large) {
      log::Warn(
          "the journal stops until the state is smaller than a snapshot may be: what is decided "
          "meanwhile cannot be replayed; jobs are not affected. A smaller --job-retention or "
          "--most-ended-jobs makes the state smaller",
          {{"folder", folder_}, {"bytes", piece.bytes}, {"most_bytes", most_snapshot_bytes_}});
    }
    return;
  }
  MutexLock lock(mu_);
  waiting_snapshot_bytes_ += piece.bytes;
  pieces_.push_back(std::move(piece));
  wake_.NotifyOne();
}

void Journal::Append(const v1::CoreEvent& event, uint64_t decision_hash) {
  if (gap_) {
    ++next_number_;
    if (!too_large_) return;
    // To look at the state's size costs a copy of it: as seldom as if snapshots were written.
    room_ -= static_cast<int64_t>(event.ByteSizeLong());
    if (room_ <= 0) wants_snapshot_ = true;
    return;
  }
  Piece piece;
  piece.record.set_number(next_number_++);
  *piece.record.mutable_event() = event;
  piece.record.set_decision_hash(decision_hash);
  piece.bytes = static_cast<int64_t>(piece.record.ByteSizeLong());
  room_ -= piece.bytes;
  if (room_ <= 0) wants_snapshot_ = true;
  MutexLock lock(mu_);
  if (waiting_bytes_ > most_waiting_bytes_) {
    wants_snapshot_ = true;
    gap_ = true;
    return;
  }
  waiting_bytes_ += piece.bytes;
  pieces_.push_back(std::move(piece));
  wake_.NotifyOne();
}

void Journal::Run() {
  while (true) {
    std::deque<Piece> pieces;
    {
      MutexLock lock(mu_);
      while (pieces_.empty() && !stop_) wake_.WaitFor(mu_, std::chrono::seconds(1));
      if (pieces_.empty()) return;
      pieces.swap(pieces_);
    }
    for (const Piece& piece : pieces) {
      Write(piece);
      MutexLock lock(mu_);
      (piece.record.has_snapshot() ? waiting_snapshot_bytes_ : waiting_bytes_) -= piece.bytes;
    }
  }
}

void Journal::Write(const Piece& piece) {
  if (piece.record.has_snapshot()) OpenSegment(piece);
  if (fd_ < 0) return;
  const std::string bytes = Frame(piece.record);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t n = write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      log::Warn("journal stops until its next segment; jobs are not affected",
                {{"folder", folder_}, {"error", std::strerror(errno)}});
      close(std::exchange(fd_, -1));
      return;
    }
    rest.remove_prefix(n);
  }
}

void Journal::OpenSegment(const Piece& first) {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  RemoveOldest(first.bytes + InputsAfter(first.bytes));
  const std::string path = folder_ + "/" + SegmentName(first.record.number());
  // A pipe that nobody reads would be waited for; the writing itself waits for a slow disk.
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd_ < 0 || fcntl(fd_, F_SETFL, 0) != 0 ||
      write(fd_, kMagic, kMagicBytes) != static_cast<ssize_t>(kMagicBytes)) {
    log::Warn("journal segment cannot be written; jobs are not affected",
              {{"path", path}, {"error", std::strerror(errno)}});
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
}

void Journal::RemoveOldest(int64_t coming_bytes) {
  const auto segments = JournalSegments(folder_);
  if (!segments.ok()) return;
  std::error_code error;
  int64_t bytes = 0;
  for (const std::string& path : *segments) bytes += fs::file_size(path, error);
  for (const std::string& path : *segments) {
    if (bytes + coming_bytes <= most_bytes_) return;
    bytes -= fs::file_size(path, error);
    fs::remove(path, error);
  }
}

absl::StatusOr<std::vector<std::string>> JournalSegments(const std::string& folder) {
  const auto entries = ListFolder(folder);
  if (!entries.ok()) return NotFound("journal: {}", std::string(entries.status().message()));
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : *entries) {
    if (IsSegment(entry.path())) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status ReadSegment(const std::string& path,
                         const std::function<absl::Status(const v1::JournalRecord&)>& visit,
                         bool* torn) {
  *torn = false;
  // A pipe in its place would be waited for; the stream below opens what has been looked at.
  const absl::StatusOr<UniqueFd> fd = OpenRegularFile(path);
  if (absl::IsInvalidArgument(fd.status()))
    return DataLoss("{}", std::string(fd.status().message()));
  MEGA_RETURN_IF_ERROR(fd.status());
  std::ifstream file(fmt::format("/proc/self/fd/{}", fd->get()), std::ios::binary);
  char magic[kMagicBytes];
  if (!file) return NotFound("journal segment {} cannot be opened", path);
  std::error_code error;
  const uint64_t file_bytes = fs::file_size(path, error);
  if (!file.read(magic, kMagicBytes)) {
    *torn = true;
    return absl::OkStatus();
  }
  if (std::memcmp(magic, kMagic, kMagicBytes) != 0) {
    return DataLoss("{} is no journal segment: it does not start with {}", path, kMagic);
  }
  std::string payload;
  for (uint64_t offset = kMagicBytes; offset < file_bytes;) {
    char head[8];
    if (!file.read(head, sizeof(head))) break;
    const uint32_t size = ReadWord(head);
    offset += sizeof(head);
    // Zeros are what a power loss leaves of a block; a record is never empty.
    if (size == 0 || int64_t{size} > kMostRecordBytes || size > file_bytes - offset) break;
    payload.resize(size);
    if (!file.read(payload.data(), size)) break;
    offset += size;
    v1::JournalRecord record;
    if (Crc32c(payload) != ReadWord(head + 4) || !record.ParseFromString(payload)) {
      if (offset == file_bytes) break;
      return DataLoss("{}: record that ends at byte {} is damaged", path, offset);
    }
    MEGA_RETURN_IF_ERROR(visit(record));
    if (offset == file_bytes) return absl::OkStatus();
  }
  *torn = file_bytes > kMagicBytes;
  return absl::OkStatus();
}

}  // namespace mega::service
