// Rules of single keys, read from the KeyRule beside each field. Rules between keys are in
// cross_rules.cc.
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/dns_name.h"
#include "base/utf8.h"
#include "coordinator/planner/spec/cross_rules.h"
#include "coordinator/planner/spec/keys.h"
#include "fmt/format.h"
#include "google/protobuf/duration.pb.h"

namespace mega::spec {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

// A spec may come from anywhere; these keep it, and every message about it, small.
constexpr int kLongestList = 10000;
constexpr size_t kLongestText = 4096;
constexpr size_t kMostLabels = 64;

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class KeyChecker {
 public:
  KeyChecker(const Message& parent, const FieldDescriptor& field, const std::string& path,
             std::vector<Violation>& out)
      : parent_(parent), field_(field), path_(path), rule_(RuleOf(field)), out_(out) {}

  void Check() {
    const auto& reflection = *parent_.GetReflection();
    if (!field_.is_repeated()) {
      if (reflection.HasField(parent_, &field_)) {
        CheckValue(path_, 0);
      } else if (rule_.required()) {
        Add(path_, "is not set; it is required" + Help());
      }
      return;
    }
    const int size = reflection.FieldSize(parent_, &field_);
    if (size == 0 && rule_.required()) Add(path_, "is empty; it is required" + Help());
    if (size > kLongestList)
      return Add(path_, fmt::format("has {} entries; give at most {}", size, kLongestList));
    if (size > 0 && !rule_.unavailable().empty()) return AddUnavailable(path_, "set");
    for (int i = 0; i < size; ++i) CheckValue(fmt::format("{}[{}]", path_, i), i);
  }

 private:
  void Add(const std::string& path, const std::string& rest) {
    out_.push_back({path, path + " " + rest});
  }
  std::string Help() const {
    return rule_.help().empty() ? "" : fmt::format(" ({})", rule_.help());
  }

  void AddUnavailable(const std::string& path, const std::string& value) {
    const std::vector<std::string> inert = Words(rule_.inert());
    Add(path, fmt::format("is {}, but {}; leave it out{}", value, rule_.unavailable(),
                          inert.empty() ? "" : " or give " + Choices(inert)));
  }

  void CheckValue(const std::string& path, int index) {
    const std::string value = TextOf(parent_, field_, index);
    if (!rule_.unavailable().empty()) {
      // Long or odd texts are not repeated back.
      if (!Contains(Words(rule_.inert()), value))
        AddUnavailable(path, value.size() > 64 ? "set" : value);
      return;
    }
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        CheckText(path, value);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        CheckInteger(path, Integer(index), value);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        CheckNumber(path, Number(index), value);
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        CheckDuration(path, value);
        break;
      default:
        break;
    }
  }

  int64_t Integer(int index) const {
    const auto& reflection = *parent_.GetReflection();
    return field_.is_repeated() ? reflection.GetRepeatedInt64(parent_, &field_, index)
                                : reflection.GetInt64(parent_, &field_);
  }
  double Number(int index) const {
    const auto& reflection = *parent_.GetReflection();
    return field_.is_repeated() ? reflection.GetRepeatedDouble(parent_, &field_, index)
                                : reflection.GetDouble(parent_, &field_);
  }

  void CheckText(const std::string& path, const std::string& value) {
    if (value.empty()) return Add(path, "is empty; give a value" + Help() + " or leave it out");
    if (value.size() > kLongestText)
      return Add(path, fmt::format("has {} bytes; give at most {}", value.size(), kLongestText));
    for (unsigned char c : value)
      if (c < 0x20 || c == 0x7f)
        return Add(path, fmt::format("holds the control character 0x{:02x}; remove it", c));
    CheckWord(path, value);
  }

  // Words that exist and words whose feature does; also used by numbers with unavailable_words.
  bool CheckWord(const std::string& path, const std::string& value) {
    const std::vector<std::string> refused = Words(rule_.unavailable_words());
    std::vector<std::string> choices;
    for (const std::string& word : Words(rule_.one_of()))
      if (!Contains(refused, word)) choices.push_back(word);
    if (Contains(refused, value)) {
      Add(path, fmt::format("is {}, which is not implemented yet; {}", value,
                            choices.empty() ? "give another value" : "choose " + Choices(choices)));
      return false;
    }
    if (!choices.empty() && !Contains(choices, value)) {
      Add(path, fmt::format("is '{}'; choose {}", CutUtf8(value, 64), Choices(choices)));
      return false;
    }
    return true;
  }

  void CheckInteger(const std::string& path, int64_t value, const std::string& text) {
    int64_t min = std::numeric_limits<int64_t>::min(), max = std::numeric_limits<int64_t>::max();
    MEGA_CHECK(rule_.min().empty() || absl::SimpleAtoi(rule_.min(), &min));
    MEGA_CHECK(rule_.max().empty() || absl::SimpleAtoi(rule_.max(), &max));
    CheckBounds(path, value<min, value> max, text);
  }

  void CheckNumber(const std::string& path, double value, const std::string& text) {
    if (!std::isfinite(value)) return Add(path, "is " + text + "; give a finite number");
    double min = -std::numeric_limits<double>::infinity(), max = -min;
    MEGA_CHECK(rule_.min().empty() || absl::SimpleAtod(rule_.min(), &min));
    MEGA_CHECK(rule_.max().empty() || absl::SimpleAtod(rule_.max(), &max));
    CheckBounds(path, value<min, value> max, text);
  }

  void CheckDuration(const std::string& path, const std::string& text) {
    google::protobuf::Duration span;
    span.CopyFrom(parent_.GetReflection()->GetMessage(parent_, &field_));
    constexpr int64_t kMostSeconds = 315'576'000'000;  // the range duration.proto promises
    if (span.seconds() < -kMostSeconds || span.seconds() > kMostSeconds ||
        std::abs(int64_t{span.nanos()}) > 999'999'999)
      return Add(path, "is not a valid duration; write it as in 60s");
    const double value = absl::ToDoubleSeconds(FromProto(span));
    CheckNumber(path, value, text);
  }

  void CheckBounds(const std::string& path, bool below, bool above, const std::string& text) {
    const std::string unit = rule_.unit().empty() ? "" : " " + rule_.unit();
    if (below) {
      Add(path, fmt::format("is {}; choose at least {}{}", text, rule_.min(), unit));
    } else if (above) {
      Add(path, fmt::format("is {}; choose at most {}{}", text, rule_.max(), unit));
    } else if (!rule_.unavailable_words().empty()) {
      CheckWord(path, text);
    }
  }

  const Message& parent_;
  const FieldDescriptor& field_;
  const std::string& path_;
  const v1::KeyRule rule_;
  std::vector<Violation>& out_;
};

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Kubernetes' rule for a label's value and, without its prefix, key.
bool IsLabelText(std::string_view text) {
  if (text.size() > 63) return false;
  if (text.empty()) return true;
  for (char c : text)
    if (!IsAlnum(c) && c != '-' && c != '_' && c != '.') return false;
  return IsAlnum(text.front()) && IsAlnum(text.back());
}

std::string Shown(const std::string& text) {
  std::string shown = text.substr(0, 80);
  for (char& c : shown)
    if (c < 0x20 || c > 0x7e) c = '?';
  return shown;
}

void CheckMetadata(const v1::JobMetadata& metadata, std::vector<Violation>& out) {
  const auto add = [&out](const std::string& field, const std::string& rest) {
    out.push_back({field, field + " " + rest});
  };
  const std::string rule = fmt::format("write {}, as in llama-test-1", kDnsLabelRule);
  if (metadata.name().empty()) {
    add("metadata.name", fmt::format("is not set; {}", rule));
  } else if (!IsDnsLabel(metadata.name())) {
    add("metadata.name", fmt::format("is '{}'; {}", Shown(metadata.name()), rule));
  }
  if (!metadata.namespace_().empty() && !IsDnsLabel(metadata.namespace_()))
    add("metadata.namespace", fmt::format("is '{}'; {}", Shown(metadata.namespace_()), rule));
  if (static_cast<size_t>(metadata.labels_size()) > kMostLabels)
    return add("metadata.labels",
               fmt::format("has {} entries; give at most {}", metadata.labels_size(), kMostLabels));
  // In key order, so that the same spec gives the same messages.
  const std::map<std::string, std::string> labels(metadata.labels().begin(),
                                                  metadata.labels().end());
  constexpr char kLabelRule[] =
      "use at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends";
  for (const auto& [key, value] : labels) {
    const size_t slash = key.find('/');
    const std::string name = slash == std::string::npos ? key : key.substr(slash + 1);
    const bool prefix_ok =
        slash == std::string::npos || (slash > 0 && IsLabelText(key.substr(0, slash)));
    if (name.empty() || !prefix_ok || !IsLabelText(name)) {
      add("metadata.labels", fmt::format("has the key '{}'; {}", Shown(key), kLabelRule));
    } else if (!IsLabelText(value)) {
      add(fmt::format("metadata.labels.{}", key),
          fmt::format("is '{}'; {}", Shown(value), kLabelRule));
    }
  }
}

}  // namespace

std::vector<Violation> Validate(const v1::JobMetadata& metadata, const v1::JobSpec& resolved) {
  std::vector<Violation> out;
  CheckMetadata(metadata, out);
  VisitKeys(resolved,
            [&out](const Message& parent, const FieldDescriptor& field, const std::string& path) {
              KeyChecker(parent, field, path, out).Check();
            });
  CheckCrossRules(resolved, out);
  return out;
}

std::vector<Violation> ValidateModel(const v1::JobSpec& resolved) {
  std::vector<Violation> out;
  VisitKeys(resolved,
            [&out](const Message& parent, const FieldDescriptor& field, const std::string& path) {
              if (path.rfind("model.", 0) == 0) KeyChecker(parent, field, path, out).Check();
            });
  CheckModelRules(resolved, /*complete=*/true, out);
  return out;
}

absl::Status ToStatus(const std::vector<Violation>& violations) {
  if (violations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrJoin(violations, "\n", [](std::string* out, const Violation& violation) {
        absl::StrAppend(out, violation.message);
      }));
}

}  // namespace mega::spec
