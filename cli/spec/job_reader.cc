// One walk over the YAML tree beside the proto's descriptors. Reading goes on after a problem, so
// that one run of the command shows them all.
#include "cli/spec/job_yaml.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/spec/keys.h"
#include "cli/spec/scalar.h"
#include "coordinator/planner/spec/spec.h"

namespace mega::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kApiVersion[] = "mega/v1";
constexpr char kKind[] = "TrainingJob";
constexpr size_t kMaxProblems = 100;
constexpr size_t kMaxStringBytes = 4096;
constexpr size_t kMaxListItems = 10'000;

class JobReader {
 public:
  JobReader(const JobText& text, ParsedJob& out) : text_(text), out_(out), source_(text.source) {}

  void ReadFile() {
    YamlError error;
    const YamlTree tree = YamlTree::Parse(text_.text, &error);
    if (error.message == kYamlIsEmpty) error.message += "; see deploy/examples for job files";
    if (tree.root() == nullptr) return Add(error.at, "", error.message);
    ReadEnvelope(*tree.root());
  }

  void ReadOverrides() {
    is_override_ = true;
    for (const std::string& text : text_.overrides) {
      source_ = absl::StrCat("--set ", CutUtf8(text, 80));
      ReadOverride(text);
    }
  }

 private:
  void Add(Position at, std::string field, std::string message) {
    if (is_override_) at = {};  // its own text has no lines worth naming
    if (out_.problems.size() < kMaxProblems)
      out_.problems.push_back({{source_, at}, std::move(field), std::move(message)});
  }

  void Remember(const std::string& path, Position at) {
    out_.job.places[path] = {source_, is_override_ ? Position{} : at};
  }

  // Calls `read(key, entry)` for each key given once; reports the others.
  template <typename Read>
  void ForEachKey(const YamlNode& map, const std::string& path, Read read) {
    std::map<std::string_view, Position> seen;
    for (const YamlNode::Entry& entry : map.entries) {
      if (entry.key->kind != YamlNode::Kind::kScalar) {
        Add(entry.key->at, path,
            fmt::format("{} has a key that is no word but {}", path.empty() ? "the file" : path,
                        Describe(*entry.key)));
        continue;
      }
      const std::string& key = entry.key->text;
      if (const auto [first, is_new] = seen.emplace(key, entry.key->at); !is_new) {
        Add(entry.key->at, JoinPath(path, key),
            fmt::format("{} is given twice (first on line {}); keep one",
                        JoinPath(path, Shown(key)), first->second.line));
        continue;
      }
      read(key, entry);
    }
  }

  static std::string Shown(std::string_view key) {
    return PrintableLine(key.size() <= 60 ? std::string(key) : CutUtf8(key, 60) + "…");
  }

  void ReadEnvelope(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kMap) {
      return Add(root.at, "",
                 fmt::format("a job file is a section with apiVersion, kind, metadata and spec, "
                             "but this is {}",
                             Describe(root)));
    }
    bool has_version = false, has_kind = false, has_spec = false;
    ForEachKey(root, "", [&](const std::string& key, const YamlNode::Entry& entry) {
      if (key == "apiVersion") {
        has_version = true;
        ExpectWord(*entry.value, entry.key->at, key, kApiVersion);
      } else if (key == "kind") {
        has_kind = true;
        ExpectWord(*entry.value, entry.key->at, key, kKind);
      } else if (key == "metadata") {
        Remember("metadata", entry.key->at);
        ReadSection(*entry.value, entry.key->at, "metadata", out_.job.metadata);
      } else if (key == "spec") {
        has_spec = true;
        Remember("spec", entry.key->at);
        ReadSection(*entry.value, entry.key->at, "", out_.job.spec);
      } else {
        UnknownTopKey(key, entry.key->at);
      }
    });
    if (!has_version)
      Add({}, "apiVersion",
          fmt::format("apiVersion is missing; write 'apiVersion: {}'", kApiVersion));
    if (!has_kind) Add({}, "kind", fmt::format("kind is missing; write 'kind: {}'", kKind));
    if (!has_spec) Add({}, "spec", "spec is missing; it holds model, data, training and the rest");
  }

  void ExpectWord(const YamlNode& value, Position at, const std::string& key, const char* word) {
    if (value.kind == YamlNode::Kind::kScalar && value.text == word) return;
    Add(at, key, fmt::format("{} is {}; write '{}: {}'", key, Describe(value), key, word));
  }

  void UnknownTopKey(const std::string& key, Position at) {
    static const std::vector<std::string> kTop = {"apiVersion", "kind", "metadata", "spec"};
    std::string hint = "; the keys here are apiVersion, kind, metadata, spec";
    if (FindKey(*v1::JobSpec::descriptor(), key) != nullptr) {
      hint = fmt::format("; did you mean spec.{}?", key);
    } else if (const std::string nearest = Nearest(key, kTop); !nearest.empty()) {
      hint = fmt::format("; did you mean {}?", nearest);
    }
    Add(at, key, fmt::format("{} is not a key of a job file{}", Shown(key), hint));
  }

  void UnknownKey(const Descriptor& section, const std::string& path, const std::string& key,
                  Position at) {
    const std::string hint = key == "<<" ? "; merge keys are not supported, write the keys out"
                             : section.FindFieldByName(key) != nullptr
                                 ? " of a job file: the coordinator sets it; drop it"
                                 : Suggestion(section, path, key);
    Add(at, JoinPath(path, key),
        fmt::format("{} is not a key{}", JoinPath(path, Shown(key)), hint));
  }

  void ReadSection(const YamlNode& node, Position at, const std::string& path, Message& message) {
    if (node.kind == YamlNode::Kind::kNull && !is_override_) return;
    if (node.kind != YamlNode::Kind::kMap) {
      const std::string name = path.empty() ? "spec" : path;
      return Add(at, name, fmt::format("{} must be a section but is {}", name, Describe(node)));
    }
    ForEachKey(node, path, [&](const std::string& key, const YamlNode::Entry& entry) {
      const FieldDescriptor* field = FindKey(*message.GetDescriptor(), key);
      if (field == nullptr) return UnknownKey(*message.GetDescriptor(), path, key, entry.key->at);
      ReadField(*entry.value, entry.key->at, JoinPath(path, key), message, *field);
    });
  }

  void ReadField(const YamlNode& node, Position at, const std::string& path, Message& message,
                 const FieldDescriptor& field) {
    Remember(path, at);
    if (field.is_map()) return ReadLabels(node, at, path, message, field);
    if (IsSection(field)) {
      // A section whose keys are all commented out is an absent one.
      if (node.kind == YamlNode::Kind::kNull && !is_override_) return;
      return ReadSection(node, at, path,
                         *message.GetReflection()->MutableMessage(&message, &field));
    }
    if (node.kind == YamlNode::Kind::kNull) {
      return Add(at, path,
                 fmt::format("{} has no value; give one, write auto, or drop the key", path));
    }
    // An override replaces what the file says; auto takes it back.
    message.GetReflection()->ClearField(&message, &field);
    if (node.kind == YamlNode::Kind::kScalar && !node.quoted && node.text == "auto") return;
    if (field.is_repeated()) return ReadList(node, at, path, message, field);
    ReadScalar(node, path, message, field);
  }

  void ReadList(const YamlNode& node, Position at, const std::string& path, Message& message,
                const FieldDescriptor& field) {
    if (node.kind != YamlNode::Kind::kSequence) {
      const std::string fix = node.kind == YamlNode::Kind::kScalar
                                  ? fmt::format("; write [{}]", CutUtf8(node.text, 60))
                                  : "";
      return Add(
          at, path,
          fmt::format("{} must be {} but is {}{}", path, TypeName(field), Describe(node), fix));
    }
    if (node.items.size() > kMaxListItems) {
      return Add(
          at, path,
          fmt::format("{} has {} elements; at most {}", path, node.items.size(), kMaxListItems));
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = *node.items[i];
      const std::string item_path = fmt::format("{}[{}]", path, i);
      Remember(item_path, item.at);
      ReadScalar(item, item_path, message, field);
    }
  }

  void ReadLabels(const YamlNode& node, Position at, const std::string& path, Message& message,
                  const FieldDescriptor& field) {
    if (node.kind == YamlNode::Kind::kNull && !is_override_) return;
    if (node.kind != YamlNode::Kind::kMap)
      return Add(at, path,
                 fmt::format("{} must be {} but is {}", path, TypeName(field), Describe(node)));
    ForEachKey(node, path, [&](const std::string& key, const YamlNode::Entry& entry) {
      ReadLabel(key, *entry.value, entry.key->at, path);
    });
  }

  void ReadLabel(const std::string& key, const YamlNode& value, Position at,
                 const std::string& path) {
    const std::string label_path = JoinPath(path, key);
    Remember(label_path, at);
    if (value.kind != YamlNode::Kind::kScalar) {
      return Add(
          at, label_path,
          fmt::format("{} must be text but is {}", JoinPath(path, Shown(key)), Describe(value)));
    }
    if (!CheckString(value, label_path)) return;
    (*out_.job.metadata.mutable_labels())[key] = value.text;
  }

  bool CheckString(const YamlNode& node, const std::string& path) {
    if (node.text.size() > kMaxStringBytes) {
      Add(node.at, path,
          fmt::format("{} has {} bytes; at most {}", path, node.text.size(), kMaxStringBytes));
      return false;
    }
    // Escapes ("\x00") can make what the file itself may not hold.
    if (FirstBadByte(node.text) != std::string_view::npos ||
        node.text.find_first_of("\n\r") != std::string::npos) {
      Add(node.at, path,
          fmt::format("{} holds a control character; keep to one line of text", path));
      return false;
    }
    return true;
  }

  // Sets a scalar, or appends an element of a list.
  void ReadScalar(const YamlNode& node, const std::string& path, Message& message,
                  const FieldDescriptor& field) {
    if (node.kind != YamlNode::Kind::kScalar) {
      const std::string type = field.is_repeated() ? "one value" : TypeName(field);
      return Add(node.at, path, fmt::format("{} must be {} but is {}", path, type, Describe(node)));
    }
    const v1::KeyRule rule = spec::RuleOf(field);
    if (node.quoted && rule.unit().empty() && field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      return Add(
          node.at, path,
          fmt::format("{}: {} is quoted text; write it without the quotes", path, Describe(node)));
    }
    const absl::Status status = SetScalar(node, path, rule, message, field);
    if (!status.ok())
      Add(node.at, path,
          fmt::format("{}: {} {}", path, Describe(node), std::string(status.message())));
  }

  absl::Status SetScalar(const YamlNode& node, const std::string& path, const v1::KeyRule& rule,
                         Message& message, const FieldDescriptor& field) {
    const auto* reflection = message.GetReflection();
    const auto set = [&](auto setter, auto adder, const auto& value) {
      if (field.is_repeated()) {
        (reflection->*adder)(&message, &field, value);
      } else {
        (reflection->*setter)(&message, &field, value);
      }
      return absl::OkStatus();
    };
    using Reflection = google::protobuf::Reflection;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64: {
        MEGA_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(node.text, rule.unit()));
        return set(&Reflection::SetInt64, &Reflection::AddInt64, value);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        MEGA_ASSIGN_OR_RETURN(const double value, ParseNumber(node.text));
        return set(&Reflection::SetDouble, &Reflection::AddDouble, value);
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        MEGA_ASSIGN_OR_RETURN(const bool value, ParseBool(node.text));
        return set(&Reflection::SetBool, &Reflection::AddBool, value);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        if (!CheckString(node, path)) return absl::OkStatus();
        if (rule.path() && node.text.empty()) return InvalidArgument("is no path");
        const std::string value = rule.path() ? Absolute(node.text) : node.text;
        // The folder that it counts from is nothing that was written.
        if (!IsUtf8(value)) return InvalidArgument("is {}, which is not UTF-8", value);
        return set(&Reflection::SetString, &Reflection::AddString, value);
      }
      default: {  // the only message that is a value
        MEGA_ASSIGN_OR_RETURN(const google::protobuf::Duration value, ParseDuration(node.text));
        reflection->MutableMessage(&message, &field)->CopyFrom(value);
        return absl::OkStatus();
      }
    }
  }

  std::string Absolute(const std::string& path) const {
    return (std::filesystem::path(text_.folder) / path).lexically_normal().string();
  }

  void ReadOverride(const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Add({}, "", "an override is KEY=VALUE, such as training.steps=20");
    std::string path = text.substr(0, equals);
    YamlError error;
    const YamlTree value = YamlTree::Parse(absl::StrCat(text.substr(equals + 1), "\n"), &error);
    static const YamlNode kEmpty;
    if (value.root() == nullptr && equals + 1 < text.size())
      return Add({}, path, fmt::format("{}: {}", path, error.message));
    const YamlNode& node = value.root() == nullptr ? kEmpty : *value.root();

    Message* message = &out_.job.spec;
    std::string prefix;
    std::vector<std::string> keys = absl::StrSplit(path, '.');
    if (keys.size() > 1 && keys[0] == "spec") keys.erase(keys.begin());
    if (keys.size() > 1 && keys[0] == "metadata") {
      message = &out_.job.metadata;
      prefix = "metadata";
      keys.erase(keys.begin());
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const FieldDescriptor* field = FindKey(*message->GetDescriptor(), keys[i]);
      if (field == nullptr) return UnknownKey(*message->GetDescriptor(), prefix, keys[i], {});
      prefix = JoinPath(prefix, keys[i]);
      if (i + 1 == keys.size()) return ReadField(node, {}, prefix, *message, *field);
      if (field->is_map()) {
        // Label keys may hold dots themselves.
        keys.erase(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return ReadLabel(absl::StrJoin(keys, "."), node, {}, prefix);
      }
      if (!IsSection(*field))
        return Add({}, path,
                   fmt::format("{} is {} and has no keys below it", prefix, TypeName(*field)));
      message = message->GetReflection()->MutableMessage(message, field);
    }
  }

  const JobText& text_;
  ParsedJob& out_;
  std::string source_;
  bool is_override_ = false;
};

}  // namespace

ParsedJob ParseJob(const JobText& text) {
  ParsedJob out;
  JobReader reader(text, out);
  reader.ReadFile();
  reader.ReadOverrides();
  return out;
}

}  // namespace mega::cli
