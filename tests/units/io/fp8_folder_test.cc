// Folders with one-byte float matrices and scales: the value of an element in each form.

#include <array>
#include <cmath>

#include "rbee/io/checkpoint.h"
#include "rbee/io/safetensors_writer.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

constexpr int64_t kRows = 3, kColumns = 5;
// e4m3: 1.5, -0.875, 448, 2^-9 and -0 (Micikevicius et al. 2022, table 1).
constexpr std::array<uint8_t, 5> kCodes{0x3c, 0xb6, 0x7e, 0x01, 0x80};
constexpr std::array<float, 5> kValues{1.5f, -0.875f, 448.0f, 0.001953125f, -0.0f};

constexpr const char* kBlocks = R"({"quant_method":"fp8","weight_block_size":[2,3]})";
constexpr const char* kPlain = R"({"quant_method":"fp8","activation_scheme":"static"})";
constexpr const char* kModelOpt = R"({"quant_method":"modelopt","quant_algo":"FP8"})";

// compressed-tensors with these settings for its weights.
std::string compressed(std::string_view weights, std::string_view format = "float-quantized") {
  return cat(R"({"quant_method":"compressed-tensors","format":")", format,
             R"(","config_groups":{"group_0":{"weights":)", weights, "}}}");
}
std::string compressed() {
  return compressed(R"({"num_bits":8,"type":"float","strategy":"channel"})");
}

size_t code_at(int64_t row, int64_t column) {
  return static_cast<size_t>((row + 2 * column) % 5);
}

class Fp8FolderTest : public ScratchFolder {
 protected:
  // A folder with "a.weight" and its scales; skips scales without a shape.
  void write_folder(std::string_view quantization, const std::string& name, const Shape& shape,
                    const std::vector<float>& scales) const {
    write("config.json", cat(R"({"quantization_config":)", quantization, "}"));
    std::vector<uint8_t> codes;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        codes.push_back(kCodes[code_at(row, column)]);
      }
    }
    const float unread = 7;
    SafetensorsWriter writer;
    writer.add_tensor("a.weight", DType::f8e4m3, Shape{kRows, kColumns});
    if (!scales.empty()) writer.add_tensor(name, DType::f32, shape);
    writer.add_tensor("a.input_scale", DType::f32, Shape{});
    writer.begin(path("model.safetensors"));
    writer.write(std::as_bytes(std::span(codes)));
    if (!scales.empty()) writer.write(std::as_bytes(std::span(scales)));
    writer.write(std::as_bytes(std::span(&unread, 1)));
    writer.finish();
  }

  // The matrix that the folder describes, and the scale of each element.
  template <typename Scale>
  void expect_values(const Scale& scale) const {
    const Checkpoint checkpoint = Checkpoint::open(folder());
    ASSERT_EQ(checkpoint.tensors().size(), 1u);
    const TensorEntry& entry = checkpoint.require("a.weight");
    const std::vector<float> values = read_floats(entry);
    const TensorEntry half = widened(entry, DType::bf16);
    const std::vector<float> rounded = read_floats(half);
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<float> of_row;
      for (int64_t column = 0; column < kColumns; ++column) {
        const auto at = static_cast<size_t>(row * kColumns + column);
        const float stored = kValues[code_at(row, column)], wanted = scale(row, column) * stored;
        EXPECT_EQ(values[at], wanted) << row << ", " << column;
        EXPECT_EQ(rounded[at], to_float(to_bf16(wanted))) << row << ", " << column;
        of_row.push_back(stored);
      }
      scale_row(entry, row, of_row);
      for (int64_t column = 0; column < kColumns; ++column) {
        EXPECT_EQ(of_row[static_cast<size_t>(column)],
                  values[static_cast<size_t>(row * kColumns + column)]);
      }
    }
  }

  void expect_refused(Code code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] { Checkpoint::open(folder()); });
  }
};

TEST_F(Fp8FolderTest, Blocks) {
  const std::vector<float> scales{0.3f, 7.0f, 0.01f, 1e-4f};
  const auto of_block = [&](int64_t row, int64_t column) {
    return scales[static_cast<size_t>(row / 2 * 2 + column / 3)];
  };
  write_folder(kBlocks, "a.weight_scale_inv", {2, 2}, scales);
  expect_values(of_block);
  write_folder(
      compressed(R"({"num_bits":8,"type":"float","strategy":"block","block_structure":[2,3]})"),
      "a.weight_scale", {2, 2}, scales);
  expect_values(of_block);
}

TEST_F(Fp8FolderTest, RowsAndWholes) {
  const std::vector<float> scales{0.3f, 7.0f, 0.01f};
  const auto of_row = [&](int64_t row, int64_t) { return scales[static_cast<size_t>(row)]; };
  write_folder(compressed(), "a.weight_scale", {kRows, 1}, scales);
  expect_values(of_row);
  write_folder(compressed(), "a.weight_scale", {kRows}, scales);
  expect_values(of_row);
  for (const char* method : {kPlain, kModelOpt}) {
    write_folder(method, "a.weight_scale", {}, {0.3f});
    expect_values([](int64_t, int64_t) { return 0.3f; });
  }
}

// Settings that also round inputs, and settings that do not.
TEST_F(Fp8FolderTest, InputsThatAreRounded) {
  const auto rounds = [&](const std::string& quantization) {
    write_folder(quantization, "a.weight_scale", {}, {0.3f});
    return Checkpoint::open(folder()).require("a.weight").scales.rounds_inputs;
  };
  const auto group = [](std::string_view inputs) {
    return compressed(cat(R"({"num_bits":8,"type":"float"},"input_activations":)", inputs));
  };
  EXPECT_TRUE(rounds(kPlain));
  EXPECT_TRUE(rounds(kModelOpt));
  EXPECT_TRUE(rounds(group(R"({"num_bits":8,"type":"float","dynamic":true})")));
  EXPECT_FALSE(rounds(R"({"quant_method":"fp8"})"));
  EXPECT_FALSE(rounds(compressed()));
  EXPECT_FALSE(rounds(group("null")));
  EXPECT_FALSE(rounds(group(R"({"num_bits":8,"type":"int"})")));
  EXPECT_FALSE(rounds(group(R"({"num_bits":16,"type":"float"})")));
}

TEST_F(Fp8FolderTest, RowsOfAMatrix) {
  const std::vector<float> scales{0.3f, 7.0f, 0.01f, 1e-4f};
  write_folder(kBlocks, "a.weight_scale_inv", {2, 2}, scales);
  const Checkpoint checkpoint = Checkpoint::open(folder());
  TensorEntry last = checkpoint.require("a.weight");
  last.data = last.data.last(kColumns);
  last.shape = Shape{1, kColumns};
  last.scales.first_row = kRows - 1;
  EXPECT_EQ(read_floats(last).front(), 0.01f * kValues[code_at(kRows - 1, 0)]);
}

TEST_F(Fp8FolderTest, ScalesThatDoNotFit) {
  write_folder(kBlocks, "a.weight_scale_inv", {}, {});
  expect_refused(Code::not_found, {"a.weight", "weight_scale"});
  write_folder(kBlocks, "a.weight_scale_inv", {2, 1}, {1, 1});
  expect_refused(Code::invalid_argument, {"a.weight_scale_inv", "(2, 1)", "(2, 2)", "(3, 5)"});
  write_folder(kPlain, "a.weight_scale", {2}, {1, 1});
  expect_refused(Code::invalid_argument, {"a.weight_scale", "(2)", "(3, 1)"});
  write_folder(kPlain, "a.weight_scale", {}, {INFINITY});
  expect_refused(Code::invalid_argument, {"a.weight_scale", "inf"});
}

TEST_F(Fp8FolderTest, OtherForms) {
  const auto refused = [&](const std::string& form, Code code,
                           const std::vector<std::string>& parts) {
    SCOPED_TRACE(form);
    write_folder(form, "a.weight_scale", {}, {1});
    expect_refused(code, parts);
  };
  refused(R"({"quant_method":"modelopt","quant_algo":"W4A8_AWQ"})", Code::unsupported,
          {"config.json", "quant_algo", "W4A8_AWQ", "FP8"});
  refused(compressed("{}", "int-quantized"), Code::unsupported,
          {"format", "int-quantized", "float-quantized"});
  refused(compressed(R"({"num_bits":4,"type":"float"})"), Code::unsupported, {"num_bits", "4"});
  refused(compressed(R"({"num_bits":8,"type":"int"})"), Code::unsupported, {"type", "int"});
  refused(R"({"quant_method":"fp8","weight_block_size":[128]})", Code::invalid_argument,
          {"weight_block_size", "1 numbers", "2"});
  refused(R"({"quant_method":"fp8","weight_block_size":[0,128]})", Code::invalid_argument,
          {"weight_block_size", "0"});
}

}  // namespace
}  // namespace rbee::io::test
