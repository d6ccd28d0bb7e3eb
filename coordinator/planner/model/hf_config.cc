// config.json of a Hugging Face folder, llama family, in the older spelling (rope_theta,
// rope_scaling) and the newer one (rope_parameters).
#include <cstdint>
#include <filesystem>

#include "base/read_file.h"
#include "base/utf8.h"
#include "coordinator/planner/model/model_spec.h"
#include "nlohmann/json.hpp"

namespace mega::planner {

using nlohmann::json;

namespace {

constexpr int64_t kLongestConfig = 1 << 20;
// A model's has three levels. Printing one recurses, and anyone may submit a job.
constexpr int kDeepestConfig = 16;

bool Set(const json& config, const char* key) {
  return config.contains(key) && !config.at(key).is_null();
}

std::string Shown(const json& value) {
  return CutUtf8(value.dump(-1, ' ', false, json::error_handler_t::replace), 80);
}

class ConfigReader {
 public:
  ConfigReader(const json& config, const std::string& file) : config_(config), file_(file) {}

  absl::StatusOr<v1::Model> Read() {
    CheckFamily();
    CheckHonoured();
    Integer("num_hidden_layers", true, [this](int64_t v) { model_.set_num_layers(v); });
    Integer("hidden_size", true, [this](int64_t v) { model_.set_hidden_size(v); });
    Integer("intermediate_size", true, [this](int64_t v) { model_.set_ffn_hidden_size(v); });
    Integer("num_attention_heads", true, [this](int64_t v) { model_.set_num_attention_heads(v); });
    Integer("num_key_value_heads", false, [this](int64_t v) { model_.set_num_query_groups(v); });
    Integer("head_dim", false, [this](int64_t v) { model_.set_head_dim(v); });
    Integer("vocab_size", true, [this](int64_t v) { model_.set_vocab_size(v); });
    Integer("max_position_embeddings", true,
            [this](int64_t v) { model_.set_max_position_embeddings(v); });
    // Defaults below are those of the library's LlamaConfig.
    model_.set_rope_theta(10000);
    model_.set_norm_epsilon(1e-6);
    model_.set_tie_embeddings(false);
    Number(config_, "rope_theta", [this](double v) { model_.set_rope_theta(v); });
    if (Set(config_, "rope_parameters") && config_["rope_parameters"].is_object())
      Number(config_["rope_parameters"], "rope_theta",
             [this](double v) { model_.set_rope_theta(v); });
    Number(config_, "rms_norm_eps", [this](double v) { model_.set_norm_epsilon(v); });
    Number(config_, "initializer_range", [this](double v) { model_.set_init_std(v); });
    if (Set(config_, "tie_word_embeddings")) {
      if (config_["tie_word_embeddings"].is_boolean()) {
        model_.set_tie_embeddings(config_["tie_word_embeddings"].get<bool>());
      } else {
        Add("tie_word_embeddings is {}, not true or false", Text("tie_word_embeddings"));
      }
    }
    if (!errors_.empty()) return absl::InvalidArgumentError(errors_);
    return model_;
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    if (!errors_.empty()) errors_ += '\n';
    errors_ += fmt::format("{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string Text(const char* key) const { return Shown(config_.at(key)); }

  void CheckFamily() {
    if (!Set(config_, "model_type") || config_["model_type"] != "llama")
      Add("model_type is {}; only llama is supported in this release",
          Set(config_, "model_type") ? Text("model_type") : "not set");
  }

  // Everything that changes the numbers and that this release would ignore.
  void CheckHonoured() {
    if (Set(config_, "hidden_act") && config_["hidden_act"] != "silu")
      Add("hidden_act is {}, which is not implemented yet; only silu is", Text("hidden_act"));
    for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"})
      if (Set(config_, key) && config_[key] != false)
        Add("{} is {}, which is not implemented yet", key, Text(key));
    for (const char* key : {"sliding_window", "attn_logit_softcapping", "final_logit_softcapping",
                            "num_experts", "num_local_experts", "quantization_config"})
      if (Set(config_, key)) Add("{} is {}, which is not implemented yet", key, Text(key));
    if (Set(config_, "attention_dropout") && config_["attention_dropout"] != 0)
      Add("attention_dropout is {}, which is not implemented yet", Text("attention_dropout"));
    if (Set(config_, "partial_rotary_factor") && config_["partial_rotary_factor"] != 1)
      Add("partial_rotary_factor is {}, which is not implemented yet",
          Text("partial_rotary_factor"));
    if (Set(config_, "layer_types") && config_["layer_types"].is_array())
      for (const json& type : config_["layer_types"])
        if (type != "full_attention") {
          Add("layer_types holds {}, which is not implemented yet; only full_attention is",
              Shown(type));
          break;
        }
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      if (!Set(config_, key)) continue;
      const json& rope = config_[key];
      const char* type_key = rope.contains("rope_type") ? "rope_type" : "type";
      const bool plain =
          rope.is_object() && (!rope.contains(type_key) || rope[type_key] == "default") &&
          (!rope.contains("partial_rotary_factor") || rope["partial_rotary_factor"] == 1);
      if (!plain) Add("{} is {}; rope scaling is not implemented yet", key, Text(key));
    }
  }

  template <typename Setter>
  void Integer(const char* key, bool required, Setter set) {
    if (!Set(config_, key)) {
      if (required) Add("{} is missing", key);
      return;
    }
    if (!config_[key].is_number_integer()) return Add("{} is {}, not an integer", key, Text(key));
    set(config_[key].template get<int64_t>());
  }

  template <typename Setter>
  void Number(const json& object, const char* key, Setter set) {
    if (!Set(object, key)) return;
    if (!object[key].is_number()) return Add("{} is not a number", key);
    set(object[key].template get<double>());
  }

  const json& config_;
  const std::string& file_;
  v1::Model model_;
  std::string errors_;
};

std::string FileIn(const std::string& folder) {
  return (std::filesystem::path(folder) / "config.json").string();
}

absl::StatusOr<std::string> ReadText(const std::string& file) {
  absl::StatusOr<std::string> text = ReadRegularFile(file, kLongestConfig);
  if (text.ok()) return text;
  if (absl::IsInvalidArgument(text.status()))
    return InvalidArgument("{}; this is no model's config.json",
                           std::string(text.status().message()));
  return NotFound("{} cannot be read; give a Hugging Face folder in model.hf", file);
}

absl::StatusOr<json> Parse(std::string_view text, const std::string& file) {
  bool too_deep = false;
  const auto bounded = [&too_deep](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kDeepestConfig;
    return depth <= kDeepestConfig;  // what lies deeper is not kept
  };
  json config = json::parse(text, bounded, /*allow_exceptions=*/false);
  if (too_deep)
    return InvalidArgument("{} is nested more than {} levels deep; this is no model's config.json",
                           file, kDeepestConfig);
  if (!config.is_object()) return InvalidArgument("{} is not a JSON object", file);
  return config;
}

}  // namespace

absl::StatusOr<v1::Model> ParseHfConfig(std::string_view text, const std::string& file) {
  MEGA_ASSIGN_OR_RETURN(const json config, Parse(text, file));
  return ConfigReader(config, file).Read();
}

absl::StatusOr<v1::Model> ReadHfConfig(const std::string& folder) {
  const std::string file = FileIn(folder);
  MEGA_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  return ParseHfConfig(text, file);
}

absl::StatusOr<std::vector<int32_t>> ReadHfStopTokens(const std::string& folder) {
  const std::string file = FileIn(folder);
  MEGA_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  MEGA_ASSIGN_OR_RETURN(const json config, Parse(text, file));
  std::vector<int32_t> tokens;
  if (!Set(config, "eos_token_id")) return tokens;
  const json& id = config["eos_token_id"];
  for (const json& token : id.is_array() ? id : json::array({id})) {
    if (!token.is_number_integer() || token < 0 || token > INT32_MAX)
      return InvalidArgument("{}: eos_token_id is neither a token id nor a list of them", file);
    tokens.push_back(token.get<int32_t>());
  }
  return tokens;
}

absl::Status FillFromHf(v1::Model& model) {
  if (!model.has_hf()) return absl::OkStatus();
  MEGA_ASSIGN_OR_RETURN(v1::Model filled, ReadHfConfig(model.hf()));
  filled.MergeFrom(model);  // what the job file says stands
  model = std::move(filled);
  return absl::OkStatus();
}

}  // namespace mega::planner
