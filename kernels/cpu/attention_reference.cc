// The definition, in double and in the most obvious order. It is the oracle of the tests, so it
// shares nothing with the fast form but the mask.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.h"
#include "kernels/cpu/attention_mask.h"
#include "kernels/cpu/edge.h"
#include "kernels/parallel_for.h"

namespace mega::kernels {
namespace {

double Dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// softmax over the keys that query row q of head n sees; returns the log-sum-exp.
double Probabilities(const float* q, const float* k, int64_t k_stride, int64_t H, double scale,
                     KeyRange keys, std::vector<double>& p) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = keys.begin; j < keys.end; ++j)
    most = std::max(most, p[j] = scale * Dot(q, k + j * k_stride, H));
  for (int64_t j = keys.begin; j < keys.end; ++j) sum += p[j] = std::exp(p[j] - most);
  for (int64_t j = keys.begin; j < keys.end; ++j) p[j] /= sum;
  return most + std::log(sum);
}

}  // namespace

void AttentionForwardReference(Stream& stream, TensorView q_BSNH, TensorView k_BKGH,
                               TensorView v_BKGV, float scale, const AttentionMask& mask,
                               TensorView o_BSNV, TensorView lse_BNS) {
  const auto [B, S, K, N, G, H, V] = CheckAttention(q_BSNH, k_BKGH, v_BKGV, o_BSNV, lse_BNS);
  const std::vector<KeyRange> ranges = VisibleKeys(mask, S, K);
  const float *q = Data(q_BSNH), *k = Data(k_BKGH), *v = Data(v_BKGV);
  float *o = Data(o_BSNV), *lse = Data(lse_BNS);
  ParallelFor(stream, B * N, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> p(K), row(V);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t b = unit / N, n = unit % N, g = n / (N / G);
      const float* k_head = k + (b * K * G + g) * H;
      const float* v_head = v + (b * K * G + g) * V;
      for (int64_t i = 0; i < S; ++i) {
        lse[unit * S + i] = static_cast<float>(
            Probabilities(q + ((b * S + i) * N + n) * H, k_head, G * H, H, scale, ranges[i], p));
        std::fill(row.begin(), row.end(), 0.0);
        for (int64_t j = ranges[i].begin; j < ranges[i].end; ++j)
          for (int64_t c = 0; c < V; ++c) row[c] += p[j] * v_head[j * G * V + c];
        std::copy(row.begin(), row.end(), o + ((b * S + i) * N + n) * V);
      }
    }
  });
}

void AttentionBackwardReference(Stream& stream, TensorView q_BSNH, TensorView k_BKGH,
                                TensorView v_BKGV, TensorView o_BSNV, TensorView lse_BNS,
                                TensorView do_BSNV, float scale, const AttentionMask& mask,
                                TensorView dq_BSNH, TensorView dk_BKGH, TensorView dv_BKGV) {
  const auto [B, S, K, N, G, H, V] = CheckAttention(q_BSNH, k_BKGH, v_BKGV, o_BSNV, lse_BNS);
  CheckShape(do_BSNV, o_BSNV.shape());
  CheckShape(dq_BSNH, q_BSNH.shape());
  CheckShape(dk_BKGH, k_BKGH.shape());
  CheckShape(dv_BKGV, v_BKGV.shape());
  const std::vector<KeyRange> ranges = VisibleKeys(mask, S, K);
  const float *q = Data(q_BSNH), *k = Data(k_BKGH), *v = Data(v_BKGV), *dout = Data(do_BSNV);
  float *dq = Data(dq_BSNH), *dk = Data(dk_BKGH), *dv = Data(dv_BKGV);
  ParallelFor(stream, B * G, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> p(K), dp(K), dq_row(H), dk_sum(K * H), dv_sum(K * V);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t b = unit / G, g = unit % G;
      const float* k_head = k + (b * K * G + g) * H;
      const float* v_head = v + (b * K * G + g) * V;
      std::fill(dk_sum.begin(), dk_sum.end(), 0.0);
      std::fill(dv_sum.begin(), dv_sum.end(), 0.0);
      for (int64_t n = g * (N / G); n < (g + 1) * (N / G); ++n) {
        for (int64_t i = 0; i < S; ++i) {
          const float* q_row = q + ((b * S + i) * N + n) * H;
          const float* do_row = dout + ((b * S + i) * N + n) * V;
          Probabilities(q_row, k_head, G * H, H, scale, ranges[i], p);
          double expected = 0;  // of dp under p
          for (int64_t j = ranges[i].begin; j < ranges[i].end; ++j)
            expected += p[j] * (dp[j] = Dot(do_row, v_head + j * G * V, V));
          std::fill(dq_row.begin(), dq_row.end(), 0.0);
          for (int64_t j = ranges[i].begin; j < ranges[i].end; ++j) {
            const double ds = scale * p[j] * (dp[j] - expected);
            for (int64_t h = 0; h < H; ++h) dq_row[h] += ds * k_head[j * G * H + h];
            for (int64_t h = 0; h < H; ++h) dk_sum[j * H + h] += ds * q_row[h];
            for (int64_t c = 0; c < V; ++c) dv_sum[j * V + c] += p[j] * do_row[c];
          }
          std::copy(dq_row.begin(), dq_row.end(), dq + ((b * S + i) * N + n) * H);
        }
      }
      for (int64_t j = 0; j < K; ++j) {
        std::copy_n(dk_sum.data() + j * H, H, dk + ((b * K + j) * G + g) * H);
        std::copy_n(dv_sum.data() + j * V, V, dv + ((b * K + j) * G + g) * V);
      }
    }
  });
}

}  // namespace mega::kernels
