#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::tokenizers {
namespace {

TEST(ByteTokenizer, EveryByteRoundTrips) {
  const auto tokenizer = *MakeTokenizer("byte");
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  std::vector<int32_t> ids;
  tokenizer->Encode(text, ids);
  ASSERT_EQ(ids.size(), 256u);
  EXPECT_EQ(ids[200], 200);
  EXPECT_EQ(tokenizer->Decode(ids), text);
  EXPECT_EQ(tokenizer->vocab_size(), 256);
}

TEST(ByteTokenizer, EncodeAppendsSoThatTextsMayBeCut) {
  const auto tokenizer = *MakeTokenizer("byte");
  ASSERT_TRUE(tokenizer->concatenative());
  std::vector<int32_t> whole, pieces;
  tokenizer->Encode("first light", whole);
  tokenizer->Encode("first", pieces);
  tokenizer->Encode(" light", pieces);
  EXPECT_EQ(pieces, whole);
}

TEST(ByteTokenizer, IdsOutsideTheVocabularyDecodeToNothing) {
  EXPECT_EQ((*MakeTokenizer("byte"))->Decode(std::vector<int32_t>{-1, 'a', 256, 'b', 1 << 30}),
            "ab");
}

TEST(MakeTokenizer, RefusesUnknownNames) {
  EXPECT_EQ(MakeTokenizer("gpt2").status().message(), "data.tokenizer is 'gpt2'; choose byte");
}

}  // namespace
}  // namespace mega::tokenizers
