#include "coordinator/planner/spec/cross_rules.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "coordinator/planner/spec/data_paths.h"
#include "coordinator/planner/spec/device_rules.h"
#include "coordinator/planner/spec/keys.h"
#include "coordinator/planner/spec/recovery_rules.h"
#include "coordinator/planner/spec/split.h"
#include "fmt/format.h"

namespace mega::spec {
namespace {

class Rules {
 public:
  Rules(const v1::JobSpec& spec, std::vector<Violation>& out) : spec_(spec), out_(out) {
    // What already broke a rule of its own is not judged against others.
    for (const Violation& violation : out) broken_.push_back(violation.field);
  }

  void Check() {
    CheckLength();
    CheckStepsOfTokens();
    CheckBatch();
    CheckRates();
    CheckModel(/*complete=*/false);
    CheckSplit();
  }

  void CheckModel(bool complete) {
    CheckShape(complete || !spec_.model().has_hf());
    CheckVocabulary();
  }

 private:
  template <typename... Args>
  void Add(const std::string& field, fmt::format_string<Args...> format, Args&&... args) {
    out_.push_back({field, field + " " + fmt::format(format, std::forward<Args>(args)...)});
  }
  bool Sound(const std::string& field) const {
    return std::find(broken_.begin(), broken_.end(), field) == broken_.end();
  }

  void CheckLength() {
    const v1::Training& training = spec_.training();
    if (training.has_steps() && training.has_tokens())
      Add("training.tokens", "is {} and training.steps is {}; give one of them", training.tokens(),
          training.steps());
    if (!training.has_steps() && !training.has_tokens())
      Add("training.steps", "is not set and neither is training.tokens; give one of them");
  }

  // Tokens are steps written otherwise, and bounded as these are.
  void CheckStepsOfTokens() {
    const v1::Training& training = spec_.training();
    if (training.has_steps() || !Sound("training.tokens") || !Sound("training.global_batch_size") ||
        !Sound("data.seq_length"))
      return;
    const v1::KeyRule rule = RuleOf(*v1::Training::descriptor()->FindFieldByName("steps"));
    const int64_t steps = TotalSteps(spec_);
    const double most = std::stod(rule.max());
    if (static_cast<double>(steps) <= most) return;
    Add("training.tokens",
        "is {}, which makes {} steps with training.global_batch_size {} and data.seq_length {}; "
        "choose at most {:.0f}",
        training.tokens(), steps, training.global_batch_size(), spec_.data().seq_length(),
        most * static_cast<double>(training.global_batch_size()) *
            static_cast<double>(spec_.data().seq_length()));
  }

  void CheckBatch() {
    const v1::Training& training = spec_.training();
    if (training.has_micro_batch_size() && training.has_global_batch_size() &&
        Sound("training.micro_batch_size") && Sound("training.global_batch_size") &&
        training.micro_batch_size() > training.global_batch_size())
      Add("training.micro_batch_size",
          "is {} but training.global_batch_size is {}; choose at most {}",
          training.micro_batch_size(), training.global_batch_size(), training.global_batch_size());
    // Samples and tokens are counted in 64 bits all the way.
    constexpr double kMostTokens = 1e18;
    if (!training.has_steps() || !Sound("training.steps") || !Sound("training.global_batch_size") ||
        !Sound("data.seq_length"))
      return;
    const double step_tokens =
        static_cast<double>(training.global_batch_size()) * spec_.data().seq_length();
    if (step_tokens > 0 && training.steps() * step_tokens > kMostTokens)
      Add("training.steps",
          "is {}, which makes {:.1e} tokens with training.global_batch_size {} and data.seq_length "
          "{}; choose at most {:.0f}",
          training.steps(), training.steps() * step_tokens, training.global_batch_size(),
          spec_.data().seq_length(), std::floor(kMostTokens / step_tokens));
  }

  void CheckRates() {
    const v1::Optimizer& optimizer = spec_.optimizer();
    if (optimizer.has_lr() && Sound("optimizer.lr") && Sound("optimizer.min_lr") &&
        optimizer.min_lr() > optimizer.lr())
      Add("optimizer.min_lr", "is {} but optimizer.lr is {}; choose at most {}", optimizer.min_lr(),
          optimizer.lr(), optimizer.lr());
    if (!Sound("training.steps") || !Sound("training.tokens") ||
        !Sound("training.global_batch_size") || !Sound("data.seq_length"))
      return;
    const int64_t steps = TotalSteps(spec_);
    if (steps > 0 && Sound("optimizer.warmup_steps") && optimizer.warmup_steps() > steps)
      Add("optimizer.warmup_steps", "is {} but the job has {} steps; choose at most {}",
          optimizer.warmup_steps(), steps, steps);
  }

  void CheckShape(bool complete) {
    const v1::Model& model = spec_.model();
    if (complete) {
      const auto need = [this](bool has, const char* field) {
        if (!has) Add(field, "is not set; give it, or a Hugging Face folder in model.hf");
      };
      need(model.has_num_layers(), "model.num_layers");
      need(model.has_hidden_size(), "model.hidden_size");
      need(model.has_num_attention_heads(), "model.num_attention_heads");
    }
    const int64_t heads = Sound("model.num_attention_heads") ? model.num_attention_heads() : 0;
    const int64_t groups = Sound("model.num_query_groups") ? model.num_query_groups() : 0;
    if (heads > 0 && groups > 0 && heads % groups != 0)
      Add("model.num_query_groups", "is {} but model.num_attention_heads is {}; choose {}", groups,
          heads, Choices(DivisorsOf(heads)));
    const bool rope = model.position_embedding() == "rope";
    if (model.has_head_dim()) {
      if (Sound("model.head_dim") && rope && model.head_dim() % 2 != 0)
        Add("model.head_dim", "is {}, but rotary embedding turns pairs; choose an even number",
            model.head_dim());
    } else if (heads > 0 && model.has_hidden_size() && Sound("model.hidden_size")) {
      const int64_t hidden = model.hidden_size();
      if (hidden % heads != 0) {
        Add("model.hidden_size",
            "is {} but model.num_attention_heads is {}; choose a multiple of {}, or give "
            "model.head_dim",
            hidden, heads, heads);
      } else if (rope && complete && hidden / heads % 2 != 0) {
        Add("model.hidden_size",
            "is {}, which makes heads of {}; rotary embedding turns pairs: give an even "
            "model.head_dim",
            hidden, hidden / heads);
      }
    }
    if (model.has_max_position_embeddings() && Sound("model.max_position_embeddings") &&
        spec_.data().has_seq_length() && Sound("data.seq_length") &&
        model.max_position_embeddings() < spec_.data().seq_length())
      Add("data.seq_length", "is {} but model.max_position_embeddings is {}; choose at most {}",
          spec_.data().seq_length(), model.max_position_embeddings(),
          model.max_position_embeddings());
  }

  void CheckVocabulary() {
    constexpr int64_t kByteVocabulary = 256;
    const v1::Data& data = spec_.data();
    if (data.tokenizer() != "byte" || !spec_.model().has_vocab_size() ||
        !Sound("model.vocab_size") || spec_.model().vocab_size() >= kByteVocabulary)
      return;
    // Indexed files may hold any ids; those of a text are known.
    for (const std::string& path : data.paths()) {
      if (!IsJsonl(path) && !path.ends_with(".txt")) continue;
      return Add("model.vocab_size",
                 "is {} but data.tokenizer byte makes {} different tokens; choose at least {}",
                 spec_.model().vocab_size(), kByteVocabulary, kByteVocabulary);
    }
  }

  void CheckSplit() {
    if (!spec_.data().has_split() || !Sound("data.split")) return;
    const auto shares = ParseSplit(spec_.data().split());
    if (!shares.ok())
      return Add("data.split", "'{}' {}", CutUtf8(spec_.data().split(), 80),
                 std::string(shares.status().message()));
    if (AsksForEvaluation(spec_) && (*shares)[1] == 0 && spec_.data().validation().paths().empty())
      Add("data.split",
          "'{}' leaves nothing for validation but training.eval_steps is {}; give a second share, "
          "data.validation.paths, or training.eval_steps 0",
          spec_.data().split(), spec_.training().eval_steps());
  }

  const v1::JobSpec& spec_;
  std::vector<Violation>& out_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> DivisorsOf(int64_t n) {
  std::vector<std::string> divisors;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) divisors.push_back(fmt::format("{}", d));
  constexpr size_t kMost = 12;
  if (divisors.size() > kMost) divisors.erase(divisors.begin(), divisors.end() - kMost);
  return divisors;
}

void CheckCrossRules(const v1::JobSpec& resolved, std::vector<Violation>& out) {
  Rules(resolved, out).Check();
  CheckDevices(resolved, out);
  CheckRecovery(resolved, out);
}

void CheckModelRules(const v1::JobSpec& resolved, bool complete, std::vector<Violation>& out) {
  Rules(resolved, out).CheckModel(complete);
}

bool AsksForEvaluation(const v1::JobSpec& resolved) {
  const v1::Training& training = resolved.training();
  const v1::KeyRule rule = RuleOf(*v1::Training::descriptor()->FindFieldByName("eval_steps"));
  const bool is_default = std::to_string(training.eval_steps()) == rule.default_();
  return training.eval_steps() > 0 && (!is_default || training.eval_interval() > 0 ||
                                       !resolved.data().validation().paths().empty());
}

int64_t TotalSteps(const v1::JobSpec& resolved) {
  const v1::Training& training = resolved.training();
  if (training.has_steps()) return training.steps();
  const int64_t batch = training.global_batch_size(), length = resolved.data().seq_length();
  if (!training.has_tokens() || training.tokens() <= 0 || batch <= 0 || length <= 0) return 0;
  // One more division instead of a product that could overflow: ceil(tokens / (batch · length)).
  const int64_t rows = training.tokens() / length + (training.tokens() % length != 0);
  return rows / batch + (rows % batch != 0);
}

}  // namespace mega::spec
