// Good safetensors files.

#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "rbee/io/checkpoint.h"
#include "rbee/io/tensor_entry.h"
#include "tests/support/data_folder.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

namespace fs = std::filesystem;

class SafetensorsTest : public ScratchFolder {
 protected:
  fs::path write_tensors(std::string_view name, const std::string& header,
                         const std::string& data) const {
    return write(name, raw(uint64_t{header.size()}) + header + data);
  }
};

// Written by the safetensors package.
TEST_F(SafetensorsTest, FileOfAnotherProgram) {
  const fs::path folder =
      fs::path(rbee::test::data_folder()) / "models/language/data" / "qwen2" / "hf";
  const Checkpoint checkpoint = Checkpoint::open(folder / "model.safetensors");
  EXPECT_EQ(checkpoint.format(), Checkpoint::Format::safetensors);
  EXPECT_EQ(checkpoint.architecture(), "qwen2");
  EXPECT_TRUE(checkpoint.metadata().entries().empty());
  EXPECT_NE(checkpoint.config_json().find("\"hidden_size\""), std::string::npos);
  EXPECT_EQ(checkpoint.require("model.embed_tokens.weight").shape, (Shape{160, 64}));
}

TEST_F(SafetensorsTest, EveryType) {
  const auto path =
      write_tensors("types.safetensors",
                    R"({"__metadata__":{"format":"pt","x":"y"},)"
                    R"("f64":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                    R"("i64":{"dtype":"I64","shape":[1],"data_offsets":[8,16]},)"
                    R"("f32":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
                    R"("i32":{"dtype":"I32","shape":[1],"data_offsets":[20,24]},)"
                    R"("u32":{"dtype":"U32","shape":[1],"data_offsets":[24,28]},)"
                    R"("f16":{"dtype":"F16","shape":[1],"data_offsets":[28,30]},)"
                    R"("bf16":{"dtype":"BF16","shape":[1],"data_offsets":[30,32]},)"
                    R"("i16":{"dtype":"I16","shape":[1],"data_offsets":[32,34]},)"
                    R"("u8":{"dtype":"U8","shape":[1],"data_offsets":[34,35]},)"
                    R"("f8":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[35,36]},)"
                    R"("bool":{"data_offsets":[36,38],"shape":[1,2],"dtype":"BOOL"},)"
                    R"("none":{"dtype":"F32","shape":[0,5],"data_offsets":[38,38]}} )",
                    std::string(38, '\1'));
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.tensors().size(), 12u);
  for (const char* type : {"f64", "i64", "f32", "i32", "u32", "f16", "bf16", "i16", "u8"}) {
    EXPECT_EQ(checkpoint.require(type).dtype, parse_dtype(type)) << type;
  }
  EXPECT_EQ(checkpoint.require("f8").dtype, DType::f8e4m3);
  EXPECT_EQ(checkpoint.require("bool").dtype, DType::u8);
  EXPECT_EQ(checkpoint.require("bool").shape, (Shape{1, 2}));
  EXPECT_EQ(checkpoint.require("f32").shape, Shape{});
  EXPECT_TRUE(checkpoint.require("none").data.empty());
  const auto value = [&](const char* name) { return read_floats(checkpoint.require(name))[0]; };
  EXPECT_EQ(value("i64"), static_cast<float>(0x0101010101010101));
  EXPECT_EQ(value("i32"), static_cast<float>(0x01010101));
  EXPECT_EQ(value("u32"), static_cast<float>(0x01010101));
  EXPECT_EQ(value("i16"), 257.0f);
  EXPECT_EQ(value("u8"), 1.0f);
  EXPECT_EQ(value("f64"), static_cast<float>(std::bit_cast<double>(0x0101010101010101)));
}

// The types of safetensors 0.8.0 for PyTorch that have no DType; values by torch 2.15.0.
TEST_F(SafetensorsTest, TypesWithoutADTypeAreWidened) {
  const auto path =
      write_tensors("widened.safetensors",
                    R"({"i8":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                    R"("u16":{"dtype":"U16","shape":[],"data_offsets":[2,4]},)"
                    R"("u64":{"dtype":"U64","shape":[1,1],"data_offsets":[4,12]},)"
                    R"("e4m3":{"dtype":"F8_E4M3FNUZ","shape":[5],"data_offsets":[12,17]},)"
                    R"("e5m2":{"dtype":"F8_E5M2FNUZ","shape":[5],"data_offsets":[17,22]}})",
                    std::string("\xFE\x04\xFF\xFF\0\0\0\0\0\0\0\x80"
                                "\x7F\x01\xC5\x40\x80\x7F\x01\xC5\x40\x80",
                                22));
  const Checkpoint checkpoint = Checkpoint::open(path);
  const auto values = [&](const char* name) { return read_floats(checkpoint.require(name)); };
  EXPECT_EQ(values("i8"), (std::vector<float>{-2, 4}));
  EXPECT_EQ(values("u16"), std::vector<float>{65535});
  EXPECT_EQ(checkpoint.require("u16").shape, Shape{});
  EXPECT_EQ(values("u64"), std::vector<float>{0x1p63f});
  EXPECT_EQ(checkpoint.require("u64").shape, (Shape{1, 1}));
  const std::vector<float> e4m3 = values("e4m3"), e5m2 = values("e5m2");
  const auto numbers = [](const std::vector<float>& all) {
    return std::vector<float>(all.begin(), all.end() - 1);
  };
  EXPECT_EQ(numbers(e4m3), (std::vector<float>{240, 0x1p-10f, -1.625, 1}));
  EXPECT_EQ(numbers(e5m2), (std::vector<float>{57344, 0x1p-17f, -2.5, 1}));
  EXPECT_TRUE(std::isnan(e4m3.back()) && std::isnan(e5m2.back()));
}

// Nobody has factors of that size: these are a model's weights.
TEST_F(SafetensorsTest, LargeTensorsAreNotWidened) {
  const auto path = write_tensors(
      "large.safetensors", R"({"w":{"dtype":"I8","shape":[4194305],"data_offsets":[0,4194305]}})",
      std::string(4194305, '\1'));
  expect_error(Code::unsupported, {"tensor w", "4194305 elements of type I8"},
               [&] { Checkpoint::open(path); });
}

// A header may not ask for the same bytes many times, and all such tensors have one limit.
TEST_F(SafetensorsTest, TensorsAreWidenedOnceAndWithinOneLimit) {
  const auto file = [&](const char* name, int count, bool same) {
    constexpr int64_t kEach = 4194304;
    std::string header = "{";
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = same ? 0 : i * kEach;
      header += cat(i == 0 ? "" : ",", R"("w)", i, R"(":{"dtype":"I8","shape":[)", kEach,
                    R"(],"data_offsets":[)", at, ",", at + kEach, "]}");
    }
    return write_tensors(name, header + "}",
                         std::string(static_cast<size_t>(same ? kEach : count * kEach), '\1'));
  };
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto same = file("same.safetensors", 200, true);
  expect_error(Code::invalid_argument, {"starts at offset 0, wanted 4194304"},
               [&] { Checkpoint::open(same); });
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "KiB";
  EXPECT_EQ(Checkpoint::open(file("four.safetensors", 4, false)).tensors().size(), 4u);
  const auto five = file("five.safetensors", 5, false);
  expect_error(Code::unsupported, {"tensor w4", "16777216 of all such tensors"},
               [&] { Checkpoint::open(five); });
}

TEST_F(SafetensorsTest, TensorsNeedNoOrder) {
  const auto path = write_tensors("order.safetensors",
                                  R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                  R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                  "xyz");
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(std::memcmp(checkpoint.require("b").data.data(), "yz", 2), 0);
  EXPECT_EQ(std::memcmp(checkpoint.require("a").data.data(), "x", 1), 0);
}

TEST_F(SafetensorsTest, EmptyHeader) {
  EXPECT_TRUE(Checkpoint::open(write_tensors("e.safetensors", "{}", "")).tensors().empty());
}

}  // namespace
}  // namespace rbee::io::test
