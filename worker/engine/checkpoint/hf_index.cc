#include "worker/engine/checkpoint/hf_index.h"

#include <nlohmann/json.hpp>

#include "manifest/file_name.h"

namespace mega::checkpoint {
namespace {

// Everything but the weight_map of the outermost object passes unseen. False ends the parse.
class IndexReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool key(std::string& name) override {
    if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(found_, true)) return Fail("weight_map is there twice");
    }
    if (depth_ == 2) tensor_ = name;
    return true;
  }
  bool string(std::string& file) override {
    if (!in_map_ || depth_ != 2) return Other();
    if (!manifest::IsFileName(file))
      return Fail(fmt::format("weight_map[{}] is not the name of a file", tensor_));
    if (!file_of.emplace(tensor_, file).second)
      return Fail(fmt::format("weight_map has {} twice", tensor_));
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_map_ && depth_ != 1) return Other();
    ++depth_;
    return true;
  }
  bool end_object() override { return End(); }
  bool start_array(std::size_t) override {
    if (in_map_ || depth_ == 0) return Other();
    ++depth_;
    return true;
  }
  bool end_array() override { return End(); }
  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(number_integer_t) override { return Other(); }
  bool number_unsigned(number_unsigned_t) override { return Other(); }
  bool number_float(number_float_t, const string_t&) override { return Other(); }
  bool binary(binary_t&) override { return Other(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(fmt::format("it is no JSON at byte {}", position));
  }

  bool found() const { return found_; }
  std::map<std::string, std::string> file_of;
  std::string error;

 private:
  bool Fail(std::string what) {
    error = std::move(what);
    return false;
  }
  bool End() {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }
  // A value that is no file.
  bool Other() {
    if (depth_ == 0) return Fail("it is no object");
    if (!in_map_) return true;
    return Fail(depth_ == 1 ? "weight_map is no object"
                            : fmt::format("weight_map[{}] is not the name of a file", tensor_));
  }

  int64_t depth_ = 0;
  bool in_map_ = false;  // the value under way belongs to weight_map
  bool found_ = false;
  std::string tensor_;
};

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseHfIndex(std::string_view text,
                                                                const std::string& path) {
  IndexReader reader;
  const bool read = nlohmann::json::sax_parse(text, &reader);
  if (!read || !reader.found())
    return InvalidArgument("{} is no index of a Hugging Face folder: {}", path,
                           reader.error.empty() ? "it has no weight_map" : reader.error);
  return std::move(reader.file_of);
}

}  // namespace mega::checkpoint
