// What editors take for right, and what megactl reads: the same values.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>

#include "absl/strings/numbers.h"
#include "cli/spec/job_yaml.h"
#include "coordinator/planner/spec/json_schema.h"
#include "fmt/core.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

using Json = nlohmann::ordered_json;

// As an editor judges a plain scalar of YAML 1.2: a number, or text.
bool SchemaTakes(const Json& schema, const std::string& text) {
  if (schema.contains("anyOf")) {
    for (const Json& one : schema["anyOf"])
      if (SchemaTakes(one, text)) return true;
    return false;
  }
  if (schema.contains("const")) return schema["const"] == text;
  double number = 0;
  const bool is_number = absl::SimpleAtod(text, &number) && std::isfinite(number);
  if (schema["type"] == "string")
    return !is_number && std::regex_match(text, std::regex(std::string(schema["pattern"])));
  return is_number && (schema["type"] == "number" || std::floor(number) == number) &&
         number >= schema["minimum"].get<double>() && number <= schema["maximum"].get<double>();
}

bool ReaderTakes(const std::string& section, const std::string& key, const std::string& text) {
  const ParsedJob parsed = ParseAndCheckJob(
      {.source = "job.yaml",
       .folder = "/jobs",
       .text = "apiVersion: mega/v1\nkind: TrainingJob\nmetadata: {name: test}\nspec:\n"
               "  model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4}\n"
               "  data: {paths: [a.txt], seq_length: 32}\n"
               "  training: {steps: 20, global_batch_size: 8}\n"
               "  optimizer: {lr: 1e-3}\n",
       .overrides = {section + "." + key + "=" + text}});
  return parsed.problems.empty();
}

void ExpectBoth(const std::string& section, const std::string& key,
                const std::vector<std::string>& good, const std::vector<std::string>& bad) {
  const Json schema =
      spec::JsonSchema()["properties"]["spec"]["properties"][section]["properties"][key];
  for (const bool is_good : {true, false}) {
    for (const std::string& text : is_good ? good : bad) {
      EXPECT_EQ(SchemaTakes(schema, text), is_good) << "schema: " << key << ": " << text;
      EXPECT_EQ(ReaderTakes(section, key, text), is_good) << "reader: " << key << ": " << text;
    }
  }
}

TEST(Schema, TakesTheCountsThatTheReaderTakes) {
  ExpectBoth("training", "eval_interval",
             {"0", "1", "500k", "1.5k", "0.5M", ".5k", "2e3", "1e3k", "2B", "0.5T", "auto"},
             {"-1", "1.5", "1_000", "500K", "5G", "1Ki", "1P", "k", "1kk", "1 k", "01k", "many"});
}

TEST(Schema, TakesTheSpansThatTheReaderTakes) {
  ExpectBoth(
      "scheduling", "time_limit",
      {"3600", "1.5", "30s", "2h", "1h30m", "1m1h", "2500ms", "1.5h", ".5h", "1e3s", "3d", "auto"},
      {"0", "-1", "1h30", "1h.5m", "30 s", "30S", "1w", "s", "1_000s", "soon", "315360001"});
}

}  // namespace
}  // namespace mega::cli
