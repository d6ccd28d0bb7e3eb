#include "worker/engine/checkpoint/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace mega::checkpoint {
namespace {

using kernels::DType;
using kernels::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Safetensors : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }

  const mega::testing::TempDir folder_;
};

std::string File(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + std::string(data_bytes, 'x');
}

absl::StatusOr<SafetensorsFile> Parse(const std::string& bytes) {
  return SafetensorsFile::Parse(std::as_bytes(std::span(bytes)), "f");
}

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<TensorDeclaration> tensors = {
      {"b", DType::kF32, {2, 3}}, {"empty", DType::kF32, {0, 5}}, {"a\"\n", DType::kI64, {}}};
  auto writer = SafetensorsWriter::Create(Path("f"), tensors, {{"step", "7"}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::vector<std::byte> data(32);
  for (int i = 0; i < 32; ++i) data[i] = std::byte(i);
  ASSERT_TRUE(writer->Append(std::span(data).first(5)).ok());  // cut anyhow
  EXPECT_FALSE(writer->Append(data).ok());                     // too much
  EXPECT_FALSE(writer->Finish().ok());                         // too little
  ASSERT_TRUE(writer->Append(std::span(data).subspan(5)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(writer->file_bytes(), static_cast<int64_t>(std::filesystem::file_size(Path("f"))));

  const auto file = SafetensorsFile::Open(Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->names().size(), 3u);
  EXPECT_EQ(file->metadata().at("step"), "7");
  const TensorEntry* b = file->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (Shape{2, 3}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data.data()) % 8, 0u);  // the header is padded
  EXPECT_EQ(std::memcmp(b->data.data(), data.data(), 24), 0);
  EXPECT_EQ(file->Find("a\"\n")->data.size(), 8u);
  EXPECT_EQ(file->Find("c"), nullptr);
  EXPECT_EQ(file->Get("c").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Safetensors, TheSameTensorsGiveTheSameBytes) {
  const std::vector<TensorDeclaration> tensors = {{"b", DType::kF32, {2}}, {"a", DType::kU8, {3}}};
  EXPECT_EQ(*SafetensorsHeader(tensors, {{"x", "1"}, {"y", "2"}}),
            *SafetensorsHeader(tensors, {{"y", "2"}, {"x", "1"}}));
  EXPECT_EQ(SafetensorsHeader(tensors)->size() % 8, 0u);
}

TEST_F(Safetensors, WriterRefusesNamesThatCannotBeStored) {
  for (const std::string& name :
       {std::string("a"), std::string("__metadata__"), std::string("\xff")})
    EXPECT_FALSE(SafetensorsHeader(std::vector<TensorDeclaration>{{"a", DType::kF32, {1}},
                                                                  {name, DType::kF32, {1}}})
                     .ok())
        << name;
  EXPECT_FALSE(SafetensorsHeader(std::vector<TensorDeclaration>{
                                     {"a", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}})
                   .ok());
}

TEST_F(Safetensors, MissingEmptyAndSpecialFilesAreErrors) {
  EXPECT_EQ(SafetensorsFile::Open(Path("none")).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(Path("empty"));
  EXPECT_THAT(SafetensorsFile::Open(Path("empty")).status().ToString(), HasSubstr("empty"));
  EXPECT_FALSE(SafetensorsFile::Open(folder_.path()).ok());
  EXPECT_FALSE(SafetensorsFile::Open("/dev/zero").ok());
}

TEST_F(Safetensors, NamesComeInTheOrderOfTheirBytes) {
  const auto file = Parse(File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                               R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                               3));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->names(), ElementsAre("b", "a"));
}

struct Bad {
  const char* header;
  size_t data_bytes;
  const char* message;
};

TEST_F(Safetensors, EveryLieOfAHeaderIsRefusedByName) {
  for (const Bad& bad : std::vector<Bad>{
           {R"()", 0, "header"},
           {R"([])", 0, "array"},
           {R"({)", 0, "no JSON"},
           {R"({} x)", 0, "no JSON"},
           {R"({"a":1})", 0, "number"},
           {R"({"a":null})", 0, "null"},
           {R"({"a":{}})", 0, "needs dtype"},
           {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "needs dtype"},
           {R"({"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", 4, "Q7"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "'x'"},
           {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
            "'dtype'"},
           {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "negative"},
           {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "fraction"},
           {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "array"},
           {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
            "dimensions"},
           {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
            "too large"},
           {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
            "int64"},
           {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", 0,
            "int64"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "two data_offsets"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4, "two data_offsets"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "begins at byte 4"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8, "data_offsets cover"},
           {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "of 4"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "cover 4 bytes"},
           {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
            2, "twice"},
           {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
            R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
            3, "overlap"},
           {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
            R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
            3, "holes"},
           {R"({"__metadata__":{"a":1}})", 0, "number"},
           {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "twice"},
           {R"({"__metadata__":{},"__metadata__":{}})", 0, "twice"}}) {
    const auto file = Parse(File(bad.header, bad.data_bytes));
    ASSERT_FALSE(file.ok()) << bad.header;
    EXPECT_THAT(file.status().ToString(), HasSubstr(bad.message)) << bad.header;
  }
}

TEST_F(Safetensors, HeaderLengthIsBoundedByTheFileAndTheLimit) {
  std::string file = File("{}", 0);
  EXPECT_TRUE(Parse(file).ok());
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 32, ~uint64_t{0}}) {
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_THAT(Parse(file).status().ToString(), HasSubstr("header has"));
  }
  EXPECT_FALSE(Parse("1234567").ok());
}

TEST_F(Safetensors, EveryPrefixOfAFileIsRefused) {
  const std::string whole = File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  ASSERT_TRUE(Parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Parse(whole.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace mega::checkpoint
