#include "kernels/embedding.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/edge.h"
#include "kernels/parallel_for.h"

namespace mega::kernels {

void EmbeddingForward(Stream& stream, TensorView ids_T, TensorView table_VD, TensorView y_TD) {
  const int64_t T = ids_T.dim(0), V = table_VD.dim(0), D = table_VD.dim(1);
  CheckShape(y_TD, {T, D});
  const int32_t* ids = Data<const int32_t>(ids_T);
  const float* table = Data(table_VD);
  float* y = Data(y_TD);
  ParallelFor(stream, T, 16384 / (D + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      MEGA_CHECK(ids[t] >= 0 && ids[t] < V);
      std::copy_n(table + ids[t] * D, D, y + t * D);
    }
  });
}

// Threads share the columns, not the tokens: each adds up a row's repeats in token order.
void EmbeddingBackward(Stream& stream, TensorView ids_T, TensorView dy_TD, TensorView dtable_VD) {
  const int64_t T = ids_T.dim(0), V = dtable_VD.dim(0), D = dtable_VD.dim(1);
  CheckShape(dy_TD, {T, D});
  const int32_t* ids = Data<const int32_t>(ids_T);
  const float* dy = Data(dy_TD);
  float* dtable = Data(dtable_VD);
  ParallelFor(stream, D, std::max<int64_t>(64, 16384 / (T + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < T; ++t) {
      MEGA_CHECK(ids[t] >= 0 && ids[t] < V);
      const float* from = dy + t * D;
      float* to = dtable + ids[t] * D;
      for (int64_t d = begin; d < end; ++d) to[d] += from[d];
    }
  });
}

}  // namespace mega::kernels
