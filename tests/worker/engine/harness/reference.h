// Stored reference values: safetensors files under tests/data, and how far apart tensors are.
#pragma once

#include <cmath>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "worker/engine/checkpoint/safetensors.h"
#include "worker/engine/models/hf_names.h"

namespace mega::testing {

inline std::string DataPath(const std::string& name) {
  return std::string(MEGA_TEST_DATA) + "/" + name;
}

inline nlohmann::json ReadJson(const std::string& name) {
  std::ifstream file(DataPath(name));
  MEGA_CHECK(file.good());
  return nlohmann::json::parse(file);
}

class Reference {
 public:
  explicit Reference(const std::string& name)
      : file_(std::move(checkpoint::SafetensorsFile::Open(DataPath(name))).value()) {}

  template <typename T>
  std::vector<T> Values(const std::string& tensor) const {
    const checkpoint::TensorEntry entry = file_.Get(tensor).value();
    MEGA_CHECK(entry.dtype == kernels::DTypeOf<T>::value);
    std::vector<T> values(entry.shape.elements());
    std::memcpy(values.data(), entry.data.data(), entry.data.size());
    return values;
  }
  kernels::Shape ShapeOf(const std::string& tensor) const {
    return file_.Get(tensor).value().shape;
  }
  const std::vector<std::string>& names() const { return file_.names(); }

  models::TensorSource source() const {
    return {.names = file_.names(),
            .read = [this](const std::string& name) -> absl::StatusOr<models::SourceTensor> {
              MEGA_ASSIGN_OR_RETURN(const checkpoint::TensorEntry entry, file_.Get(name));
              const auto dims = entry.shape.dims();
              return models::SourceTensor{
                  entry.dtype, std::vector<int64_t>(dims.begin(), dims.end()), entry.data};
            }};
  }

 private:
  checkpoint::SafetensorsFile file_;
};

// ‖a−b‖₂ / ‖b‖₂ in double; ‖a−b‖₂ where b is zero.
inline double Rel(std::span<const float> a, std::span<const float> b) {
  MEGA_CHECK_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

// The few keys of a Llama config.json that ModelSpec holds.
inline planner::ModelSpec SpecOf(const std::string& config_json) {
  const nlohmann::json config = ReadJson(config_json);
  return {.num_layers = config.at("num_hidden_layers"),
          .hidden_size = config.at("hidden_size"),
          .ffn_hidden_size = config.at("intermediate_size"),
          .num_attention_heads = config.at("num_attention_heads"),
          .num_query_groups = config.at("num_key_value_heads"),
          .head_dim = config.at("head_dim"),
          .vocab_size = config.at("vocab_size"),
          .max_position_embeddings = config.at("max_position_embeddings"),
          .rope_theta = config.at("rope_theta"),
          .norm_epsilon = config.at("rms_norm_eps"),
          .init_std = config.at("initializer_range"),
          .tie_embeddings = config.at("tie_word_embeddings")};
}

}  // namespace mega::testing
