// Forward keeps x (for the norm), norm(x), q, k, v, o and the log-sum-exp: nothing of size S·S.
#include "worker/engine/transformer/attention.h"

#include <cmath>
#include <utility>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"

namespace mega::transformer {

using kernels::RopeStyle;

Attention::Attention(const Context& context, const planner::ModelSpec& spec, RopeTable& rope,
                     const Weights& weights)
    : context_(context),
      num_heads_(spec.num_attention_heads),
      num_groups_(spec.num_query_groups),
      head_dim_(spec.head_dim),
      epsilon_(static_cast<float>(spec.norm_epsilon)),
      scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(spec.head_dim)))),
      reference_(spec.reference_attention),
      rope_(rope),
      w_(weights) {}

std::array<distributed::Parameter*, 3> Attention::parameters() const {
  return {w_.out_DNH, w_.qkv_CD, w_.norm_D};
}

TensorView Attention::PerGroup(TensorView fused_TC) const {
  return fused_TC.View({fused_TC.dim(0) * num_groups_, (num_heads_ / num_groups_ + 2) * head_dim_});
}

Attention::Heads Attention::Project(TensorView normed_TD, TensorView rope_rows_T) const {
  Stream& stream = context_.stream;
  const int64_t T = normed_TD.dim(0), N = num_heads_, G = num_groups_, H = head_dim_;
  const int64_t q_columns = N / G * H;
  Tensor qkv_TC = context_.Workspace({T, (N + 2 * G) * H});
  kernels::LinearForward(stream, normed_TD, w_.qkv_CD->value, qkv_TC);

  Heads heads{context_.Activation({T, N, H}), context_.Activation({T, G, H}),
              context_.Activation({T, G, H})};
  const TensorView fused = PerGroup(qkv_TC);
  kernels::CopyColumnsOut(stream, fused, 0, heads.q_TNH.View({T * G, q_columns}));
  kernels::CopyColumnsOut(stream, fused, q_columns, heads.k_TGH.View({T * G, H}));
  kernels::CopyColumnsOut(stream, fused, q_columns + H, heads.v_TGH.View({T * G, H}));
  kernels::RopeForward(stream, heads.q_TNH, rope_rows_T, rope_.cos(), rope_.sin(),
                       RopeStyle::kHalf);
  kernels::RopeForward(stream, heads.k_TGH, rope_rows_T, rope_.cos(), rope_.sin(),
                       RopeStyle::kHalf);
  return heads;
}

Tensor Attention::Forward(int64_t micro_batch, int64_t rows, Tensor x_TD) {
  Stream& stream = context_.stream;
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1), B = rows, S = T / rows;
  const int64_t N = num_heads_, G = num_groups_, H = head_dim_;

  Kept kept;
  kept.rows = rows;
  kept.normed_TD = context_.Activation({T, D});
  kept.rstd_T = context_.Activation({T});
  kernels::RmsNorm(stream, x_TD, w_.norm_D->value, kept.normed_TD, kept.rstd_T, epsilon_);
  kept.heads = Project(kept.normed_TD, rope_.SequentialRows(B, S));

  kept.o_TNH = context_.Activation({T, N, H});
  kept.lse_BNS = context_.Activation({B, N, S});
  const auto attend = reference_ ? kernels::AttentionForwardReference : kernels::AttentionForward;
  attend(stream, kept.heads.q_TNH.View({B, S, N, H}), kept.heads.k_TGH.View({B, S, G, H}),
         kept.heads.v_TGH.View({B, S, G, H}), scale_, {}, kept.o_TNH.View({B, S, N, H}),
         kept.lse_BNS);

  Tensor y_TD = context_.Activation({T, D});
  kernels::LinearForward(stream, kept.o_TNH.View({T, N * H}), w_.out_DNH->value, y_TD);
  kernels::AddInPlace(stream, x_TD, y_TD);
  kept.x_TD = std::move(x_TD);
  if (!context_.forward_only) saved_.Put(micro_batch, std::move(kept));
  return y_TD;
}

Tensor Attention::BackwardInput(int64_t micro_batch, Tensor dy_TD) {
  Stream& stream = context_.stream;
  Kept& kept = saved_.At(micro_batch);
  const int64_t T = dy_TD.dim(0), D = dy_TD.dim(1), B = kept.rows, S = T / B;
  const int64_t N = num_heads_, G = num_groups_, H = head_dim_;
  const int64_t q_columns = N / G * H;

  Tensor do_TNH = context_.Workspace({T, N, H});
  kernels::LinearBackwardInput(stream, dy_TD, w_.out_DNH->value, do_TNH.View({T, N * H}));

  Tensor dq_TNH = context_.Workspace({T, N, H});
  Tensor dk_TGH = context_.Workspace({T, G, H});
  Tensor dv_TGH = context_.Workspace({T, G, H});
  const auto attend_backward =
      reference_ ? kernels::AttentionBackwardReference : kernels::AttentionBackward;
  attend_backward(stream, kept.heads.q_TNH.View({B, S, N, H}), kept.heads.k_TGH.View({B, S, G, H}),
                  kept.heads.v_TGH.View({B, S, G, H}), kept.o_TNH.View({B, S, N, H}), kept.lse_BNS,
                  do_TNH.View({B, S, N, H}), scale_, {}, dq_TNH.View({B, S, N, H}),
                  dk_TGH.View({B, S, G, H}), dv_TGH.View({B, S, G, H}));
  kept.heads = {};
  kept.lse_BNS = {};
  const TensorView rope_rows = rope_.SequentialRows(B, S);
  kernels::RopeBackward(stream, dq_TNH, rope_rows, rope_.cos(), rope_.sin(), RopeStyle::kHalf);
  kernels::RopeBackward(stream, dk_TGH, rope_rows, rope_.cos(), rope_.sin(), RopeStyle::kHalf);

  kept.dqkv_TC = context_.Activation({T, (N + 2 * G) * H});
  const TensorView fused = PerGroup(kept.dqkv_TC);
  kernels::CopyColumnsIn(stream, dq_TNH.View({T * G, q_columns}), fused, 0);
  kernels::CopyColumnsIn(stream, dk_TGH.View({T * G, H}), fused, q_columns);
  kernels::CopyColumnsIn(stream, dv_TGH.View({T * G, H}), fused, q_columns + H);

  kept.dnormed_TD = context_.Activation({T, D});
  kernels::LinearBackwardInput(stream, kept.dqkv_TC, w_.qkv_CD->value, kept.dnormed_TD);
  Tensor dx_TD = context_.Activation({T, D});
  kernels::Copy(stream, dy_TD, dx_TD);  // the residual's share
  kernels::RmsNormBackwardInput(stream, kept.dnormed_TD, kept.x_TD, w_.norm_D->value, kept.rstd_T,
                                dx_TD, /*accumulate_dx=*/true);
  kept.dy_TD = std::move(dy_TD);
  return dx_TD;
}

void Attention::BackwardWeight(int64_t micro_batch) {
  Stream& stream = context_.stream;
  const Kept& kept = saved_.At(micro_batch);
  const int64_t T = kept.dy_TD.dim(0);
  kernels::LinearBackwardWeight(stream, kept.dy_TD, kept.o_TNH.View({T, num_heads_ * head_dim_}),
                                w_.out_DNH->main_grad);
  kernels::LinearBackwardWeight(stream, kept.dqkv_TC, kept.normed_TD, w_.qkv_CD->main_grad);
  kernels::RmsNormBackwardWeight(stream, kept.dnormed_TD, kept.x_TD, kept.rstd_T,
                                 w_.norm_D->main_grad);
  saved_.Drop(micro_batch);
}

Tensor Attention::Infer(TensorView x_TD, TensorView rope_rows_T, std::span<const int64_t> lengths,
                        int64_t layer, KvCache& cache) {
  Stream& stream = context_.stream;
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1);
  Tensor normed_TD = context_.Activation({T, D});
  Tensor rstd_T = context_.Activation({T});
  kernels::RmsNorm(stream, x_TD, w_.norm_D->value, normed_TD, rstd_T, epsilon_);
  const Heads heads = Project(normed_TD, rope_rows_T);

  Tensor o_TNH = context_.Activation({T, num_heads_, head_dim_});
  int64_t begin = 0;
  for (size_t sequence = 0; sequence < lengths.size(); ++sequence) {
    const int64_t count = lengths[sequence];
    if (count == 0) continue;
    cache.AppendAndAttend(
        stream, layer, static_cast<int64_t>(sequence), heads.q_TNH.view().Rows(begin, count),
        heads.k_TGH.view().Rows(begin, count), heads.v_TGH.view().Rows(begin, count), scale_,
        o_TNH.view().Rows(begin, count));
    begin += count;
  }
  MEGA_CHECK_EQ(begin, T);

  Tensor y_TD = context_.Activation({T, D});
  kernels::LinearForward(stream, o_TNH.View({T, num_heads_ * head_dim_}), w_.out_DNH->value, y_TD);
  kernels::AddInPlace(stream, x_TD, y_TD);
  return y_TD;
}

}  // namespace mega::transformer
