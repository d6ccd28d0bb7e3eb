// Rules between keys of a job.
#pragma once

#include <string>
#include <vector>

#include "coordinator/planner/spec/spec.h"

namespace mega::spec {

//   exactly one of training.steps and training.tokens
//   training.micro_batch_size ≤ training.global_batch_size; at most 10^18 tokens in the whole job
//   optimizer.min_lr ≤ optimizer.lr; optimizer.warmup_steps ≤ steps
//   model.num_layers, hidden_size, num_attention_heads given, unless model.hf gives them
//   model.num_query_groups divides num_attention_heads; heads divide hidden_size or head_dim given;
//   head_dim even (rope rotates pairs); max_position_embeddings ≥ data.seq_length
//   model.vocab_size holds the tokenizer's ids when data.paths name text
//   data.split is readable, and leaves something for validation where validation is asked for
// and those of device_rules.h and recovery_rules.h.
// A rule is silent while a key it needs is itself unset or out of bounds.
void CheckCrossRules(const v1::JobSpec& resolved, std::vector<Violation>& out);

// Those of them that are about the model. complete: model.hf is no excuse for what is missing.
void CheckModelRules(const v1::JobSpec& resolved, bool complete, std::vector<Violation>& out);

// Divisors of n in rising order, as choices for a message; the largest ones only if there are many.
std::vector<std::string> DivisorsOf(int64_t n);

}  // namespace mega::spec
