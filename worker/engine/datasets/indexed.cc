#include "worker/engine/datasets/indexed.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace mega::datasets {
namespace {

constexpr char kMagic[] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr uint64_t kVersion = 1;
constexpr int64_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr int64_t kLengthBytes = 4, kOffsetBytes = 8, kDocumentBytes = 8;
// Longer runs of tokens become several sequences of one document: lengths are 32 bits.
constexpr int64_t kLongestSequence = int64_t{1} << 30;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));  // nothing in the file is aligned
  return value;
}

template <typename T>
void Store(std::vector<char>& to, T value) {
  const size_t at = to.size();
  to.resize(at + sizeof(T));
  std::memcpy(to.data() + at, &value, sizeof(T));
}

bool IsTokenType(uint8_t code) { return (code >= 1 && code <= 5) || code == 8; }

struct Range {
  int64_t min, max;
};
Range RangeOf(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return {0, 0xff};
    case TokenType::kI8:
      return {0, 0x7f};
    case TokenType::kI16:
      return {0, 0x7fff};
    case TokenType::kU16:
      return {0, 0xffff};
    case TokenType::kI32:
    case TokenType::kI64:
      return {0, std::numeric_limits<int32_t>::max()};
  }
  return {0, 0};
}

template <typename T>
int64_t Widen(std::span<const char> raw, std::span<int32_t> out) {
  int64_t bad = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): a small signed number, no character
    const auto value = static_cast<int64_t>(Load<T>(raw.data() + i * sizeof(T)));
    if (value < 0 || value > std::numeric_limits<int32_t>::max()) bad = static_cast<int64_t>(i);
    out[i] = static_cast<int32_t>(value);
  }
  return bad;
}

// Index of some id that is no token, or -1.
int64_t Widen(TokenType type, std::span<const char> raw, std::span<int32_t> out) {
  switch (type) {
    case TokenType::kU8:
      return Widen<uint8_t>(raw, out);
    case TokenType::kI8:
      return Widen<int8_t>(raw, out);
    case TokenType::kI16:
      return Widen<int16_t>(raw, out);
    case TokenType::kU16:
      return Widen<uint16_t>(raw, out);
    case TokenType::kI32:
      return Widen<int32_t>(raw, out);
    case TokenType::kI64:
      return Widen<int64_t>(raw, out);
  }
  return 0;
}

template <typename T>
void Narrow(std::span<const int32_t> tokens, std::vector<char>& to) {
  const size_t start = to.size();
  to.resize(start + tokens.size() * sizeof(T));
  char* at = to.data() + start;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const T value = static_cast<T>(tokens[i]);
    std::memcpy(at + i * sizeof(T), &value, sizeof(T));
  }
}

void Narrow(TokenType type, std::span<const int32_t> tokens, std::vector<char>& to) {
  switch (SizeOf(type)) {
    case 1:
      return Narrow<uint8_t>(tokens, to);
    case 2:
      return Narrow<uint16_t>(tokens, to);
    case 4:
      return Narrow<uint32_t>(tokens, to);
    default:
      return Narrow<uint64_t>(tokens, to);
  }
}

}  // namespace

int64_t SizeOf(TokenType type) {
  switch (type) {
    case TokenType::kU8:
    case TokenType::kI8:
      return 1;
    case TokenType::kI16:
    case TokenType::kU16:
      return 2;
    case TokenType::kI32:
      return 4;
    case TokenType::kI64:
      return 8;
  }
  return 0;
}

TokenType TypeFor(int64_t vocab_size) {
  if (vocab_size <= 256) return TokenType::kU8;
  return vocab_size <= 65536 ? TokenType::kU16 : TokenType::kI32;
}

absl::StatusOr<IndexedDataset> IndexedDataset::Open(const std::string& prefix) {
  MEGA_ASSIGN_OR_RETURN(File index_file, File::OpenToRead(prefix + ".idx"));
  MEGA_ASSIGN_OR_RETURN(File bin, File::OpenToRead(prefix + ".bin"));
  MEGA_ASSIGN_OR_RETURN(Mapping index, Mapping::Of(index_file));
  MEGA_ASSIGN_OR_RETURN(const int64_t bin_size, bin.Size());
  IndexedDataset dataset(prefix, std::move(bin), std::move(index));
  const absl::Status status = dataset.CheckIndex(bin_size);
  if (!status.ok()) return Annotate(status, prefix + ".idx");
  return dataset;
}

absl::Status IndexedDataset::CheckIndex(int64_t bin_size) {
  const std::span<const char> bytes = index_.bytes();
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < kHeaderBytes)
    return InvalidArgument("has {} bytes, fewer than a header of {}; it is no index", size,
                           kHeaderBytes);
  if (std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return InvalidArgument(
        "does not start with MMIDIDX; it is no index of a .bin/.idx dataset (build one with "
        "megactl data build)");
  const auto version = Load<uint64_t>(bytes.data() + 9);
  if (version != kVersion)
    return InvalidArgument("has version {}, but only version {} is known", version, kVersion);
  const auto code = Load<uint8_t>(bytes.data() + 17);
  if (!IsTokenType(code))
    return InvalidArgument("has dtype code {}, which holds no tokens; codes 1 to 5 and 8 do", code);
  type_ = static_cast<TokenType>(code);
  const auto sequences = Load<uint64_t>(bytes.data() + 18);
  const auto documents = Load<uint64_t>(bytes.data() + 26);
  const auto rest = static_cast<uint64_t>(size - kHeaderBytes);
  // Each bounded by the file's size first, so that their sum cannot overflow.
  if (sequences > rest / (kLengthBytes + kOffsetBytes) || documents > rest / kDocumentBytes ||
      documents < 1)
    return InvalidArgument("says {} sequences and {} document entries, which {} bytes cannot hold",
                           sequences, documents, size);
  const uint64_t need = sequences * (kLengthBytes + kOffsetBytes) + documents * kDocumentBytes;
  if (rest != need && rest != need + sequences)
    return InvalidArgument("says {} sequences and {} document entries, {} bytes, but has {}",
                           sequences, documents, kHeaderBytes + need, size);
  num_sequences_ = static_cast<int64_t>(sequences);
  num_documents_ = static_cast<int64_t>(documents) - 1;

  const int64_t item = SizeOf(type_);
  for (int64_t i = 0; i < num_sequences_; ++i) {
    const int64_t length = SequenceLength(i);
    const auto offset =
        Load<int64_t>(bytes.data() + kHeaderBytes + num_sequences_ * kLengthBytes + i * 8);
    // The lengths before are checked, so num_tokens_ · item is at most the size of the .bin.
    if (length < 0 || offset != num_tokens_ * item || length > bin_size / item - num_tokens_)
      return InvalidArgument(
          "says sequence {} has {} tokens at byte {}, but sequences before it end at byte {} and "
          "{}.bin has {} bytes; the two files do not belong together",
          i, length, offset, num_tokens_ * item, prefix_, bin_size);
    num_tokens_ += length;
  }
  if (num_tokens_ * item != bin_size)
    return InvalidArgument(
        "says {} tokens of {} bytes, but {}.bin has {} bytes; the two files do not belong together",
        num_tokens_, item, prefix_, bin_size);
  for (int64_t i = 0; i <= num_documents_; ++i) {
    const int64_t start = DocumentStart(i);
    const int64_t before = i == 0 ? 0 : DocumentStart(i - 1);
    const bool right_end = i < num_documents_ || start == num_sequences_;
    if (start < before || start > num_sequences_ || (i == 0 && start != 0) || !right_end)
      return InvalidArgument(
          "says document {} starts at sequence {}; starts must rise from 0 to {}", i, start,
          num_sequences_);
  }
  return absl::OkStatus();
}

int64_t IndexedDataset::SequenceLength(int64_t sequence) const {
  MEGA_CHECK(sequence >= 0 && sequence < num_sequences_);
  return Load<int32_t>(index_.bytes().data() + kHeaderBytes + sequence * kLengthBytes);
}

int64_t IndexedDataset::SequenceStart(int64_t sequence) const {
  MEGA_CHECK(sequence >= 0 && sequence < num_sequences_);
  return Load<int64_t>(index_.bytes().data() + kHeaderBytes + num_sequences_ * kLengthBytes +
                       sequence * kOffsetBytes) /
         SizeOf(type_);
}

int64_t IndexedDataset::DocumentStart(int64_t document) const {
  MEGA_CHECK(document >= 0 && document <= num_documents_);
  return Load<int64_t>(index_.bytes().data() + kHeaderBytes +
                       num_sequences_ * (kLengthBytes + kOffsetBytes) + document * kDocumentBytes);
}

absl::Status IndexedDataset::Read(int64_t first, std::span<int32_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  MEGA_CHECK(first >= 0 && count <= num_tokens_ && first <= num_tokens_ - count);
  const int64_t item = SizeOf(type_);
  std::array<char, 16384> raw;
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min<int64_t>(count - done, static_cast<int64_t>(raw.size()) / item);
    const std::span<char> bytes(raw.data(), static_cast<size_t>(n * item));
    MEGA_RETURN_IF_ERROR(bin_.ReadAt((first + done) * item, bytes));
    const int64_t bad =
        Widen(type_, bytes, out.subspan(static_cast<size_t>(done), static_cast<size_t>(n)));
    if (bad >= 0)
      return DataLoss("{}.bin: token {} is negative or above 2^31 − 1; the file is damaged",
                      prefix_, first + done + bad);
    done += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<IndexedWriter>> IndexedWriter::Create(const std::string& prefix,
                                                                     TokenType type) {
  MEGA_ASSIGN_OR_RETURN(File bin, File::OpenToWrite(TemporaryName(prefix + ".bin")));
  absl::StatusOr<File> index = File::OpenToWrite(TemporaryName(prefix + ".idx"));
  if (!index.ok()) {
    ::unlink(bin.path().c_str());
    return index.status();
  }
  return std::unique_ptr<IndexedWriter>(
      new IndexedWriter(prefix, type, std::move(bin), *std::move(index)));
}

IndexedWriter::~IndexedWriter() {
  if (finished_) return;
  ::unlink(bin_.path().c_str());
  ::unlink(index_.path().c_str());
}

absl::Status IndexedWriter::Append(std::span<const int32_t> tokens) {
  constexpr int64_t kPiece = 1 << 18;
  constexpr size_t kFlushBytes = 1 << 20;
  const Range range = RangeOf(type_);
  while (!tokens.empty()) {
    const int64_t n = std::min(
        {static_cast<int64_t>(tokens.size()), kPiece, kLongestSequence - sequence_tokens_});
    const std::span<const int32_t> piece = tokens.first(static_cast<size_t>(n));
    for (int32_t token : piece)
      if (token < range.min || token > range.max)
        return InvalidArgument(
            "{}.bin: token {} does not fit the dataset's type, which holds {} to {}", prefix_,
            token, range.min, range.max);
    Narrow(type_, piece, buffer_);
    num_tokens_ += n;
    sequence_tokens_ += n;
    if (sequence_tokens_ == kLongestSequence) EndSequence();
    if (buffer_.size() >= kFlushBytes) MEGA_RETURN_IF_ERROR(Flush());
    tokens = tokens.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

void IndexedWriter::EndSequence() {
  lengths_.push_back(static_cast<int32_t>(sequence_tokens_));
  sequence_tokens_ = 0;
}

void IndexedWriter::EndDocument() {
  if (sequence_tokens_ > 0) EndSequence();
  documents_.push_back(static_cast<int64_t>(lengths_.size()));
}

absl::Status IndexedWriter::Flush() {
  MEGA_RETURN_IF_ERROR(bin_.Write(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status IndexedWriter::Finish() {
  MEGA_CHECK(!finished_);
  if (sequence_tokens_ > 0 || documents_.back() != static_cast<int64_t>(lengths_.size()))
    EndDocument();
  MEGA_RETURN_IF_ERROR(Flush());
  MEGA_RETURN_IF_ERROR(bin_.Sync());
  std::vector<char> header(kMagic, kMagic + sizeof(kMagic));
  Store(header, kVersion);
  Store(header, static_cast<uint8_t>(type_));
  Store(header, static_cast<uint64_t>(lengths_.size()));
  Store(header, static_cast<uint64_t>(documents_.size()));
  MEGA_RETURN_IF_ERROR(index_.Write(header));
  MEGA_RETURN_IF_ERROR(
      index_.Write({reinterpret_cast<const char*>(lengths_.data()), lengths_.size() * 4}));
  std::vector<int64_t> offsets;
  offsets.reserve(lengths_.size());
  int64_t offset = 0;
  for (int32_t length : lengths_)
    offsets.push_back(std::exchange(offset, offset + length * SizeOf(type_)));
  MEGA_RETURN_IF_ERROR(
      index_.Write({reinterpret_cast<const char*>(offsets.data()), offsets.size() * 8}));
  MEGA_RETURN_IF_ERROR(
      index_.Write({reinterpret_cast<const char*>(documents_.data()), documents_.size() * 8}));
  MEGA_RETURN_IF_ERROR(index_.Sync());
  // The index last: whoever finds it finds its tokens.
  MEGA_RETURN_IF_ERROR(Rename(bin_.path(), prefix_ + ".bin"));
  MEGA_RETURN_IF_ERROR(Rename(index_.path(), prefix_ + ".idx"));
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace mega::datasets
