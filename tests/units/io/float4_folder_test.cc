// Folders with NVFP4 and MXFP4 matrices: the value of an element in each form.

#include "rbee/io/float4_folder.h"

#include <array>
#include <cmath>

#include "rbee/io/checkpoint.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/io/safetensors_writer.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

constexpr int64_t kRows = 3, kColumns = 64;
// E2M1 (OCP Microscaling 1.0, table 7), by the code.
constexpr std::array<float, 16> kValues{0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                        -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
// E4M3: 1.5, 0.875, 448 and 2^-9.
constexpr std::array<uint8_t, 4> kE4m3{0x3c, 0x36, 0x7e, 0x01};
constexpr std::array<float, 4> kE4m3Values{1.5f, 0.875f, 448.0f, 0x1p-9f};
// E8M0: 1, 1/8 and 2^20.
constexpr std::array<uint8_t, 3> kE8m0{127, 124, 147};
constexpr std::array<float, 3> kE8m0Values{1, 0.125f, 0x1p20f};

constexpr const char* kModelOpt = R"({"quant_method":"modelopt","quant_algo":"NVFP4"})";
constexpr const char* kQuark =
    R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4",)"
    R"("qscheme":"per_group","group_size":32,"scale_format":"e8m0"}}})";

std::string compressed(const char* format, int group, int bits = 4) {
  return cat(R"({"quant_method":"compressed-tensors","format":")", format,
             R"(","config_groups":{"group_0":{"weights":{"num_bits":)", bits,
             R"(,"type":"float","group_size":)", group, "}}}}");
}

size_t code_at(int64_t row, int64_t column) {
  return static_cast<size_t>((5 * row + 3 * column + column / 16) % 16);
}
size_t scale_at(int64_t row, int64_t group) {
  return static_cast<size_t>(row + group);
}

class Float4FolderTest : public ScratchFolder {
 protected:
  // A folder with a layer "a" and the scale of its whole matrix, unless that has no name.
  void write_folder(const std::string& quantization, const std::string& words, bool nvfp4,
                    const std::string& whole = "", int64_t columns = kColumns,
                    uint8_t more_scale = 0) const {
    write("config.json", cat(R"({"quantization_config":)", quantization, "}"));
    const int64_t groups = columns / (nvfp4 ? 16 : 32);
    std::vector<uint8_t> codes, scales;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < columns; column += 2) {
        codes.push_back(static_cast<uint8_t>(code_at(row, column) | code_at(row, column + 1) << 4));
      }
      for (int64_t group = 0; group < groups; ++group) {
        scales.push_back(nvfp4 ? kE4m3[scale_at(row, group) % 4] : kE8m0[scale_at(row, group) % 3]);
      }
    }
    scales.back() |= more_scale;
    const float unread = 7, factor = 4;
    SafetensorsWriter writer;
    writer.add_tensor(cat("a", words), DType::u8, Shape{kRows, columns / 2});
    writer.add_tensor("a.weight_scale", nvfp4 ? DType::f8e4m3 : DType::u8, Shape{kRows, groups});
    writer.add_tensor("a.input_scale", DType::f32, Shape{});
    if (!whole.empty()) writer.add_tensor(whole, DType::f32, Shape{1});
    writer.begin(path("model.safetensors"));
    writer.write(std::as_bytes(std::span(codes)));
    writer.write(std::as_bytes(std::span(scales)));
    writer.write(std::as_bytes(std::span(&unread, 1)));
    if (!whole.empty()) writer.write(std::as_bytes(std::span(&factor, 1)));
    writer.finish();
  }

  void expect_values(DType dtype) const {
    const Checkpoint checkpoint = Checkpoint::open(folder());
    const TensorEntry& entry = checkpoint.require("a.weight");
    EXPECT_EQ(entry.dtype, dtype);
    EXPECT_EQ(entry.shape, Shape({kRows, kColumns}));
    const std::vector<float> values = integer_values(*entry.integers, 1, 2);
    const bool nvfp4 = dtype == DType::nvfp4;
    for (int64_t row = 1; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        const float scale = nvfp4 ? kE4m3Values[scale_at(row, column / 16) % 4]
                                  : kE8m0Values[scale_at(row, column / 32) % 3];
        EXPECT_EQ(values[static_cast<size_t>((row - 1) * kColumns + column)],
                  scale * kValues[code_at(row, column)])
            << row << ", " << column;
      }
    }
  }

  void expect_refused(Code code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] { Checkpoint::open(folder()); });
  }
};

float scale_of(const Checkpoint& checkpoint) {
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  return read_floats(checkpoint.require("a.scale")).at(0);
}

TEST_F(Float4FolderTest, Nvfp4) {
  write_folder(kModelOpt, ".weight", true, "a.weight_scale_2");
  expect_values(DType::nvfp4);
  EXPECT_EQ(scale_of(Checkpoint::open(folder())), 4);
  write_folder(compressed("nvfp4-pack-quantized", 16), ".weight_packed", true,
               "a.weight_global_scale");
  expect_values(DType::nvfp4);
  EXPECT_EQ(scale_of(Checkpoint::open(folder())), 0.25f);
}

TEST_F(Float4FolderTest, Mxfp4) {
  write_folder(compressed("mxfp4-pack-quantized", 32), ".weight_packed", false);
  expect_values(DType::mxfp4);
  write_folder(kQuark, ".weight", false);
  expect_values(DType::mxfp4);
  EXPECT_EQ(Checkpoint::open(folder()).tensors().size(), 1u);
}

TEST_F(Float4FolderTest, OtherFormsAreRefused) {
  write_folder(kModelOpt, ".weight", true);
  expect_refused(Code::not_found, {"a.weight_scale_2 is missing beside a.weight"});
  write_folder(kModelOpt, ".weight", true, "a.weight_scale_2", kColumns, 0x80);
  expect_refused(Code::invalid_argument, {"a.weight_scale holds a scale that is negative or NaN"});
  write_folder(kModelOpt, ".weight", true, "a.weight_scale_2", 48);
  expect_refused(Code::unsupported, {"a.weight has rows of 48 inputs", "blocks of 64 for nvfp4"});
  write_folder(kModelOpt, ".weight", false, "a.weight_scale_2");
  expect_refused(Code::invalid_argument, {"a.weight_scale is u8 (3, 2), wanted f8e4m3 (3, 4)"});
  write_folder(compressed("nvfp4-pack-quantized", 32), ".weight_packed", true);
  expect_refused(Code::unsupported, {"group_size is 32, wanted 16"});
  write_folder(compressed("mxfp4-pack-quantized", 32, 8), ".weight_packed", false);
  expect_refused(Code::unsupported, {"num_bits is 8, wanted 4"});
  write_folder(R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"int4"}}})",
               ".weight", false);
  expect_refused(Code::unsupported, {"dtype is \"int4\", wanted fp4"});
  write_folder(R"({"quant_method":"modelopt","quant_algo":"W4A8_AWQ"})", ".weight", false);
  expect_refused(Code::unsupported, {"quant_algo is \"W4A8_AWQ\", wanted FP8, NVFP4"});
}

}  // namespace
}  // namespace rbee::io::test
