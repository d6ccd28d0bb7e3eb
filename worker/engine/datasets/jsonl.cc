#include "worker/engine/datasets/jsonl.h"

#include <algorithm>
#include <vector>

#include "simdjson.h"

namespace mega::datasets {
namespace {

constexpr size_t kLongestLine = size_t{1} << 28;

class LineParser {
 public:
  explicit LineParser(const std::string& path) : path_(path) {}

  // The text of one line, valid until the next call.
  absl::StatusOr<std::string_view> TextOf(std::string_view line, int64_t number) {
    simdjson::dom::element root;
    std::string_view text;
    simdjson::error_code error = parser_.parse(line.data(), line.size(), true).get(root);
    if (error)
      return InvalidArgument("{}:{}: {}; each line is an object with a \"text\"", path_, number,
                             simdjson::error_message(error));
    if (!root.is_object())
      return InvalidArgument("{}:{}: this is no object; each line is an object with a \"text\"",
                             path_, number);
    error = root["text"].get(text);
    if (error == simdjson::NO_SUCH_FIELD)
      return InvalidArgument("{}:{}: the object has no \"text\"; add it or remove the line", path_,
                             number);
    if (error) return InvalidArgument("{}:{}: \"text\" is not a string", path_, number);
    return text;
  }

 private:
  const std::string& path_;
  simdjson::dom::parser parser_;
};

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

absl::Status ReadJsonl(
    File& file,
    const std::function<absl::Status(std::string_view text, int64_t bytes_read)>& document,
    size_t block_bytes) {
  LineParser parser(file.path());
  std::vector<char> block(block_bytes);
  std::string rest;  // of a line whose end has not been read yet
  int64_t number = 0, bytes_read = 0;
  const auto take = [&](std::string_view line) -> absl::Status {
    ++number;
    if (IsBlank(line)) return absl::OkStatus();
    MEGA_ASSIGN_OR_RETURN(const std::string_view text, parser.TextOf(line, number));
    return document(text, bytes_read);
  };
  while (true) {
    MEGA_ASSIGN_OR_RETURN(const size_t n, file.Read(block));
    bytes_read += static_cast<int64_t>(n);
    std::string_view unread(block.data(), n);
    for (size_t end = unread.find('\n'); end != std::string_view::npos; end = unread.find('\n')) {
      if (rest.empty()) {
        MEGA_RETURN_IF_ERROR(take(unread.substr(0, end)));
      } else {
        rest.append(unread.substr(0, end));
        MEGA_RETURN_IF_ERROR(take(rest));
        rest.clear();
      }
      unread.remove_prefix(end + 1);
    }
    rest.append(unread);
    if (rest.size() > kLongestLine)
      return InvalidArgument("{}:{}: the line is longer than {} bytes; cut the document",
                             file.path(), number + 1, kLongestLine);
    if (n < block.size()) break;
  }
  return rest.empty() ? absl::OkStatus() : take(rest);
}

}  // namespace mega::datasets
