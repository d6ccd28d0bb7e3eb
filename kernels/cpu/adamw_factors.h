// AdamWOptions as the inner loop needs them, derived in double.
#pragma once

namespace mega::kernels {

struct AdamWFactors {
  float decay;                  // 1 - lr · weight_decay
  float beta1, one_less_beta1;  // of exp_avg
  float beta2, one_less_beta2;  // of exp_avg_sq
  float step_size;              // lr / (1 - beta1^step)
  float root_scale;             // 1 / sqrt(1 - beta2^step)
  float eps, grad_scale;
};

}  // namespace mega::kernels
