// Good GGUF files: other programs' files, versions, alignment, split files.

#include <cstring>
#include <map>
#include <string>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_format.h"
#include "rbee/io/gguf_writer.h"
#include "tests/support/data_folder.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

namespace fs = std::filesystem;

class GgufTest : public ScratchFolder {};

std::string text(std::string_view value) {
  return raw(uint64_t{value.size()}, value);
}

// Written by gguf-py.
TEST_F(GgufTest, FileOfAnotherProgram) {
  const fs::path path =
      fs::path(rbee::test::data_folder()) / "models/language/data" / "llama" / "model.gguf";
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.format(), Checkpoint::Format::gguf);
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.tensors().size(), 21u);
  EXPECT_EQ(checkpoint.metadata().require_i64("llama.block_count"), 2);
  EXPECT_NEAR(checkpoint.metadata().require_f64("llama.attention.layer_norm_rms_epsilon"), 1e-5,
              1e-9);
  EXPECT_EQ(checkpoint.file_bytes(), static_cast<int64_t>(fs::file_size(path)));
  EXPECT_EQ(checkpoint.config_json(), "");
  const TensorEntry& table = checkpoint.require("token_embd.weight");
  EXPECT_EQ(table.shape, (Shape{160, 64}));
  EXPECT_EQ(table.data.size(), static_cast<size_t>(row_bytes(table.dtype, 64)) * 160);
  EXPECT_EQ(table.file->path(), path);
}

TEST_F(GgufTest, VersionTwo) {
  std::string bytes = raw("GGUF", uint32_t{2}, uint64_t{1}, uint64_t{1}) +
                      text("general.architecture") + raw(uint32_t{8}) + text("old") + text("t") +
                      raw(uint32_t{2}, uint64_t{3}, uint64_t{2}, uint32_t{0}, uint64_t{0});
  bytes.resize((bytes.size() + 31) / 32 * 32);
  for (int value = 0; value < 6; ++value) bytes += raw(static_cast<float>(value));
  const Checkpoint checkpoint = Checkpoint::open(write("v2.gguf", bytes));
  EXPECT_EQ(checkpoint.architecture(), "old");
  const TensorEntry& tensor = checkpoint.require("t");
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));  // innermost first in the file
  float values[6];
  ASSERT_EQ(tensor.data.size(), sizeof values);
  std::memcpy(values, tensor.data.data(), sizeof values);
  EXPECT_EQ(values[5], 5);
}

TEST_F(GgufTest, NestedAndEmptyArrays) {
  const uint32_t array = 9, u8 = 0, string = 8;
  std::string bytes = raw("GGUF", uint32_t{3}, uint64_t{0}, uint64_t{4});
  bytes += text("nested") + raw(array, array, uint64_t{2});
  bytes += raw(u8, uint64_t{3}, uint8_t{1}, uint8_t{2}, uint8_t{3}) + raw(string, uint64_t{0});
  bytes += text("empty") + raw(array, string, uint64_t{0});
  bytes += text("empty numbers") + raw(array, uint32_t{12}, uint64_t{0});
  bytes += text("after") + raw(u8, uint8_t{7});
  const Checkpoint checkpoint = Checkpoint::open(write("arrays.gguf", bytes));
  EXPECT_EQ(checkpoint.metadata().find("nested")->describe_type(), "an array of 2 array");
  EXPECT_TRUE(checkpoint.metadata().require_strings("empty").empty());
  EXPECT_TRUE(checkpoint.metadata().require_floats("empty numbers").empty());
  EXPECT_EQ(checkpoint.metadata().require_u64("after"), 7u);
}

TEST_F(GgufTest, TensorsWithoutElements) {
  GgufWriter writer;
  writer.add_tensor("none", DType::q4_0, Shape{0, 32});
  writer.add_tensor("scalar", DType::f32, Shape{});
  writer.begin(path("empty.gguf"));
  const float value = 3;
  writer.write(std::as_bytes(std::span(&value, 1)));
  writer.finish();
  const Checkpoint checkpoint = Checkpoint::open(path("empty.gguf"));
  EXPECT_TRUE(checkpoint.require("none").data.empty());
  EXPECT_EQ(checkpoint.require("scalar").data.size(), sizeof value);
}

// Writes part `part` of `count` with one tensor named after it.
void write_part(const fs::path& path, uint32_t part, uint32_t count, uint32_t total,
                const std::string& tensor) {
  GgufWriter writer;
  writer.set_u32("split.no", part);
  writer.set_u32("split.count", count);
  writer.set_u32("split.tensors.count", total);
  if (part == 0) writer.set_string("general.architecture", "llama");
  writer.add_tensor(tensor, DType::f32, Shape{1});
  writer.begin(path);
  const auto value = static_cast<float>(part);
  writer.write(std::as_bytes(std::span(&value, 1)));
  writer.finish();
}

TEST_F(GgufTest, SplitFile) {
  for (uint32_t i = 0; i < 3; ++i) {
    write_part(path(cat("m-0000", i + 1, "-of-00003.gguf")), i, 3, 3, cat("t", i));
  }
  const Checkpoint checkpoint = Checkpoint::open(path("m-00001-of-00003.gguf"));
  EXPECT_EQ(checkpoint.architecture(), "llama");
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  for (int i = 0; i < 3; ++i) {
    float value = -1;
    std::memcpy(&value, checkpoint.require(cat("t", i)).data.data(), sizeof value);
    EXPECT_EQ(value, static_cast<float>(i));
  }
  expect_error(Code::invalid_argument, {"part 2 of 3", "-00001-of-00003.gguf"},
               [&] { Checkpoint::open(path("m-00002-of-00003.gguf")); });
}

TEST_F(GgufTest, SplitFileWithoutAPart) {
  write_part(path("m-00001-of-00002.gguf"), 0, 2, 2, "a");
  const auto open = [&] { Checkpoint::open(path("m-00001-of-00002.gguf")); };
  expect_error(Code::not_found, {"m-00002-of-00002.gguf"}, open);
  write_part(path("m-00002-of-00002.gguf"), 2, 3, 2, "b");
  expect_error(Code::invalid_argument, {"part 3 of 3, wanted part 2 of 2"}, open);
  write_part(path("m-00002-of-00002.gguf"), 1, 2, 2, "a");
  expect_error(Code::invalid_argument, {"tensor a comes twice", "m-00001-of-00002.gguf"}, open);
  write_part(path("m-00001-of-00002.gguf"), 0, 2, 5, "c");
  expect_error(Code::invalid_argument, {"split.tensors.count is 5", "2 tensors"}, open);
  write_part(path("renamed.gguf"), 0, 2, 2, "c");
  expect_error(Code::invalid_argument, {"-00001-of-00002.gguf"},
               [&] { Checkpoint::open(path("renamed.gguf")); });
  write_part(path("many-00001-of-99999.gguf"), 0, 99999, 2, "c");
  expect_error(Code::invalid_argument, {"split.count is 99999"},
               [&] { Checkpoint::open(path("many-00001-of-99999.gguf")); });
}

// enum ggml_type in ggml's ggml.h, except types that this project does not read.
TEST(GgufFormat, TypesHaveGgmlsNumbersAndNames) {
  const std::map<uint32_t, std::string> wanted = {
      {0, "F32"},      {1, "F16"},    {2, "Q4_0"},    {3, "Q4_1"},     {6, "Q5_0"},
      {7, "Q5_1"},     {8, "Q8_0"},   {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},
      {13, "Q5_K"},    {14, "Q6_K"},  {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"},
      {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},
      {23, "IQ4_XS"},  {25, "I16"},   {26, "I32"},    {27, "I64"},     {28, "F64"},
      {29, "IQ1_M"},   {30, "BF16"},  {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
      {40, "NVFP4"}};
  for (uint32_t number = 0; number < 64; ++number) {
    const auto dtype = dtype_of_ggml(number);
    EXPECT_EQ(dtype.has_value(), wanted.contains(number)) << number;
    if (!dtype || !wanted.contains(number)) continue;
    EXPECT_EQ(ggml_type_name(number), wanted.at(number));
    EXPECT_EQ(ggml_type_of(*dtype), number);
    EXPECT_EQ(parse_dtype(wanted.at(number)), dtype);
  }
  for (const DType dtype : kAllDTypes) {
    const bool stored = wanted.contains(ggml_type_of(dtype).value_or(63));
    EXPECT_EQ(ggml_type_of(dtype).has_value(), stored) << rbee::name(dtype);
  }
  EXPECT_EQ(ggml_type_name(9), "Q8_1");
  EXPECT_EQ(ggml_type_name(63), "unknown");
}

}  // namespace
}  // namespace rbee::io::test
