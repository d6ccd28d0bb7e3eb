#include "worker/engine/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "kernels/philox.h"

namespace mega::inference {
namespace {

constexpr double kExcluded = -std::numeric_limits<double>::infinity();

void PenaliseRepetition(std::span<const int32_t> previous, double penalty,
                        std::vector<double>& scores) {
  std::vector<int32_t> seen(previous.begin(), previous.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const int32_t id : seen)
    if (id >= 0 && id < static_cast<int64_t>(scores.size()))
      scores[id] = scores[id] < 0 ? scores[id] * penalty : scores[id] / penalty;
}

// Equals of the k-th best stay too.
void KeepTopK(int64_t k, std::vector<double>& scores) {
  if (k >= static_cast<int64_t>(scores.size())) return;
  std::vector<double> sorted = scores;
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const double least = sorted[k - 1];
  for (double& score : scores)
    if (score < least) score = kExcluded;
}

std::vector<double> Softmax(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> p(scores.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(scores[i] - largest);
  for (double& value : p) value /= sum;
  return p;
}

void KeepTopP(double top_p, std::vector<double>& scores) {
  const std::vector<double> p = Softmax(scores);
  std::vector<int32_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return p[a] > p[b]; });
  double sum = 0;
  for (const int32_t id : order) {
    if (sum >= top_p && id != order.front()) scores[id] = kExcluded;
    sum += p[id];
  }
}

void KeepMinP(double min_p, std::vector<double>& scores) {
  const std::vector<double> p = Softmax(scores);
  const double least = min_p * *std::max_element(p.begin(), p.end());
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] < least) scores[i] = kExcluded;
}

}  // namespace

std::vector<double> Probabilities(std::span<const float> logits, std::span<const int32_t> previous,
                                  const SamplingOptions& options) {
  MEGA_CHECK(!logits.empty());
  std::vector<double> scores(logits.begin(), logits.end());
  if (options.repetition_penalty != 1)
    PenaliseRepetition(previous, options.repetition_penalty, scores);
  if (options.temperature > 0)
    for (double& score : scores) score /= options.temperature;
  if (options.top_k > 0) KeepTopK(options.top_k, scores);
  if (options.top_p < 1) KeepTopP(options.top_p, scores);
  if (options.min_p > 0) KeepMinP(options.min_p, scores);
  return Softmax(scores);
}

int32_t Sample(std::span<const float> logits, std::span<const int32_t> previous,
               const SamplingOptions& options, uint64_t sequence, uint64_t position) {
  if (options.temperature <= 0 && options.repetition_penalty == 1)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const std::vector<double> p = Probabilities(logits, previous, options);
  const auto likeliest = static_cast<int32_t>(std::max_element(p.begin(), p.end()) - p.begin());
  if (options.temperature <= 0) return likeliest;
  double left = kernels::PhiloxUniform(options.seed, sequence, position);
  for (size_t id = 0; id < p.size(); ++id) {
    left -= p[id];
    if (left < 0) return static_cast<int32_t>(id);
  }
  return likeliest;  // rounding left a crumb
}

}  // namespace mega::inference
