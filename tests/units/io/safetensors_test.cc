// Good safetensors files.

#include <bit>
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
