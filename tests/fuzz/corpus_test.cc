// What the fuzzers begin with, and small damage to it, through the same code wherever it is built.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

// One a file NAME_fuzz.cc, which this test builds under that name.
extern "C" {
int hf_config_fuzz(const uint8_t* data, size_t size);
int hf_index_fuzz(const uint8_t* data, size_t size);
int indexed_fuzz(const uint8_t* data, size_t size);
int job_yaml_fuzz(const uint8_t* data, size_t size);
int journal_fuzz(const uint8_t* data, size_t size);
int jsonl_fuzz(const uint8_t* data, size_t size);
int layout_fuzz(const uint8_t* data, size_t size);
int manifest_fuzz(const uint8_t* data, size_t size);
int safetensors_fuzz(const uint8_t* data, size_t size);
}

namespace mega::fuzz {
namespace {

const std::map<std::string, int (*)(const uint8_t*, size_t)> kFuzzers = {
    {"hf_config", hf_config_fuzz}, {"hf_index", hf_index_fuzz}, {"indexed", indexed_fuzz},
    {"job_yaml", job_yaml_fuzz},   {"journal", journal_fuzz},   {"jsonl", jsonl_fuzz},
    {"layout", layout_fuzz},       {"manifest", manifest_fuzz}, {"safetensors", safetensors_fuzz}};

// The input, ever less of it, and with one byte after the other changed.
void FeedDamaged(std::string input, const std::function<void(const std::string&)>& feed) {
  constexpr size_t kVariants = 64;
  feed(input);
  const size_t stride = input.size() / kVariants + 1;
  for (size_t at = 0; at < input.size(); at += stride) {
    feed(input.substr(0, at));
    for (const char flipped : {'\x01', '\x80', '\xff'}) {
      input[at] ^= flipped;
      feed(input);
      input[at] ^= flipped;
    }
  }
}

TEST(Corpus, NothingThatFuzzersBeginWithNorSmallDamageToItEndsTheProcess) {
  namespace fs = std::filesystem;
  for (const auto& folder : fs::directory_iterator(MEGA_SOURCE_DIR "/tests/fuzz/corpus")) {
    const std::string name = folder.path().filename();
    SCOPED_TRACE(name);
    ASSERT_TRUE(kFuzzers.contains(name)) << "a corpus without its fuzzer";
    int inputs = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
      SCOPED_TRACE(file.path());
      ++inputs;
      FeedDamaged(mega::testing::ReadFile(file.path()), [&](const std::string& input) {
        EXPECT_EQ(kFuzzers.at(name)(reinterpret_cast<const uint8_t*>(input.data()), input.size()),
                  0);
      });
    }
    EXPECT_GT(inputs, 0);
  }
  for (const auto& [name, fuzzer] : kFuzzers) {
    EXPECT_TRUE(fs::is_directory(MEGA_SOURCE_DIR "/tests/fuzz/corpus/" + name)) << name;
  }
}

}  // namespace
}  // namespace mega::fuzz
