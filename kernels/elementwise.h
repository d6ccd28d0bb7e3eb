// Small element-wise ops. Any shape, equal shapes, f32. Asynchronous on `stream`.
#pragma once

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

void Fill(Stream& stream, TensorView x, float value);
void Copy(Stream& stream, TensorView from, TensorView to);             // any dtype, same dtype
void Add(Stream& stream, TensorView a, TensorView b, TensorView out);  // out may alias a or b
void AddInPlace(Stream& stream, TensorView x, TensorView y);           // y += x
void Scale(Stream& stream, TensorView x, float factor);                // x *= factor

// Columns [begin, begin + part.dim(1)) of whole_TC. Used to split and join fused projections.
void CopyColumnsOut(Stream& stream, TensorView whole_TC, int64_t begin, TensorView part_TP);
void CopyColumnsIn(Stream& stream, TensorView part_TP, TensorView whole_TC, int64_t begin);

// Sum of squares in double, in a fixed order of blocks: the same bits however many threads run.
double SumOfSquares(Stream& stream, TensorView x);
// Sum in double, same rule.
double Sum(Stream& stream, TensorView x);

}  // namespace mega::kernels
