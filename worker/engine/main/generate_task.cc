#include "worker/engine/main/generate_task.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "worker/engine/inference/generate.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/main/restore.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::engine {
namespace {

using Ids = std::vector<int32_t>;

absl::StatusOr<std::vector<Ids>> PromptIds(const GenerateOptions& options,
                                           const tokenizers::Tokenizer* tokenizer) {
  if (!options.ids.empty()) {
    if (!options.prompts.empty()) return InvalidArgument("give --prompt or --ids, not both");
    return std::vector<Ids>{options.ids};
  }
  if (tokenizer == nullptr) {
    return InvalidArgument("{} has no tokenizer that this release reads; give --ids 1,2,3",
                           options.model);
  }
  if (options.prompts.empty())
    return InvalidArgument("no prompt; give --prompt TEXT or --ids 1,2,3");
  std::vector<Ids> ids;
  for (const std::string& prompt : options.prompts) {
    tokenizer->Encode(prompt, ids.emplace_back());
    if (ids.back().empty())
      return InvalidArgument("--prompt is empty; give at least one character");
  }
  return ids;
}

absl::Status Run(const GenerateOptions& options) {
  Stream stream({}, options.threads);
  Pool pool({});
  MEGA_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(options.model, pool, stream));
  std::unique_ptr<tokenizers::Tokenizer> tokenizer;
  if (!model.tokenizer.empty()) {
    MEGA_ASSIGN_OR_RETURN(tokenizer, tokenizers::MakeTokenizer(model.tokenizer));
  }
  MEGA_ASSIGN_OR_RETURN(const std::vector<Ids> prompts, PromptIds(options, tokenizer.get()));

  inference::GenerateOptions generate{.max_new_tokens = options.max_new_tokens,
                                      .sampling = options.sampling,
                                      .stop_tokens = model.stop_tokens};
  if (options.greedy) generate.sampling.temperature = 0;
  const bool stream_text = options.output == "text" && prompts.size() == 1 && tokenizer;
  // Not before the first token: what follows may refuse the prompt.
  auto begin_text = [&, has_begun = false]() mutable {
    if (std::exchange(has_begun, true) || options.prompts.empty()) return;
    std::fputs(options.prompts[0].c_str(), stdout);
  };
  if (stream_text) {
    generate.on_token = [&](size_t, int32_t token) {
      begin_text();
      std::fputs(tokenizer->Decode(std::span(&token, 1)).c_str(), stdout);
      std::fflush(stdout);
    };
  }
  MEGA_ASSIGN_OR_RETURN(const std::vector<Ids> made,
                        inference::Generate(*model.decoder, pool, stream, prompts, generate));
  if (stream_text) {
    begin_text();  // there may be no token at all
    std::fputs("\n", stdout);
    return absl::OkStatus();
  }
  nlohmann::json results = nlohmann::json::array();
  for (size_t i = 0; i < made.size(); ++i) {
    nlohmann::json result = {{"prompt_ids", prompts[i]}, {"ids", made[i]}};
    if (tokenizer) result["text"] = tokenizer->Decode(made[i]);
    if (i < options.prompts.size()) result["prompt"] = options.prompts[i];
    results.push_back(std::move(result));
  }
  if (options.output == "json") {
    // Bytes that are no UTF-8 (a byte tokenizer may make them) print as U+FFFD.
    std::puts(results.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return absl::OkStatus();
  }
  for (const auto& result : results) {
    if (tokenizer) {
      std::printf("%s%s\n", result.value("prompt", "").c_str(),
                  result["text"].get<std::string>().c_str());
    } else {
      std::puts(result["ids"].dump().c_str());
    }
  }
  return absl::OkStatus();
}

}  // namespace

int Generate(const GenerateOptions& options) {
  const absl::Status status = Run(options);
  if (status.ok()) return kExitOk;
  TellError("mega-engine generate", status);
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : kExitFailed;
}

}  // namespace mega::engine
