// One function per op of tests/data/ops: runs the kernels on a case and compares every output and
// gradient that the case has.
#pragma once

#include "tests/support/reference_cases.h"

namespace mega::kernels {

void RunRmsNorm(testing::ReferenceCase& c);
void RunSilu(testing::ReferenceCase& c);
void RunSwiGlu(testing::ReferenceCase& c);
void RunRope(testing::ReferenceCase& c);
void RunAttention(testing::ReferenceCase& c);
void RunCrossEntropy(testing::ReferenceCase& c);
void RunLinear(testing::ReferenceCase& c);
void RunEmbedding(testing::ReferenceCase& c);
void RunAdamW(testing::ReferenceCase& c);

}  // namespace mega::kernels
