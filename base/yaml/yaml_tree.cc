// Built from yaml-cpp's event stream rather than from YAML::Load: the handler can stop a bomb while
// it is being read, and sees every key.
#include "base/yaml/yaml_tree.h"

#include <sstream>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "fmt/core.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace mega {
namespace {

Position ToPosition(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Leaves the parser from inside an event; caught in Parse.
struct Refused {
  YamlError error;
};

constexpr size_t kShownText = 40;

Position PositionOf(std::string_view text, size_t offset) {
  Position at{1, 1};
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++at.column;
    }
  }
  return at;
}

}  // namespace

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "empty";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a section";
    case YamlNode::Kind::kScalar:
      break;
  }
  std::string text = PrintableLine(CutUtf8(node.text, kShownText));
  if (text.size() < node.text.size()) text += "…";
  return node.quoted ? absl::StrCat("\"", text, "\"") : absl::StrCat("'", text, "'");
}

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlTree& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& node = NewNode(mark, YamlNode::Kind::kNull);
    Remember(anchor, node);
    Attach(node);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseTag(mark, tag);
    YamlNode& node = NewNode(mark, YamlNode::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    if (!node.quoted && (value.empty() || value == "~" || value == "null"))
      node.kind = YamlNode::Kind::kNull;
    Remember(anchor, node);
    Attach(node);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    // An anchor becomes known when its node is complete, so a node can never contain itself.
    if (found == anchors_.end()) Refuse(mark, "an alias inside the node that it names");
    // Readers copy what they find, so what aliases repeat counts like text of the file.
    repeated_bytes_ += found->second->text.size();
    if (++count_ > kMaxYamlNodes || repeated_bytes_ > kMaxYamlBytes)
      Refuse(mark, "aliases repeat too much; write the values out");
    Attach(*found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kSequence);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode* node;
    YAML::anchor_t anchor;
    const YamlNode* key = nullptr;  // of a map: read, and waiting for its value
  };

  [[noreturn]] static void Refuse(const YAML::Mark& mark, std::string message) {
    throw Refused{{ToPosition(mark), std::move(message)}};
  }

  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    Refuse(mark, fmt::format("the tag {} is not supported; write the value alone", tag));
  }

  YamlNode& NewNode(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (++count_ > kMaxYamlNodes)
      Refuse(mark, fmt::format("more than {} values in one file", kMaxYamlNodes));
    YamlNode& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    node.at = ToPosition(mark);
    return node;
  }

  void Remember(YAML::anchor_t anchor, const YamlNode& node) {
    if (anchor != 0) anchors_[anchor] = &node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    RefuseTag(mark, tag);
    if (frames_.size() >= kMaxYamlDepth)
      Refuse(mark, fmt::format("nested deeper than {} levels", kMaxYamlDepth));
    frames_.push_back({&NewNode(mark, kind), anchor});
  }

  void Close() {
    const Frame frame = frames_.back();
    frames_.pop_back();
    Remember(frame.anchor, *frame.node);
    Attach(*frame.node);
  }

  void Attach(const YamlNode& node) {
    if (frames_.empty()) {
      tree_.root_ = &node;
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node->kind == YamlNode::Kind::kSequence) {
      frame.node->items.push_back(&node);
    } else if (frame.key == nullptr) {
      frame.key = &node;
    } else {
      frame.node->entries.push_back({frame.key, &node});
      frame.key = nullptr;
    }
  }

  YamlTree& tree_;
  size_t count_ = 0;  // nodes and aliases
  size_t repeated_bytes_ = 0;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, const YamlNode*> anchors_;
};

YamlTree YamlTree::Parse(std::string_view text, YamlError* error) {
  YamlTree tree;
  const auto refuse = [&](YamlError why) {
    *error = std::move(why);
    return YamlTree();
  };
  if (text.size() > kMaxYamlBytes)
    return refuse(
        {{}, fmt::format("{} bytes; such a file holds at most {}", text.size(), kMaxYamlBytes)});
  if (const size_t bad = FirstBadByte(text); bad != std::string_view::npos) {
    return refuse({PositionOf(text, bad),
                   fmt::format("byte 0x{:02x} is not text; write UTF-8 without control "
                               "characters",
                               static_cast<unsigned char>(text[bad]))});
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(tree);
    if (!parser.HandleNextDocument(builder) || tree.root_ == nullptr)
      return refuse({{1, 1}, kYamlIsEmpty});
    YamlTree second;
    TreeBuilder second_builder(second);
    if (parser.HandleNextDocument(second_builder)) {
      return refuse({second.root_ != nullptr ? second.root_->at : Position{},
                     "a second document; such a file holds one"});
    }
  } catch (const Refused& refused) {
    return refuse(refused.error);
  } catch (const YAML::Exception& wrong) {
    return refuse({ToPosition(wrong.mark), absl::StrCat("not YAML: ", wrong.msg)});
  }
  return tree;
}

}  // namespace mega
