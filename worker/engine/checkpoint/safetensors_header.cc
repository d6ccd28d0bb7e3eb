// The JSON header, both ways. Reading is a strict state machine over parser events: no document is
// built, so a hostile header costs its own length and not a tree, and duplicate keys are seen.
#include "worker/engine/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mega::checkpoint {
namespace {

using kernels::DType;
using kernels::Shape;
using nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";

// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"k": "v"}}
class HeaderReader {
 public:
  explicit HeaderReader(SafetensorsContents& out) : out_(out) {}

  bool start_object(size_t) {
    switch (at_) {
      case At::kStart:
        at_ = At::kFile;
        return true;
      case At::kEntryValue:
        at_ = At::kEntry;
        entry_ = {};
        has_dtype_ = has_shape_ = has_offsets_ = false;
        return true;
      case At::kMetadataValue:
        at_ = At::kMetadata;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(std::string& key) {
    switch (at_) {
      case At::kFile:
        name_ = key;
        if (key == kMetadataKey) {
          at_ = At::kMetadataValue;
          return !std::exchange(has_metadata_, true) || Fail("__metadata__ is there twice");
        }
        at_ = At::kEntryValue;
        return out_.entries.find(key) == out_.entries.end() || Fail("is there twice");
      case At::kMetadata:
        metadata_key_ = key;
        at_ = At::kMetadataText;
        return out_.metadata.find(key) == out_.metadata.end() ||
               Fail(fmt::format("has the key '{}' twice", key));
      case At::kEntry:
        if (key == "dtype" && !std::exchange(has_dtype_, true)) return Enter(At::kDType);
        if (key == "shape" && !std::exchange(has_shape_, true)) return Enter(At::kShapeValue);
        if (key == "data_offsets" && !std::exchange(has_offsets_, true))
          return Enter(At::kOffsetsValue);
        return Fail(fmt::format("has the key '{}', which is unknown or repeated", key));
      default:
        return Unexpected("a key");
    }
  }

  bool string(std::string& text) {
    if (at_ == At::kMetadataText) {
      out_.metadata.emplace(metadata_key_, text);
      return Enter(At::kMetadata);
    }
    if (at_ != At::kDType) return Unexpected("a string");
    const std::optional<DType> dtype = kernels::DTypeFromName(text);
    if (!dtype) return Fail(fmt::format("has dtype '{}', which this build cannot read", text));
    entry_.dtype = *dtype;
    return Enter(At::kEntry);
  }

  bool start_array(size_t) {
    if (at_ != At::kShapeValue && at_ != At::kOffsetsValue) return Unexpected("an array");
    count_ = 0;
    return Enter(at_ == At::kShapeValue ? At::kShape : At::kOffsets);
  }

  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return Fail(fmt::format("has a number, {}, that is too large", value));
    if (at_ == At::kShape) {
      if (count_ == Shape::kMaxRank)
        return Fail(fmt::format("has more than {} dimensions", Shape::kMaxRank));
      dims_[count_++] = static_cast<int64_t>(value);
      return true;
    }
    if (at_ != At::kOffsets) return Unexpected("a number");
    if (count_ == 2) return Fail("has more than two data_offsets");
    (count_++ == 0 ? entry_.begin : entry_.end) = static_cast<int64_t>(value);
    return true;
  }

  bool end_array() {
    if (at_ == At::kShape) entry_.shape = Shape(std::span<const int64_t>(dims_.data(), count_));
    if (at_ == At::kOffsets && count_ != 2) return Fail("needs two data_offsets");
    return Enter(At::kEntry);
  }

  bool end_object() {
    if (at_ == At::kFile) return Enter(At::kEnd);
    if (at_ == At::kEntry) {
      if (!has_dtype_ || !has_shape_ || !has_offsets_)
        return Fail("needs dtype, shape and data_offsets");
      out_.entries.emplace(name_, entry_);
    }
    return Enter(At::kFile);
  }

  bool null() { return Unexpected("null"); }
  bool boolean(bool) { return Unexpected("a boolean"); }
  bool number_integer(int64_t) { return Unexpected("a negative number"); }
  bool number_float(double, const std::string&) { return Unexpected("a fraction"); }
  bool binary(json::binary_t&) { return Unexpected("binary"); }
  bool parse_error(size_t position, const std::string&, const json::exception&) {
    if (error_.empty()) error_ = fmt::format("is no JSON at byte {} of the header", position);
    return false;
  }

  const std::string& error() const { return error_; }
  bool finished() const { return at_ == At::kEnd; }

 private:
  enum class At {
    kStart,
    kFile,
    kEntryValue,
    kEntry,
    kDType,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kMetadataValue,
    kMetadata,
    kMetadataText,
    kEnd
  };
  bool Enter(At at) {
    at_ = at;
    return true;
  }
  // `what` is about the current tensor.
  bool Fail(std::string_view what) {
    error_ = fmt::format("tensor '{}' {}", name_.substr(0, 200), what);
    return false;
  }
  bool Unexpected(std::string_view what) {
    return Fail(fmt::format("has {} where the format has none", what));
  }

  SafetensorsContents& out_;
  At at_ = At::kStart;
  std::string name_, metadata_key_, error_;
  SafetensorsContents::Entry entry_;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::array<int64_t, Shape::kMaxRank> dims_{};
  int count_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> TensorBytes(DType dtype, const Shape& shape) {
  // Zeros are left out of the product: whoever multiplies the dimensions in order must not overflow
  // before the zero comes.
  int64_t bytes = kernels::SizeOf(dtype);
  bool empty = false;
  for (const int64_t dim : shape.dims()) {
    empty = empty || dim == 0;
    if (dim < 0 || (dim > 0 && __builtin_mul_overflow(bytes, dim, &bytes)))
      return InvalidArgument("shape {} has more bytes than an int64 counts", shape.ToString());
  }
  return empty ? 0 : bytes;
}

absl::StatusOr<SafetensorsContents> ReadHeader(std::string_view header, int64_t data_bytes) {
  SafetensorsContents contents;
  HeaderReader reader(contents);
  if (!json::sax_parse(header.begin(), header.end(), &reader) || !reader.finished())
    return DataLoss("{}", reader.error().empty() ? "the header is no object" : reader.error());

  for (const auto& [name, entry] : contents.entries) contents.names.push_back(name);
  std::sort(contents.names.begin(), contents.names.end(), [&](const auto& a, const auto& b) {
    const auto& x = contents.entries.find(a)->second;
    const auto& y = contents.entries.find(b)->second;
    return std::tie(x.begin, x.end, a) < std::tie(y.begin, y.end, b);
  });
  int64_t covered = 0;
  for (const std::string& name : contents.names) {
    const auto& entry = contents.entries.find(name)->second;
    if (entry.begin != covered)
      return DataLoss(
          "tensor '{}' begins at byte {} and the one before it ends at {}; tensors may "
          "neither overlap nor leave holes",
          name, entry.begin, covered);
    if (entry.end < entry.begin || entry.end > data_bytes)
      return DataLoss("tensor '{}' covers bytes {} to {} of {}", name, entry.begin, entry.end,
                      data_bytes);
    const absl::StatusOr<int64_t> bytes = TensorBytes(entry.dtype, entry.shape);
    if (!bytes.ok())
      return DataLoss("tensor '{}': {}", name, std::string(bytes.status().message()));
    if (*bytes != entry.end - entry.begin)
      return DataLoss("tensor '{}' is {} {}, {} bytes, but its data_offsets cover {}", name,
                      kernels::NameOf(entry.dtype), entry.shape.ToString(), *bytes,
                      entry.end - entry.begin);
    covered = entry.end;
  }
  if (covered != data_bytes)
    return DataLoss("the tensors cover {} bytes but the file holds {}", covered, data_bytes);
  return contents;
}

absl::StatusOr<std::string> SafetensorsHeader(
    std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string, std::less<>>& metadata) {
  std::set<std::string_view> seen;
  int64_t end = 0;
  std::string text = "{";
  // Quoted by the library, which reports bad UTF-8 only by throwing.
  const auto quote = [](const std::string& s) -> absl::StatusOr<std::string> {
    try {
      return json(s).dump();
    } catch (const json::exception&) {
      return InvalidArgument("a safetensors name or metadata text is not UTF-8");
    }
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      MEGA_ASSIGN_OR_RETURN(const std::string quoted_key, quote(key));
      MEGA_ASSIGN_OR_RETURN(const std::string quoted_value, quote(value));
      if (text.back() != '{') text += ",";
      text += quoted_key + ":" + quoted_value;
    }
    text += "}";
  }
  for (const TensorDeclaration& tensor : tensors) {
    if (tensor.name == kMetadataKey || !seen.insert(tensor.name).second)
      return InvalidArgument("tensor name '{}' is taken; give each tensor its own", tensor.name);
    MEGA_ASSIGN_OR_RETURN(const std::string quoted, quote(tensor.name));
    MEGA_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(tensor.dtype, tensor.shape));
    const int64_t begin = end;
    if (__builtin_add_overflow(begin, bytes, &end))
      return InvalidArgument("the tensors have more bytes than an int64 counts");
    if (text.size() > 1) text += ",";
    text +=
        fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted,
                    kernels::NameOf(tensor.dtype), fmt::join(tensor.shape.dims(), ","), begin, end);
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (static_cast<int64_t>(text.size()) > kMaxSafetensorsHeaderBytes)
    return InvalidArgument("the safetensors header has {} bytes; {} are allowed", text.size(),
                           kMaxSafetensorsHeaderBytes);
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(uint64_t{text.size()} >> (8 * i));
  return length + text;
}

}  // namespace mega::checkpoint
