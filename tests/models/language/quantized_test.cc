// Models with matrices in every weight type, against the same values in f32, and one checkpoint in
// several forms: mapped in place, packed, split over files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/models/language/group_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/block_types.h"

namespace rbee::test {
namespace {

constexpr int64_t kLayers = 2, kDim = 256, kHeads = 4, kKvHeads = 2, kFfn = 512, kVocab = 96;
constexpr int64_t kKvRows = kDim / kHeads * kKvHeads;

const std::vector<int32_t> kPrompt{5, 17, 90, 3, 3, 64, 41, 0, 95, 12, 77};

void set_config(io::GgufWriter& writer) {
  writer.set_string("general.architecture", "llama");
  writer.set_u32("llama.context_length", 64);
  writer.set_u32("llama.embedding_length", kDim);
  writer.set_u32("llama.block_count", kLayers);
  writer.set_u32("llama.feed_forward_length", kFfn);
  writer.set_u32("llama.attention.head_count", kHeads);
  writer.set_u32("llama.attention.head_count_kv", kKvHeads);
  writer.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

// Random weights of variance 1 / in, which keep the size of activations; matrices as `dtype`, norms
// as f32.
std::vector<StoredTensor> make_tensors(DType dtype) {
  std::vector<StoredTensor> tensors;
  const auto matrix = [&](std::string name, int64_t rows, int64_t in) {
    const auto seed = static_cast<uint32_t>(tensors.size());
    std::vector<float> values = random_values(static_cast<size_t>(rows * in), seed);
    for (float& value : values) value *= std::sqrt(3.0f / static_cast<float>(in));
    tensors.push_back({std::move(name), {rows, in}, std::move(values), dtype});
  };
  const auto norm = [&](std::string name) {
    std::vector<float> values = random_values(kDim, static_cast<uint32_t>(tensors.size()));
    for (float& value : values) value = 1 + value / 4;
    tensors.push_back({std::move(name), {kDim}, std::move(values)});
  };
  matrix("token_embd.weight", kVocab, kDim);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = cat("blk.", layer, ".");
    norm(prefix + "attn_norm.weight");
    matrix(prefix + "attn_q.weight", kDim, kDim);
    matrix(prefix + "attn_k.weight", kKvRows, kDim);
    matrix(prefix + "attn_v.weight", kKvRows, kDim);
    matrix(prefix + "attn_output.weight", kDim, kDim);
    norm(prefix + "ffn_norm.weight");
    matrix(prefix + "ffn_gate.weight", kFfn, kDim);
    matrix(prefix + "ffn_up.weight", kFfn, kDim);
    matrix(prefix + "ffn_down.weight", kDim, kFfn);
  }
  norm("output_norm.weight");
  matrix("output.weight", kVocab, kDim);
  return tensors;
}

constexpr int64_t kExperts = 4;

void set_experts_config(io::GgufWriter& writer) {
  set_config(writer);
  writer.set_u32("llama.expert_count", kExperts);
  writer.set_u32("llama.expert_used_count", 2);
}

// The same model with experts, in f32. The router's weights are large, so that rounding of inputs
// does not change which experts are chosen.
std::vector<StoredTensor> make_experts() {
  std::vector<StoredTensor> tensors;
  for (StoredTensor& tensor : make_tensors(DType::f32)) {
    const size_t ffn = tensor.name.find(".ffn_");
    if (ffn == std::string::npos || tensor.shape.rank() < 2) {
      tensors.push_back(std::move(tensor));
      continue;
    }
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.'));
    const auto size = static_cast<float>(tensor.shape[1]);
    const auto add = [&](const std::string& name, const Shape& shape, float largest = 1) {
      std::vector<float> values =
          random_values(static_cast<size_t>(numel(shape)), static_cast<uint32_t>(tensors.size()));
      for (float& value : values) value *= largest * std::sqrt(3.0f / size);
      tensors.push_back({name, shape, std::move(values)});
    };
    if (stem.ends_with("gate")) add(stem + "_inp.weight", {kExperts, kDim}, 6);
    add(stem + "_exps.weight", {kExperts, tensor.shape[0], tensor.shape[1]});
  }
  return tensors;
}

// The same values as f32.
std::vector<StoredTensor> as_f32(std::vector<StoredTensor> tensors) {
  for (StoredTensor& tensor : tensors) {
    tensor.values = stored_values(tensor);
    tensor.dtype = DType::f32;
  }
  return tensors;
}

// Logits of the prompt: once in one step, and once with its last token in its own step, which uses
// other kernels of linear layers.
std::vector<float> logits_of(const io::Checkpoint& checkpoint, bool pack) {
  const auto model =
      load_under_test(checkpoint, {.device = &device_under_test(), .pack_weights = pack});
  ModelRunner runner(*model, 2, 32);
  const Piece whole{0, kPrompt};
  std::vector<float> logits = runner.step({&whole, 1});
  const Piece start{1, {kPrompt.begin(), kPrompt.end() - 1}};
  runner.step({&start, 1});
  const Piece last{1, {kPrompt.back()}};
  const std::vector<float> tail = runner.step({&last, 1});
  logits.insert(logits.end(), tail.begin(), tail.end());
  return logits;
}

// Root mean square of the difference, divided by that of the wanted values.
double relative_error(const std::vector<float>& actual, const std::vector<float>& wanted) {
  if (actual.size() != wanted.size()) return HUGE_VAL;
  double difference = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(double{actual[i]} - wanted[i], 2);
    size += std::pow(double{wanted[i]}, 2);
  }
  return std::sqrt(difference / size);
}

// What packed kernels may lose of the root mean square against float32 on the same weights. For
// block types they round activations to 8 bits by blocks: an error of about
//   max |x| / 127 / sqrt(12), near 0.5 % of the rms for a block of 32 normal values,
// in each of the 15 products on the way, which adds up to 1.6 % to 2 % here. Those for bf16 may
// round activations to 8 bits as well; f16 keeps 11.
double allowed_error(DType dtype) {
  if (dtype == DType::f32) return 1e-5;
  return dtype == DType::f16 ? 2e-3 : 0.03;
}

// Plain matrices are multiplied in float32, whatever their type.
constexpr double kPlainError = 1e-5;

class QuantizedTest : public CheckpointFiles, public testing::WithParamInterface<DType> {};

TEST_P(QuantizedTest, LogitsOfTheSameWeightsInFloat32) {
  const std::vector<StoredTensor> tensors = make_tensors(GetParam());
  const std::vector<float> wanted = logits_of(gguf(as_f32(tensors), set_config), false);
  const io::Checkpoint checkpoint = gguf(tensors, set_config);
  EXPECT_LE(relative_error(logits_of(checkpoint, true), wanted), allowed_error(GetParam()));
  EXPECT_LE(relative_error(logits_of(checkpoint, false), wanted), kPlainError);
}

const auto kNameOf = [](const testing::TestParamInfo<DType>& test) {
  return std::string(name(test.param));
};
INSTANTIATE_TEST_SUITE_P(Floats, QuantizedTest,
                         testing::Values(DType::f32, DType::f16, DType::bf16), kNameOf);
INSTANTIATE_TEST_SUITE_P(Blocks, QuantizedTest,
                         testing::ValuesIn(block_types_but({DType::f8_g128})), kNameOf);

class MixedTypesTest : public CheckpointFiles {};

// As in files of few bits: another type for each matrix.
TEST_F(MixedTypesTest, LogitsOfTheSameWeightsInFloat32) {
  constexpr DType kTypes[] = {DType::iq2_xxs, DType::iq3_s, DType::iq1_m, DType::iq2_s,
                              DType::q4_k,    DType::iq1_s, DType::nvfp4, DType::tq2_0,
                              DType::iq3_xxs, DType::tq1_0, DType::iq2_xs};
  std::vector<StoredTensor> tensors = make_tensors(DType::f32);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shape.rank() == 2) tensors[i].dtype = kTypes[i % std::size(kTypes)];
  }
  const std::vector<float> wanted = logits_of(gguf(as_f32(tensors), set_config), false);
  const io::Checkpoint checkpoint = gguf(tensors, set_config);
  EXPECT_LE(relative_error(logits_of(checkpoint, true), wanted), allowed_error(DType::q4_k));
  EXPECT_LE(relative_error(logits_of(checkpoint, false), wanted), kPlainError);
}

class MatrixScalesTest : public CheckpointFiles {
 protected:
  // Turns the layers' matrices in `tensors` into nvfp4 with a scale beside each; a stack of experts
  // has one scale per expert.
  static std::vector<StoredTensor> scaled(std::vector<StoredTensor> tensors) {
    std::vector<StoredTensor> scales;
    for (StoredTensor& tensor : tensors) {
      if (tensor.shape.rank() < 2 || !tensor.name.starts_with("blk.") ||
          tensor.name.ends_with("gate_inp.weight")) {
        continue;
      }
      tensor.dtype = DType::nvfp4;
      tensor.values = stored_values(tensor);
      const int64_t matrices = tensor.shape.rank() == 3 ? tensor.shape[0] : 1;
      StoredTensor own{scale_of(tensor), {matrices}, {}};
      for (int64_t i = 0; i < matrices; ++i) {
        const auto number = static_cast<size_t>(i) + scales.size();
        own.values.push_back(0.5f + 0.25f * static_cast<float>(number % 5));
      }
      scales.push_back(std::move(own));
    }
    tensors.insert(tensors.end(), scales.begin(), scales.end());
    return tensors;
  }

  static std::string scale_of(const StoredTensor& matrix) {
    return matrix.name.substr(0, matrix.name.rfind('.')) + ".scale";
  }

  // The same matrices as f32, multiplied by their scales.
  static std::vector<StoredTensor> multiplied(const std::vector<StoredTensor>& tensors) {
    std::vector<StoredTensor> plain;
    for (StoredTensor& tensor : as_f32(tensors)) {
      if (tensor.name == scale_of(tensor)) continue;
      const auto own = std::ranges::find(tensors, scale_of(tensor), &StoredTensor::name);
      if (own != tensors.end()) {
        const size_t each = tensor.values.size() / own->values.size();
        for (size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] *= own->values[i / each];
      }
      plain.push_back(std::move(tensor));
    }
    return plain;
  }

  // plain_error: for matrices that are not packed.
  void expect_logits_of_multiplied(const std::vector<StoredTensor>& tensors,
                                   const Settings& settings, double plain_error = kPlainError) {
    const std::vector<float> wanted = logits_of(gguf(multiplied(tensors), settings), false);
    const io::Checkpoint checkpoint = gguf(tensors, settings);
    EXPECT_LE(relative_error(logits_of(checkpoint, true), wanted), allowed_error(DType::q4_k));
    EXPECT_LE(relative_error(logits_of(checkpoint, false), wanted), plain_error);
  }

  void expect_logits_of_multiplied_experts(const std::vector<StoredTensor>& tensors) {
    // With experts' blocks, GPUs round f32 to bf16.
    const bool exact = device_under_test().host_accessible();
    expect_logits_of_multiplied(tensors, set_experts_config, exact ? kPlainError : 5e-3);
  }
};

TEST_F(MatrixScalesTest, LogitsOfScaledWeightsInFloat32) {
  expect_logits_of_multiplied(scaled(make_tensors(DType::f32)), set_config);
}

TEST_F(MatrixScalesTest, LogitsOfScaledExpertsInFloat32) {
  expect_logits_of_multiplied_experts(scaled(make_experts()));
}

// Gate and up share their inputs.
TEST_F(MatrixScalesTest, LogitsOfExpertsThatAreScaledInPart) {
  for (const char* without : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    SCOPED_TRACE(without);
    std::vector<StoredTensor> tensors = scaled(make_experts());
    std::erase_if(tensors, [&](const StoredTensor& tensor) {
      return tensor.name.ends_with(cat(without, ".scale"));
    });
    expect_logits_of_multiplied_experts(tensors);
  }
}

TEST_F(MatrixScalesTest, AScaleTooFewIsRefused) {
  std::vector<StoredTensor> tensors = scaled(make_experts());
  const auto scale = std::ranges::find(tensors, "blk.1.ffn_up_exps.scale", &StoredTensor::name);
  scale->shape = {kExperts - 1};
  scale->values.pop_back();
  expect_error(Code::invalid_argument, {"blk.1.ffn_up_exps.scale", "wanted f32 (4)"},
               [&] { logits_of(gguf(tensors, set_experts_config), true); });
}

TEST_F(MatrixScalesTest, AScaleThatIsNoNumberIsRefused) {
  std::vector<StoredTensor> tensors = scaled(make_tensors(DType::f32));
  std::ranges::find(tensors, "blk.0.attn_q.scale", &StoredTensor::name)->values[0] = NAN;
  expect_error(Code::invalid_argument, {"blk.0.attn_q.scale", "not finite"},
               [&] { logits_of(gguf(tensors, set_config), true); });
}

TEST_F(MatrixScalesTest, AScaleThatNobodyReadsIsRefused) {
  std::vector<StoredTensor> tensors = make_tensors(DType::nvfp4);
  tensors.push_back({"token_embd.scale", {1}, {0.5f}});
  expect_error(Code::unsupported, {"token_embd.scale"},
               [&] { logits_of(gguf(tensors, set_config), true); });
}

class SplitFilesTest : public CheckpointFiles {};

TEST_F(SplitFilesTest, SameLogits) {
  const std::vector<StoredTensor> tensors = make_tensors(DType::q4_1);
  const io::Checkpoint split = split_gguf(tensors, 8, set_config);
  EXPECT_EQ(split.tensors().size(), tensors.size());
  EXPECT_EQ(logits_of(split, true), logits_of(gguf(tensors, set_config), true));
}

}  // namespace
}  // namespace rbee::test
