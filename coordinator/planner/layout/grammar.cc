#include "coordinator/planner/layout/grammar.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"

namespace mega::planner {

using google::protobuf::FieldDescriptor;

namespace {

constexpr int64_t kLargest = 1 << 20;

// One table for reading, printing and messages. `key` is the field of v1::Layout; the schedule has
// none there.
struct Item {
  const char* name;
  const char* key;
  std::vector<std::string> words = {};  // of an item that is a word; the first is the default
};

const std::vector<Item>& Items() {
  static const auto* items = new std::vector<Item>{
      {"tp", "tensor_parallel_size"},
      {"cp", "context_parallel_size"},
      {"ep", "expert_parallel_size"},
      {"etp", "expert_tensor_parallel_size"},
      {"dp", "data_parallel_size"},
      {"pp", "pipeline_parallel_size"},
      {"vpp", "virtual_stages"},
      {"sp", "sequence_parallel"},
      {"schedule", nullptr, {"1f1b", "gpipe", "interleaved", "zero_bubble"}},
      {"cp_kind", "context_parallel_kind", {"ring", "all_gather", "ulysses"}},
      {"sharding", "data_sharding", {"none", "optimizer", "gradients", "full"}},
      {"recompute", "recompute", {"none", "selective", "full"}},
      {"mbs", "micro_batch_size"},
      {"order", "rank_order", {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"}}};
  return *items;
}

const FieldDescriptor& FieldOf(const Item& item) {
  return *v1::Layout::descriptor()->FindFieldByName(item.key);
}

bool IsFlag(const Item& item) {
  return item.words.empty() && FieldOf(item).cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
}

int64_t SizeOf(const v1::Layout& layout, const Item& item) {
  const auto& reflection = *layout.GetReflection();
  return IsFlag(item) ? reflection.GetBool(layout, &FieldOf(item))
                      : reflection.GetInt64(layout, &FieldOf(item));
}

void SetSize(v1::Layout& layout, const Item& item, int64_t size) {
  const auto& reflection = *layout.GetReflection();
  if (IsFlag(item)) {
    reflection.SetBool(&layout, &FieldOf(item), size != 0);
  } else {
    reflection.SetInt64(&layout, &FieldOf(item), size);
  }
}

std::string WordOf(const LayoutLine& line, const Item& item) {
  if (item.key == nullptr) return line.schedule;
  return line.layout.GetReflection()->GetString(line.layout, &FieldOf(item));
}

void SetWord(LayoutLine& line, const Item& item, const std::string& word) {
  if (item.key == nullptr) {
    line.schedule = word;
  } else {
    line.layout.GetReflection()->SetString(&line.layout, &FieldOf(item), word);
  }
}

// A size that is 1 when it is not said.
bool IsAxis(const Item& item) {
  return item.words.empty() && !IsFlag(item) && std::string_view(item.name) != "mbs";
}

std::string Names() {
  return absl::StrJoin(Items(), ", ",
                       [](std::string* out, const Item& item) { *out += item.name; });
}

absl::Status Set(LayoutLine& line, const Item& item, std::string_view value) {
  if (!item.words.empty()) {
    if (std::find(item.words.begin(), item.words.end(), value) == item.words.end())
      return InvalidArgument("layout: {} is '{}'; choose one of {}", item.name, CutUtf8(value, 32),
                             absl::StrJoin(item.words, ", "));
    SetWord(line, item, std::string(value));
    return absl::OkStatus();
  }
  const int64_t least = IsFlag(item) ? 0 : 1, most = IsFlag(item) ? 1 : kLargest;
  int64_t size = -1;
  // Digits only: SimpleAtoi would take blanks and signs.
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
  if (!digits || !absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &size) ||
      size < least || size > most)
    return InvalidArgument("layout: {} is '{}'; choose a number from {} to {}", item.name,
                           CutUtf8(value, 32), least, most);
  SetSize(line.layout, item, size);
  return absl::OkStatus();
}

// What a line leaves unsaid.
void Complete(LayoutLine& line) {
  v1::Layout& layout = line.layout;
  const bool has_etp = layout.expert_tensor_parallel_size() > 0;
  const bool has_dp = layout.data_parallel_size() > 0;
  for (const Item& item : Items()) {
    if (!item.words.empty()) {
      if (WordOf(line, item).empty()) SetWord(line, item, item.words.front());
    } else if (IsAxis(item) && SizeOf(layout, item) == 0) {
      SetSize(layout, item, 1);
    }
  }
  if (!has_etp) layout.set_expert_tensor_parallel_size(layout.tensor_parallel_size());
  if (!has_dp) {
    // world = tp·cp·dp·pp is to be a multiple of etp·ep·pp. Sizes are at most 2^20 each.
    const int64_t experts = layout.expert_tensor_parallel_size() * layout.expert_parallel_size();
    const int64_t dense = layout.tensor_parallel_size() * layout.context_parallel_size();
    layout.set_data_parallel_size(experts / std::gcd(experts, dense));
  }
}

}  // namespace

absl::StatusOr<LayoutLine> ParseLayout(std::string_view line) {
  if (line.size() > 512) return InvalidArgument("layout: {} bytes; give at most 512", line.size());
  LayoutLine parsed;
  std::set<std::string_view> seen;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(line.data(), line.size()), ',')) {
    const std::string_view text(part.data(), part.size());
    const size_t equals = text.find('=');
    if (equals == text.npos)
      return InvalidArgument("layout: '{}' is no name=value; write for example tp=2,pp=2",
                             CutUtf8(text, 32));
    const std::string_view name = text.substr(0, equals);
    const auto item = std::find_if(Items().begin(), Items().end(),
                                   [name](const Item& i) { return name == i.name; });
    if (item == Items().end())
      return InvalidArgument("layout: '{}' is unknown; names are {}", CutUtf8(name, 32), Names());
    if (!seen.insert(item->name).second)
      return InvalidArgument("layout: {} is given twice; give it once", item->name);
    MEGA_RETURN_IF_ERROR(Set(parsed, *item, text.substr(equals + 1)));
  }
  Complete(parsed);
  return parsed;
}

std::string PrintLayout(const LayoutLine& layout) {
  LayoutLine line = layout;
  Complete(line);
  // What the sizes alone would give, to leave out what follows from them.
  LayoutLine implied = line;
  implied.layout.clear_expert_tensor_parallel_size();
  Complete(implied);
  const bool says_etp =
      implied.layout.expert_tensor_parallel_size() != line.layout.expert_tensor_parallel_size();
  if (says_etp) implied = line;
  implied.layout.clear_data_parallel_size();
  Complete(implied);
  std::vector<std::string> parts;
  for (const Item& item : Items()) {
    const std::string_view name = item.name;
    if (!item.words.empty()) {
      if (WordOf(line, item) != item.words.front())
        parts.push_back(fmt::format("{}={}", name, WordOf(line, item)));
      continue;
    }
    const int64_t size = SizeOf(line.layout, item);
    const int64_t unsaid = name == "dp" ? SizeOf(implied.layout, item) : IsAxis(item) ? 1 : 0;
    const bool say = name == "etp" ? says_etp : size != unsaid;
    if (say) parts.push_back(fmt::format("{}={}", name, size));
  }
  return parts.empty() ? "dp=1" : absl::StrJoin(parts, ",");
}

}  // namespace mega::planner
