// Folders whose matrices are packed integers: what each form says of an element, the type that an
// entry is to become, and what is refused.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "rbee/io/checkpoint.h"
#include "rbee/io/integer_matrix.h"
#include "tests/checkpoints/integer_folder.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

using rbee::test::IntegerForm;
using rbee::test::PlainIntegers;
using rbee::test::RawTensor;

constexpr IntegerForm kForms[] = {IntegerForm::awq, IntegerForm::gptq, IntegerForm::gptq_v2,
                                  IntegerForm::compressed};

class IntegerFolderTest : public ScratchFolder {
 protected:
  void write_folder(IntegerForm form, const PlainIntegers& matrix) const {
    write_raw_folder(folder(), integer_config(form, matrix), integer_tensors(form, matrix, "a"));
  }

  // The one entry of the folder, whose values are the matrix's.
  void expect_values(IntegerForm form, const PlainIntegers& matrix, DType dtype) const {
    SCOPED_TRACE(cat("form ", static_cast<int>(form), ", ", matrix.bits, " bits, (", matrix.rows,
                     ", ", matrix.in, ")"));
    write_folder(form, matrix);
    const Checkpoint checkpoint = Checkpoint::open(folder());
    ASSERT_EQ(checkpoint.tensors().size(), 1u);
    const TensorEntry& entry = checkpoint.require("a.weight");
    EXPECT_EQ(entry.shape, (Shape{matrix.rows, matrix.in}));
    EXPECT_EQ(entry.dtype, dtype);
    const std::vector<float> values = read_floats(entry);
    for (int64_t row = 0; row < matrix.rows; ++row) {
      for (int64_t i = 0; i < matrix.in; ++i) {
        ASSERT_EQ(values[static_cast<size_t>(row * matrix.in + i)], matrix.value(row, i))
            << row << ", " << i;
      }
    }
    const int64_t first = 5, count = matrix.rows - 7;
    const std::vector<float> part = integer_values(*entry.integers, first, count);
    ASSERT_EQ(part.size(), static_cast<size_t>(count * matrix.in));
    for (size_t i = 0; i < part.size(); ++i) {
      ASSERT_EQ(part[i], values[static_cast<size_t>(first * matrix.in) + i]) << i;
    }
  }

  void expect_refused(Code code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] { Checkpoint::open(folder()); });
  }
  // The error of a folder whose tensors `change` spoils.
  template <typename Change>
  void expect_spoilt(IntegerForm form, const PlainIntegers& matrix, Code code,
                     const std::vector<std::string>& parts, const Change& change) const {
    std::vector<RawTensor> tensors = integer_tensors(form, matrix, "a");
    change(tensors);
    write_raw_folder(folder(), integer_config(form, matrix), tensors);
    expect_refused(code, parts);
  }
  void expect_config_refused(std::string_view quantization, Code code,
                             const std::vector<std::string>& parts) const {
    SCOPED_TRACE(std::string(quantization));
    write_raw_folder(folder(), quantization,
                     integer_tensors(IntegerForm::gptq, {.rows = 32, .in = 64}, "a"));
    expect_refused(code, parts);
  }
};

TEST_F(IntegerFolderTest, FourBits) {
  for (const IntegerForm form : kForms) {
    expect_values(form, {.rows = 48, .in = 96}, DType::q4_1);
    expect_values(form, {.rows = 48, .in = 96, .symmetric = true}, DType::q4_0);
    expect_values(form, {.rows = 16, .in = 64, .group = 64}, DType::q4_1);
    expect_values(form, {.rows = 16, .in = 160, .group = 64, .symmetric = true}, DType::q4_0);
  }
}

TEST_F(IntegerFolderTest, OtherBits) {
  for (const IntegerForm form : {IntegerForm::gptq, IntegerForm::gptq_v2}) {
    for (const int bits : {2, 3}) {
      expect_values(form, {.rows = 32, .in = 64, .bits = bits}, DType::q4_1);
      expect_values(form, {.rows = 32, .in = 64, .bits = bits, .symmetric = true}, DType::q4_0);
    }
  }
  for (const IntegerForm form :
       {IntegerForm::gptq, IntegerForm::gptq_v2, IntegerForm::compressed}) {
    expect_values(form, {.rows = 32, .in = 64, .bits = 8, .symmetric = true}, DType::q8_0);
    expect_values(form, {.rows = 32, .in = 64, .bits = 8}, DType::f16);
  }
}

// Stored zeros of AutoGPTQ's first format are one less, so that the highest is above all codes.
TEST_F(IntegerFolderTest, HighestZeros) {
  std::vector<RawTensor> tensors = integer_tensors(IntegerForm::gptq, {.rows = 8, .in = 32}, "a");
  for (uint8_t& byte : tensors[1].bytes) byte = 0xff;
  write_raw_folder(folder(), integer_config(IntegerForm::gptq, {.rows = 8, .in = 32}), tensors);
  const Checkpoint checkpoint = Checkpoint::open(folder());
  const IntegerMatrix& matrix = *checkpoint.require("a.weight").integers;
  EXPECT_EQ(zero_at(matrix, 3, 0), 16);
}

TEST_F(IntegerFolderTest, OrderedInputs) {
  for (const IntegerForm form : {IntegerForm::gptq, IntegerForm::compressed}) {
    expect_values(form, {.rows = 16, .in = 128, .order = true}, DType::f16);
    expect_values(form, {.rows = 16, .in = 128, .symmetric = true, .order = true}, DType::f16);
    // One group: every order is in order.
    expect_values(form, {.rows = 16, .in = 64, .group = 64, .order = true}, DType::q4_1);
  }
}

TEST_F(IntegerFolderTest, RowsThatAreNoBlocks) {
  expect_values(IntegerForm::awq, {.rows = 16, .in = 52, .group = 26}, DType::f16);
  expect_values(IntegerForm::gptq, {.rows = 16, .in = 96, .group = 48}, DType::f16);
  expect_values(IntegerForm::compressed, {.rows = 13, .in = 43, .group = 43}, DType::f16);
  expect_values(IntegerForm::compressed, {.rows = 13, .in = 43, .group = 43, .bits = 8},
                DType::f16);
  expect_values(IntegerForm::compressed, {.rows = 13, .in = 64}, DType::q4_1);
}

// Scales in bf16 and f32 within f16's range and beyond it.
TEST_F(IntegerFolderTest, ScalesAndTheRangeOfF16) {
  const auto expect_type = [&](float unit, DType scales, bool symmetric, DType wanted) {
    const PlainIntegers matrix{
        .rows = 16, .in = 64, .symmetric = symmetric, .scale_type = scales, .scale_unit = unit};
    expect_values(IntegerForm::compressed, matrix, wanted);
  };
  expect_type(0x1p-9f, DType::bf16, true, DType::q4_0);
  expect_type(0x1p-9f, DType::f32, false, DType::q4_1);
  expect_type(0x1p-24f, DType::bf16, true, DType::q4_0);  // subnormal in f16, and exact
  expect_type(0x1p-30f, DType::bf16, true, DType::bf16);
  expect_type(0x1p-14f / 3, DType::f32, true, DType::bf16);  // subnormal, and rounded
  expect_type(0x1p9f, DType::bf16, true, DType::q4_0);
  expect_type(0x1p9f, DType::bf16, false, DType::bf16);  // zeros times scales are too large
  expect_type(0x1p12f, DType::bf16, true, DType::bf16);
}

// A scale that f16 cannot hold matters as much as it is large beside the others.
TEST_F(IntegerFolderTest, GroupsOfNextToNothing) {
  const PlainIntegers matrix{.rows = 16, .in = 64, .symmetric = true, .scale_type = DType::bf16};
  const auto type_with = [&](float scale) {
    std::vector<RawTensor> tensors = integer_tensors(IntegerForm::compressed, matrix, "a");
    RawTensor& scales =
        *std::ranges::find(tensors, std::string("a.weight_scale"), &RawTensor::name);
    const uint16_t bits = to_bf16(scale).bits;
    std::memcpy(scales.bytes.data() + 6, &bits, sizeof bits);
    write_raw_folder(folder(), integer_config(IntegerForm::compressed, matrix), tensors);
    return Checkpoint::open(folder()).require("a.weight").dtype;
  };
  EXPECT_EQ(type_with(1e-9f), DType::q4_0);
  EXPECT_EQ(type_with(1e5f), DType::bf16);
}

// Experts of a layer are one tensor in memory.
TEST_F(IntegerFolderTest, ExpertsTakeOneType) {
  const PlainIntegers usual{.rows = 16, .in = 64, .symmetric = true, .scale_type = DType::bf16};
  PlainIntegers small = usual;
  small.scale_unit = 0x1p-30f;
  std::vector<RawTensor> tensors;
  const auto add = [&](const PlainIntegers& matrix, const char* name) {
    for (RawTensor& tensor : integer_tensors(IntegerForm::compressed, matrix, name)) {
      tensors.push_back(std::move(tensor));
    }
  };
  add(usual, "l.0.experts.0.up");
  add(small, "l.0.experts.1.up");
  add(usual, "l.0.experts.0.down");
  add(usual, "l.1.experts.0.up");
  write_raw_folder(folder(), integer_config(IntegerForm::compressed, usual), tensors);
  const Checkpoint checkpoint = Checkpoint::open(folder());
  EXPECT_EQ(checkpoint.require("l.0.experts.0.up.weight").dtype, DType::bf16);
  EXPECT_EQ(checkpoint.require("l.0.experts.1.up.weight").dtype, DType::bf16);
  EXPECT_EQ(checkpoint.require("l.0.experts.0.down.weight").dtype, DType::q4_0);
  EXPECT_EQ(checkpoint.require("l.1.experts.0.up.weight").dtype, DType::q4_0);
}

TEST_F(IntegerFolderTest, MissingTensors) {
  const PlainIntegers matrix{.rows = 16, .in = 64, .order = true};
  for (const size_t left_out : {1, 2, 3}) {
    const std::string name = integer_tensors(IntegerForm::gptq, matrix, "a")[left_out].name;
    expect_spoilt(IntegerForm::gptq, matrix, Code::not_found, {name, "a.qweight"},
                  [&](std::vector<RawTensor>& tensors) {
                    tensors.erase(tensors.begin() + static_cast<ptrdiff_t>(left_out));
                  });
  }
  for (const size_t left_out : {0, 2, 3}) {
    const std::string name = integer_tensors(IntegerForm::compressed, matrix, "a")[left_out].name;
    expect_spoilt(IntegerForm::compressed, matrix, Code::not_found, {name, "a.weight_packed"},
                  [&](std::vector<RawTensor>& tensors) {
                    tensors.erase(tensors.begin() + static_cast<ptrdiff_t>(left_out));
                  });
  }
}

TEST_F(IntegerFolderTest, TensorsThatDoNotFit) {
  const PlainIntegers matrix{.rows = 16, .in = 64};
  const auto reshaped = [&](IntegerForm form, size_t at, const Shape& shape,
                            const std::vector<std::string>& parts) {
    expect_spoilt(form, matrix, Code::invalid_argument, parts,
                  [&](std::vector<RawTensor>& tensors) { tensors[at].shape = shape; });
  };
  reshaped(IntegerForm::gptq, 0, {128}, {"a.qweight", "(128)", "two axes"});
  reshaped(IntegerForm::gptq, 0, {16, 8}, {"(2, 16)", "wanted (4, 8)", "a.scales"});
  reshaped(IntegerForm::gptq, 1, {2, 1, 2}, {"a.qzeros", "(2, 1, 2)", "(2, 2)"});
  reshaped(IntegerForm::gptq, 2, {16, 2}, {"a.scales", "(16, 2)", "(2, 16)"});
  reshaped(IntegerForm::gptq, 3, {2, 32}, {"a.g_idx", "(2, 32)", "(64)"});
  reshaped(IntegerForm::awq, 2, {16, 2}, {"a.scales", "(16, 2)", "(2, 16)"});
  reshaped(IntegerForm::compressed, 1, {8, 16}, {"a.weight_packed", "(8, 16)", "(16, 8)"});
  reshaped(IntegerForm::compressed, 3, {4, 1}, {"a.weight_zero_point", "(4, 1)", "(2, 2)"});
  const auto spoilt = [&](IntegerForm form, const std::vector<std::string>& parts,
                          const auto& change) {
    expect_spoilt(form, matrix, Code::invalid_argument, parts, change);
  };
  spoilt(IntegerForm::gptq, {"a.qweight", "f32", "i32"},
         [](std::vector<RawTensor>& tensors) { tensors[0].dtype = DType::f32; });
  spoilt(IntegerForm::gptq, {"a.scales", "inf"}, [](std::vector<RawTensor>& tensors) {
    tensors[2].bytes[6] = 0x00, tensors[2].bytes[7] = 0x7c;
  });
  spoilt(IntegerForm::gptq, {"a.g_idx", "input 1", "group 7", "of 2"},
         [](std::vector<RawTensor>& tensors) { tensors[3].bytes[4] = 7; });
  spoilt(IntegerForm::compressed, {"a.weight_shape", "(16, 0)", "from 1"},
         [](std::vector<RawTensor>& tensors) { tensors[0].bytes[8] = 0; });
  spoilt(IntegerForm::compressed, {"a.weight_packed", "(16, 8)", "(16, 10)"},
         [](std::vector<RawTensor>& tensors) { tensors[0].bytes[8] = 80; });
  expect_spoilt(IntegerForm::gptq, {.rows = 12, .in = 32, .bits = 8}, Code::invalid_argument,
                {"a.qweight", "(8, 11)", "whole words"}, [](std::vector<RawTensor>& tensors) {
                  tensors[0].shape = {8, 11};
                  tensors[0].bytes.resize(8 * 11 * 4);
                });
}

TEST_F(IntegerFolderTest, FormsThatAreNotRead) {
  const auto gptq = [](std::string_view rest) {
    return cat(R"({"quant_method":"gptq","group_size":32,)", rest, "}");
  };
  const auto awq = [](std::string_view rest) {
    return cat(R"({"quant_method":"awq","group_size":32,)", rest, "}");
  };
  const auto compressed = [](std::string_view weights) {
    return cat(R"({"quant_method":"compressed-tensors","format":"pack-quantized",)",
               R"("config_groups":{"group_0":{"weights":{)", weights, "}}}}");
  };
  expect_config_refused(gptq(R"("bits":5)"), Code::unsupported,
                        {"config.json", "bits is 5", "2, 3, 4 or 8"});
  expect_config_refused(gptq(R"("bits":4,"checkpoint_format":"marlin")"), Code::unsupported,
                        {"checkpoint_format", "marlin", "gptq or gptq_v2"});
  expect_config_refused(gptq(R"("bits":4,"is_marlin_format":true)"), Code::unsupported,
                        {"is_marlin_format"});
  expect_config_refused(gptq(R"("bits":4,"pack_dtype":"int16")"), Code::unsupported,
                        {"pack_dtype", "int16", "int32"});
  expect_config_refused(R"({"quant_method":"gptq","bits":4})", Code::not_found, {"group_size"});
  expect_config_refused(R"({"quant_method":"gptq","bits":4,"group_size":0})",
                        Code::invalid_argument, {"group_size", "0", "-1"});
  expect_config_refused(awq(R"("bits":8)"), Code::unsupported, {"bits is 8", "wanted 4"});
  expect_config_refused(awq(R"("bits":4,"version":"gemv")"), Code::unsupported,
                        {"version", "gemv", "gemm"});
  expect_config_refused(compressed(R"("num_bits":3,"type":"int","strategy":"channel")"),
                        Code::unsupported, {"num_bits is 3", "4 or 8"});
  expect_config_refused(compressed(R"("num_bits":4,"type":"float","strategy":"channel")"),
                        Code::unsupported, {"type", "float", "int"});
  expect_config_refused(compressed(R"("num_bits":4,"type":"int","strategy":"tensor")"),
                        Code::unsupported, {"strategy", "tensor", "group or channel"});
  expect_config_refused(
      R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{}})",
      Code::unsupported, {"config.json", "0 groups"});
}

}  // namespace
}  // namespace rbee::io::test
