#include "tests/kernels/reference_ops.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cpu/attention_mask.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "tests/support/tolerance.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;
using testing::ReferenceCase;

void ExpectClose(ReferenceCase& c, const std::string& tensor, const HostTensor& got,
                 double tolerance = testing::kF32Tolerance) {
  EXPECT_LE(testing::RelativeL2(got, c.Get(tensor)), tolerance) << tensor;
}

// The tensor as rows of its last dimension.
TensorView Rows(HostTensor& x) {
  const int64_t columns = x.dim(x.shape().rank() - 1);
  return x.View({x.elements() / columns, columns});
}

}  // namespace

void RunRmsNorm(ReferenceCase& c) {
  Stream stream({}, 1);
  const bool zero_centered = c.name.find("zero_centered") != std::string::npos;
  const float eps = c.about.at("eps");
  HostTensor &x = c.Get("in.x"), &gamma = c.Get("in.weight"), &dy = c.Get("dout.y");
  HostTensor y(x.shape()), dx(x.shape()), rstd({Rows(x).dim(0)});
  HostTensor dgamma = HostTensor::Zeros(gamma.shape());
  RmsNorm(stream, Rows(x), gamma, Rows(y), rstd, eps, zero_centered);
  RmsNormBackwardInput(stream, Rows(dy), Rows(x), gamma, rstd, Rows(dx), false, zero_centered);
  RmsNormBackwardWeight(stream, Rows(dy), Rows(x), rstd, dgamma);
  ExpectClose(c, "out.y", y);
  ExpectClose(c, "grad.x", dx);
  ExpectClose(c, "grad.weight", dgamma);
}

void RunSilu(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor &x = c.Get("in.x"), &dy = c.Get("dout.y");
  HostTensor y(x.shape()), dx(x.shape());
  Silu(stream, x, y);
  SiluBackward(stream, dy, x, dx);
  ExpectClose(c, "out.y", y);
  ExpectClose(c, "grad.x", dx);
}

void RunSwiGlu(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor x = c.Get("in.x"), &dy = c.Get("dout.y");
  HostTensor y(dy.shape()), dx(x.shape());
  if (c.Has("in.bias")) AddBias(stream, Rows(x), c.Get("in.bias"));
  SwiGlu(stream, Rows(x), Rows(y));
  SwiGluBackward(stream, Rows(dy), Rows(x), Rows(dx));
  ExpectClose(c, "out.y", y);
  ExpectClose(c, "grad.x", dx);
  if (!c.Has("in.bias")) return;
  HostTensor dbias = HostTensor::Zeros(c.Get("in.bias").shape());
  AddBiasBackward(stream, Rows(dx), dbias);
  ExpectClose(c, "grad.bias", dbias);
}

void RunRope(ReferenceCase& c) {
  Stream stream({}, 1);
  const auto style = c.about.at("style") == "half" ? RopeStyle::kHalf : RopeStyle::kInterleaved;
  HostTensor y = c.Get("in.x"), dx = c.Get("dout.y");
  HostTensor& positions = c.Get("in.positions");
  const int64_t B = y.dim(0), S = y.dim(1), N = y.dim(2), H = y.dim(3);
  HostTensor cos(c.Get("out.cos").shape()), sin(cos.shape());
  RopeTable(stream, positions.i32(), c.about.at("theta"), cos, sin);
  std::vector<int32_t> rows;
  for (int64_t t = 0; t < B * S; ++t) rows.push_back(static_cast<int32_t>(t % S));
  HostTensor table_rows = HostTensor::Of(rows);
  RopeForward(stream, y.View({B * S, N, H}), table_rows, cos, sin, style);
  RopeBackward(stream, dx.View({B * S, N, H}), table_rows, cos, sin, style);
  // Angles in double: positions in the thousands are no exception.
  ExpectClose(c, "out.cos", cos, 1e-6);
  ExpectClose(c, "out.sin", sin, 1e-6);
  ExpectClose(c, "out.y", y, 1e-6);
  ExpectClose(c, "grad.x", dx, 1e-6);
}

void RunAttention(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor &q = c.Get("in.q"), &k = c.Get("in.k"), &v = c.Get("in.v"), &dout = c.Get("dout.o");
  const std::string rule = c.about.at("mask_rule");
  const auto documents = c.Attribute<std::vector<int32_t>>("cu_seqlens", {});
  const AttentionMask mask{.causal = rule != "all keys seen",
                           .window = c.Attribute<int64_t>("window", 0),
                           .cu_seqlens = documents};
  const std::vector<KeyRange> ranges = VisibleKeys(mask, q.dim(1), k.dim(1));
  const auto map = c.Get("in.mask").view().As<uint8_t, 2>();
  for (int64_t i = 0; i < q.dim(1); ++i)
    for (int64_t j = 0; j < k.dim(1); ++j)
      ASSERT_EQ(map(i, j) != 0, j >= ranges[i].begin && j < ranges[i].end) << i << "," << j;

  const float scale = c.about.at("softmax_scale");
  HostTensor o(dout.shape()), lse(c.Get("out.lse").shape());
  HostTensor dq(q.shape()), dk(k.shape()), dv(v.shape());
  AttentionForward(stream, q, k, v, scale, mask, o, lse);
  AttentionBackward(stream, q, k, v, o, lse, dout, scale, mask, dq, dk, dv);
  ExpectClose(c, "out.o", o);
  ExpectClose(c, "out.lse", lse);
  ExpectClose(c, "grad.q", dq);
  ExpectClose(c, "grad.k", dk);
  ExpectClose(c, "grad.v", dv);

  AttentionForwardReference(stream, q, k, v, scale, mask, o, lse);
  AttentionBackwardReference(stream, q, k, v, o, lse, dout, scale, mask, dq, dk, dv);
  ExpectClose(c, "out.o", o, 1e-6);
  ExpectClose(c, "out.lse", lse, 1e-6);
  ExpectClose(c, "grad.q", dq, 1e-6);
  ExpectClose(c, "grad.k", dk, 1e-6);
  ExpectClose(c, "grad.v", dv, 1e-6);
}

void RunCrossEntropy(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor &logits = c.Get("in.logits"), &labels = c.Get("in.labels");
  HostTensor loss(labels.shape()), lse(labels.shape()), dlogits(logits.shape());
  CrossEntropyForward(stream, logits, labels, loss, lse);
  const auto all = labels.i32();
  const auto unmasked =
      static_cast<float>(all.size() - std::count(all.begin(), all.end(), kIgnoredLabel));
  const float scale = unmasked == 0 ? 0 : c.Get("dout.loss").f32()[0] / unmasked;
  CrossEntropyBackward(stream, logits, labels, lse, scale, dlogits);
  HostTensor mean({1});
  mean.f32()[0] = unmasked == 0 ? 0 : static_cast<float>(Sum(stream, loss) / unmasked);
  ExpectClose(c, "out.per_token", loss);
  ExpectClose(c, "out.loss", mean);
  ExpectClose(c, "out.lse", lse);
  ExpectClose(c, "grad.logits", dlogits);
}

void RunLinear(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor &x = c.Get("in.x"), &w = c.Get("in.weight"), &dy = c.Get("dout.y");
  HostTensor y(dy.shape()), dx(x.shape()), dw = HostTensor::Zeros(w.shape());
  LinearForward(stream, Rows(x), w, Rows(y));
  LinearBackwardInput(stream, Rows(dy), w, Rows(dx));
  LinearBackwardWeight(stream, Rows(dy), Rows(x), dw);
  if (c.Has("in.bias")) {
    AddBias(stream, Rows(y), c.Get("in.bias"));
    HostTensor dbias = HostTensor::Zeros(c.Get("in.bias").shape());
    AddBiasBackward(stream, Rows(dy), dbias);
    ExpectClose(c, "grad.bias", dbias);
  }
  ExpectClose(c, "out.y", y);
  ExpectClose(c, "grad.x", dx);
  ExpectClose(c, "grad.weight", dw);
}

void RunEmbedding(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor &ids = c.Get("in.ids"), &table = c.Get("in.weight"), &dy = c.Get("dout.y");
  HostTensor y(dy.shape()), dtable = HostTensor::Zeros(table.shape());
  EmbeddingForward(stream, ids.View({ids.elements()}), table, Rows(y));
  EmbeddingBackward(stream, ids.View({ids.elements()}), Rows(dy), dtable);
  ExpectClose(c, "out.y", y, 0);
  ExpectClose(c, "grad.weight", dtable);
}

void RunAdamW(ReferenceCase& c) {
  Stream stream({}, 1);
  HostTensor param = c.Get("in.param"), m = c.Get("in.exp_avg"), v = c.Get("in.exp_avg_sq");
  AdamW(stream,
        {.lr = c.about.at("lr"),
         .beta1 = c.about.at("beta1"),
         .beta2 = c.about.at("beta2"),
         .eps = c.about.at("eps"),
         .weight_decay = c.about.at("weight_decay"),
         .step = c.about.at("step")},
        param, c.Get("in.grad"), m, v);
  ExpectClose(c, "out.param", param);
  ExpectClose(c, "out.exp_avg", m);
  ExpectClose(c, "out.exp_avg_sq", v);
}

}  // namespace mega::kernels
