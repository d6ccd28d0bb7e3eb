// Rows of a table by id. ids_T i32 in [0, V): checked by the caller against the vocabulary once.
// Backward adds; repeated ids add up, in token order, so it is bitwise repeatable.
#pragma once

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

void EmbeddingForward(Stream& stream, TensorView ids_T, TensorView table_VD, TensorView y_TD);
void EmbeddingBackward(Stream& stream, TensorView ids_T, TensorView dy_TD, TensorView dtable_VD);

}  // namespace mega::kernels
