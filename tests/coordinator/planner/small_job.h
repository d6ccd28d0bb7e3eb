// A job that breaks no rule and leaves all that it can to its defaults.
#pragma once

#include "mega/v1/job.pb.h"

namespace mega::testing {

inline v1::JobSpec SmallJob() {
  v1::JobSpec spec;
  spec.mutable_model()->set_num_layers(2);
  spec.mutable_model()->set_hidden_size(64);
  spec.mutable_model()->set_num_attention_heads(4);
  spec.mutable_data()->add_paths("/data/text.txt");
  spec.mutable_data()->set_seq_length(32);
  spec.mutable_training()->set_steps(10);
  spec.mutable_training()->set_global_batch_size(12);
  spec.mutable_optimizer()->set_lr(1e-3);
  return spec;
}

}  // namespace mega::testing
