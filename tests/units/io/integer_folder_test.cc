// Folders with packed integer matrices: the value of an element in each form, the type that it is
// converted to, and refused folders.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
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

  // The folder's only entry must have the matrix's values.
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
  // The error of a folder after `change` has spoiled its tensors.
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

// AutoGPTQ's first format stores zeros minus one, so the highest zero is above all codes.
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
    write_folder(form, {.rows = 16, .in = 128, .symmetric = true, .order = true});
    const Checkpoint checkpoint = Checkpoint::open(folder());
    const IntegerMatrix& matrix = *checkpoint.require("a.weight").integers;
    EXPECT_EQ(matrix.grouped_type, DType::q4_0);
    ASSERT_EQ(matrix.inputs_by_group.size(), 128u);
    for (int32_t place = 0; place < 128; ++place) {
      EXPECT_EQ(matrix.inputs_by_group[static_cast<size_t>(place)], place % 32 * 4 + place / 32);
    }
    // One group: every order is in order.
    expect_values(form, {.rows = 16, .in = 64, .group = 64, .order = true}, DType::q4_1);
  }
}

// Groups of 48 are never whole blocks, and 8 bits with zeros have no block type.
TEST_F(IntegerFolderTest, OrdersThatDoNotHelp) {
  for (const PlainIntegers& matrix :
       {PlainIntegers{.rows = 16, .in = 96, .group = 48, .order = true},
        PlainIntegers{.rows = 16, .in = 128, .bits = 8, .order = true}}) {
    expect_values(IntegerForm::gptq, matrix, DType::f16);
    EXPECT_TRUE(Checkpoint::open(folder()).require("a.weight").integers->inputs_by_group.empty());
  }
}

// GPTQModel's "dynamic": modules with their own bits and groups, visible in their tensors.
TEST_F(IntegerFolderTest, ModulesOfTheirOwnSettings) {
  const PlainIntegers usual{.rows = 32, .in = 128}, fine{.rows = 64, .in = 256, .group = 64},
      wide{.rows = 32, .in = 128, .group = 128, .bits = 8, .symmetric = true},
      narrow{.rows = 32, .in = 96, .bits = 3}, ordered{.rows = 32, .in = 128, .order = true};
  std::vector<RawTensor> tensors;
  const auto add = [&](const PlainIntegers& matrix, const char* name) {
    for (RawTensor& tensor : integer_tensors(IntegerForm::gptq, matrix, name)) {
      tensors.push_back(std::move(tensor));
    }
  };
  add(usual, "a");
  add(fine, "b");
  add(wide, "c");
  add(narrow, "d");
  add(ordered, "lm_head");
  tensors.push_back({"e.weight", DType::f16, Shape{1, 1}, {0, 0x3c}});  // "-:" excludes it
  constexpr std::string_view kConfig =
      R"({"quant_method":"gptq","bits":4,"group_size":32,"lm_head":true,"dynamic":)"
      R"({"-:.*e.*":{},"+:b":{"group_size":64},"c":{"bits":8,"group_size":-1},"d":{"bits":3}}})";
  write_raw_folder(folder(), kConfig, tensors);
  const Checkpoint checkpoint = Checkpoint::open(folder());
  const auto expect = [&](const PlainIntegers& matrix, std::string_view name, DType dtype) {
    const TensorEntry& entry = checkpoint.require(name);
    ASSERT_TRUE(entry.integers) << name;
    EXPECT_EQ(entry.dtype, dtype) << name;
    const std::vector<float> values = read_floats(entry);
    ASSERT_EQ(values.size(), static_cast<size_t>(matrix.rows * matrix.in)) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      ASSERT_EQ(values[i], matrix.value(at / matrix.in, at % matrix.in)) << name << " " << i;
    }
  };
  expect(usual, "a.weight", DType::q4_1);
  expect(fine, "b.weight", DType::q4_1);
  expect(wide, "c.weight", DType::q8_0);
  expect(narrow, "d.weight", DType::q4_1);
  expect(ordered, "lm_head.weight", DType::f16);
  EXPECT_FALSE(checkpoint.require("e.weight").integers);

  const auto spoilt = [&](Code code, const std::vector<std::string>& parts, const auto& change) {
    std::vector<RawTensor> all = integer_tensors(IntegerForm::gptq, usual, "a");
    change(all);
    write_raw_folder(folder(), kConfig, all);
    expect_refused(code, parts);
  };
  spoilt(Code::not_found, {"a.g_idx", "a.qweight"}, [](auto& all) { all.erase(all.begin() + 3); });
  spoilt(Code::invalid_argument, {"a.qweight", "(16, 32)", "100 inputs", "a.g_idx"}, [](auto& all) {
    all[3].shape = {100};
    all[3].bytes.resize(400);
  });
  spoilt(Code::invalid_argument, {"a.g_idx", "(4, 32)"}, [](auto& all) { all[3].shape = {4, 32}; });
}

// llm-compressor's recipes with several groups of weights.
TEST_F(IntegerFolderTest, GroupsOfWeights) {
  const PlainIntegers small{.rows = 32, .in = 128},
      wide{.rows = 32, .in = 128, .group = 128, .bits = 8, .symmetric = true};
  std::vector<RawTensor> tensors = integer_tensors(IntegerForm::compressed, small, "a");
  for (RawTensor& tensor : integer_tensors(IntegerForm::compressed, wide, "b")) {
    tensors.push_back(std::move(tensor));
  }
  const auto one = [](RawTensor tensor, std::vector<uint8_t> bytes) {
    tensor.bytes = std::move(bytes);
    return tensor;
  };
  tensors.push_back(one({"a.k_scale", DType::f16, Shape{1}, {}}, {0, 0x3c}));
  const auto config = [](std::string_view format, std::string_view more) {
    return cat(
        R"({"quant_method":"compressed-tensors","format":")", format,
        R"(","kv_cache_scheme":{"num_bits":8,"type":"float"},"ignore":["re:.*head","lm_head"],)",
        R"("config_groups":{"group_0":{"targets":["re:.*a$"],"weights":{"type":"int",)",
        R"("num_bits":4,"strategy":"group","group_size":32,"symmetric":false,"actorder":)",
        R"("static"}},"group_1":{"targets":["Linear"],"weights":{"type":"int","num_bits":8,)",
        R"("strategy":"channel","symmetric":true}})", more, "}}");
  };
  write_raw_folder(folder(), config("pack-quantized", ""), tensors);
  const Checkpoint checkpoint = Checkpoint::open(folder());
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.require("a.weight").dtype, DType::q4_1);
  EXPECT_EQ(checkpoint.require("b.weight").dtype, DType::q8_0);
  const std::vector<float> b = read_floats(checkpoint.require("b.weight"));
  for (size_t i = 0; i < b.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    ASSERT_EQ(b[i], wide.value(at / wide.in, at % wide.in)) << i;
  }

  // One-byte floats beside them.
  constexpr std::string_view kFloats =
      R"(,"group_2":{"weights":{"type":"float","num_bits":8,"strategy":"channel"}})";
  std::vector<RawTensor> mixed = tensors;
  mixed.push_back({"c.weight", DType::f8e4m3, Shape{1, 2}, {0x38, 0x40}});
  mixed.push_back({"c.weight_scale", DType::f16, Shape{1, 1}, {0, 0x40}});
  write_raw_folder(folder(), config("mixed-precision", kFloats), mixed);
  const Checkpoint both = Checkpoint::open(folder());
  EXPECT_EQ(both.tensors().size(), 3u);
  EXPECT_EQ(both.require("a.weight").dtype, DType::q4_1);
  EXPECT_EQ(read_floats(both.require("c.weight")), (std::vector<float>{2, 4}));

  write_raw_folder(folder(), config("pack-quantized", kFloats), tensors);
  expect_refused(Code::unsupported, {"type", "float", "int"});
  tensors[6].shape = {16, 2};  // b's scales
  write_raw_folder(folder(), config("pack-quantized", ""), tensors);
  expect_refused(Code::invalid_argument, {"b.weight_packed", "b.weight_scale", "2 groups"});
}

// Files in which AutoGPTQ and AutoAWQ once kept settings beside config.json.
TEST_F(IntegerFolderTest, OldFilesOfSettings) {
  const auto write = [&](const char* file, std::string_view text) {
    std::ofstream(folder() / "config.json") << R"({"model_type":"llama"})";
    std::ofstream(folder() / file) << text;
  };
  write_folder(IntegerForm::gptq, {.rows = 32, .in = 128, .symmetric = true});
  write("quantize_config.json", R"({"bits":4,"group_size":32,"desc_act":false,"sym":true})");
  const Checkpoint gptq = Checkpoint::open(folder());
  EXPECT_EQ(gptq.require("a.weight").dtype, DType::q4_0);
  EXPECT_NE(gptq.config_json().find("quantization_config"), std::string::npos);
  EXPECT_EQ(gptq.architecture(), "llama");
  write("quantize_config.json", R"({"bits":5,"group_size":32})");
  expect_refused(Code::unsupported, {"config.json", "bits is 5"});
  write("quantize_config.json", "[]");
  expect_refused(Code::invalid_argument, {"quantize_config.json"});
  std::filesystem::remove(folder() / "quantize_config.json");

  write_folder(IntegerForm::awq, {.rows = 32, .in = 128});
  write("quant_config.json", R"({"zero_point":true,"q_group_size":32,"w_bit":4,"version":"GEMM"})");
  EXPECT_EQ(Checkpoint::open(folder()).require("a.weight").dtype, DType::q4_1);
  write("quant_config.json", R"({"q_group_size":32,"w_bit":4,"version":"GEMV"})");
  expect_refused(Code::unsupported, {"version", "gemv"});
  // config.json's own settings take precedence.
  write_folder(IntegerForm::awq, {.rows = 32, .in = 128});
  EXPECT_EQ(Checkpoint::open(folder()).require("a.weight").dtype, DType::q4_1);
}

TEST_F(IntegerFolderTest, RowsThatAreNoBlocks) {
  expect_values(IntegerForm::awq, {.rows = 16, .in = 52, .group = 26}, DType::f16);
  expect_values(IntegerForm::gptq, {.rows = 16, .in = 96, .group = 48}, DType::f16);
  expect_values(IntegerForm::compressed, {.rows = 13, .in = 43, .group = 43}, DType::f16);
  expect_values(IntegerForm::compressed, {.rows = 13, .in = 43, .group = 43, .bits = 8},
                DType::f16);
  expect_values(IntegerForm::compressed, {.rows = 13, .in = 64}, DType::q4_1);
}

// Scales in bf16 and f32, within f16's range and beyond it.
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

// A scale that f16 cannot hold matters in proportion to the others.
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

// A layer's experts are one tensor in memory.
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
      Code::unsupported, {"config.json", "config_groups"});
}

}  // namespace
}  // namespace rbee::io::test
