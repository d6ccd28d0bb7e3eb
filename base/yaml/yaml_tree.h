// A YAML document as a tree that keeps what a strict reader needs and yaml-cpp's own nodes drop:
// duplicate keys, the place of every key, whether a scalar was quoted. Input may be hostile: size,
// nodes and depth are bounded while parsing, an alias costs one pointer, and a self-reference is
// refused.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mega {

// Counted from 1; line 0 means unknown.
struct Position {
  int line = 0;
  int column = 0;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry {
    const YamlNode* key;
    const YamlNode* value;
  };

  Kind kind = Kind::kNull;
  Position at;
  std::string text;                    // of a scalar
  bool quoted = false;                 // '20', "20" or a block scalar: text, never a number
  std::vector<Entry> entries;          // of a map, in the file's order, duplicates kept
  std::vector<const YamlNode*> items;  // of a sequence
};

// "a list", "a section", "'abc'" …: how a message names a node.
std::string Describe(const YamlNode& node);

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr size_t kMaxYamlNodes = 100'000;
inline constexpr size_t kMaxYamlDepth = 32;

// The message of a YamlError where there is nothing to read.
inline constexpr char kYamlIsEmpty[] = "the file is empty";

// Where and why a text is no YAML that we take.
struct YamlError {
  Position at;
  std::string message;
};

class YamlTree {
 public:
  // `error` is set, and root() null, when the text is not exactly one document within the bounds.
  static YamlTree Parse(std::string_view text, YamlError* error);

  const YamlNode* root() const { return root_; }

 private:
  friend class TreeBuilder;
  std::deque<YamlNode> nodes_;  // owner; addresses are stable
  const YamlNode* root_ = nullptr;
};

}  // namespace mega
