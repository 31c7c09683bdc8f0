// Hugging Face folders as GGUF files: the converted model must have the same settings and the
// logits of transformers' goldens in tests/models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/engine/text/generation_config.h"
#include "rbee/io/safetensors_writer.h"
#include "rbee/quant/quant.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"
#include "tests/support/npy.h"
#include "tests/units/quantize/folder_conversion.h"
#include "tools/convert/type_plan.h"
#include "tools/convert/write_model.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

fs::path data_folder(std::string_view name) {
  return fs::path(test::data_folder()) / "models/language/data" / name;
}

class ConvertTest : public FolderConversion {
 protected:
  // The folder of a case with its config.json changed; weights are links.
  fs::path folder(const char* name, const char* weights_of, const json& changes = json::object()) {
    const fs::path made = path(cat("hf", count_++));
    fs::create_directory(made);
    std::ifstream in(data_folder(name) / "hf" / "config.json");
    json config = json::parse(in);
    config.merge_patch(changes);
    std::ofstream(made / "config.json") << config;
    for (const auto& file : fs::directory_iterator(data_folder(weights_of) / "hf")) {
      if (file.path().filename() == "config.json") continue;
      fs::create_symlink(file.path(), made / file.path().filename());
    }
    return made;
  }

  fs::path convert(const fs::path& from, const char* type, bool vocabulary = false) {
    return FolderConversion::convert(from, type, vocabulary);
  }
};

std::unique_ptr<models::LanguageModel> load(const fs::path& path, int64_t context) {
  return models::load_language_model(io::Checkpoint::open(path),
                                     {.device = &test::cpu_device(), .context = context});
}

std::vector<std::vector<int32_t>> prompts_of(const char* name) {
  std::vector<std::vector<int32_t>> prompts;
  const auto ids = test::read_npy<int32_t>(data_folder(name) / "ids.npy");
  auto from = ids.values.begin();
  for (const int32_t length : test::read_npy<int32_t>(data_folder(name) / "lengths.npy").values) {
    prompts.emplace_back(from, from + length);
    from += length;
  }
  return prompts;
}

std::vector<float> logits_of(const models::LanguageModel& model,
                             const std::vector<std::vector<int32_t>>& prompts) {
  test::ModelRunner runner(model, static_cast<int64_t>(prompts.size()), 32);
  std::vector<test::Piece> pieces;
  pieces.reserve(prompts.size());
  for (const auto& prompt : prompts) {
    pieces.push_back({static_cast<int64_t>(pieces.size()), prompt});
  }
  return runner.step(pieces);
}

void expect_same_settings(const models::ModelConfig& a, const models::ModelConfig& b) {
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.dim, b.dim);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.ffn_dim, b.ffn_dim);
  EXPECT_EQ(a.context_length, b.context_length);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
}

// The same folder with f32 weights.
fs::path plain_folder(const fs::path& from, const fs::path& to) {
  fs::create_directory(to);
  fs::copy(from / "config.json", to);
  const io::Checkpoint checkpoint = io::Checkpoint::open(from);
  const auto tensors = as_stored(checkpoint);
  const auto plans = plan_types(tensors, {.recipe = find_recipe("f32"), .gguf = false});
  io::SafetensorsWriter writer;
  write_model(writer, plans, {.to = to / "model.safetensors"});
  return to;
}

struct FamilyCase {
  const char* name;
  const char* weights_of;
  int64_t context = 24;
};

constexpr FamilyCase kCases[] = {
    {"llama", "llama"},
    {"llama_bias", "llama_bias"},
    {"smollm", "smollm"},
    {"rope_linear", "smollm"},
    {"rope_yarn", "smollm"},
    {"rope_llama3", "smollm"},
    {"mistral", "mistral"},
    {"qwen2", "qwen2"},
    {"qwen2_window", "qwen2"},
    {"qwen3", "qwen3"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma2_scalar", "gemma2"},
    {"gemma3", "gemma3"},
    {"gemma3_linear", "gemma3"},
    {"gemma3_multimodal", "gemma3_multimodal"},
    {"phi3", "phi3"},
    {"phi3_long", "phi3"},
    {"phi3_short", "phi3", 16},
    {"phi4", "phi4"},
    {"phi4_mini", "phi4_mini"},
    {"phi4_mini_short", "phi4_mini", 16},
    {"ministral3", "ministral3"},
    {"ministral3_text", "ministral3"},
    {"mistral3", "mistral"},
    {"granite", "granite"},
    {"smollm3", "smollm3"},
    {"olmo2", "olmo2"},
    {"olmo3", "olmo3"},
    {"exaone4", "exaone4"},
    {"exaone4_full", "exaone4"},
    {"seed_oss", "seed_oss"},
    {"ernie4_5", "ernie4_5"},
    {"hunyuan_dense", "hunyuan_dense"},
    {"glm4", "glm4"},
    {"cohere2", "cohere2"},
    {"glm4_moe", "glm4_moe"},
    {"glm4_moe_air", "glm4_moe_air"},
    {"minimax_m2", "minimax_m2"},
    {"ernie4_5_moe", "ernie4_5_moe"},
    {"hunyuan_moe", "hunyuan_moe"},
    {"mixtral", "mixtral"},
    {"qwen2_moe", "qwen2_moe"},
    {"qwen3_moe", "qwen3_moe"},
};

class FamilyTest : public ConvertTest, public testing::WithParamInterface<FamilyCase> {};

// The folder's own weights as f32, so that both models run the same kernels.
TEST_P(FamilyTest, KeepsTheLogits) {
  const auto [name, weights_of, context] = GetParam();
  const fs::path from = folder(name, weights_of);
  const auto model = load(convert(from, "f32"), context);
  expect_same_settings(model->config(), load(from, context)->config());
  EXPECT_EQ(model->config().name, "tiny");
  const std::vector<float> logits = logits_of(*model, prompts_of(name));
  const auto golden = test::read_npy<float>(data_folder(name) / "logits.npy").values;
  EXPECT_LE(test::max_difference(logits, golden), 1e-4f);
  const auto plain = load(plain_folder(from, path("plain")), context);
  EXPECT_LE(test::max_difference(logits, logits_of(*plain, prompts_of(name))), 1e-5f);
}

TEST_P(FamilyTest, BlockTypesLoad) {
  const auto [name, weights_of, context] = GetParam();
  const auto model = load(convert(folder(name, weights_of), "q8_0"), context);
  const auto golden = test::read_npy<float>(data_folder(name) / "logits.npy").values;
  const float difference = test::max_difference(logits_of(*model, prompts_of(name)), golden);
  EXPECT_LE(difference, 1.5f);
  EXPECT_GT(difference, 1e-4f);
}

INSTANTIATE_TEST_SUITE_P(Cases, FamilyTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Folders of packed integers: as f32 values in a GGUF file, and as the codes themselves, whose rows
// are permuted for rope.
TEST_F(ConvertTest, PackedIntegersKeepTheLogits) {
  for (const char* name :
       {"llama_awq", "llama_gptq", "llama_gptq_order", "phi3_packed", "mixtral_gptq"}) {
    SCOPED_TRACE(name);
    const auto golden = test::read_npy<float>(data_folder(name) / "logits.npy").values;
    const auto model = load(convert(folder(name, name), "f32"), 24);
    EXPECT_LE(test::max_difference(logits_of(*model, prompts_of(name)), golden), 0.02f);
  }
  const io::Checkpoint gguf =
      io::Checkpoint::open(convert(folder("llama_gptq", "llama_gptq"), "q4_0"));
  const io::Checkpoint hf = io::Checkpoint::open(data_folder("llama_gptq") / "hf");
  const io::TensorEntry& blocks = gguf.require("blk.0.attn_k.weight");
  ASSERT_EQ(blocks.dtype, DType::q4_0);
  std::vector<float> values(static_cast<size_t>(numel(blocks.shape)));
  quant::dequantize_row(blocks.dtype, blocks.data.data(), values.data(),
                        static_cast<int64_t>(values.size()));
  std::vector<float> wanted = io::read_floats(hf.require("model.layers.0.self_attn.k_proj.weight"));
  EXPECT_NE(values, wanted);
  std::ranges::sort(values);
  std::ranges::sort(wanted);
  EXPECT_EQ(values, wanted);
}

TEST_F(ConvertTest, DefaultsOfSamplingStay) {
  const fs::path made = folder("smollm", "smollm");
  fs::remove(made / "generation_config.json");
  std::ofstream(made / "generation_config.json")
      << R"({"temperature": 0.5, "top_k": 20, "top_p": 0.75, "min_p": 0.25,
             "repetition_penalty": 1.5, "num_beams": 1})";
  const io::Checkpoint file = io::Checkpoint::open(convert(made, "q8_0"));
  EXPECT_EQ(file.metadata().find("general.sampling.top_k")->type, io::MetaType::i32);
  EXPECT_EQ(file.metadata().find("general.sampling.temp")->type, io::MetaType::f32);
  EXPECT_EQ(engine::sampling_defaults(file.metadata()),
            (engine::SamplingDefaults{.temperature = 0.5f,
                                      .top_p = 0.75f,
                                      .min_p = 0.25f,
                                      .repetition_penalty = 1.5f,
                                      .top_k = 20}));
  fs::remove(made / "generation_config.json");
  const io::Checkpoint plain = io::Checkpoint::open(convert(made, "q8_0"));
  EXPECT_FALSE(plain.metadata().contains("general.sampling.temp"));
}

using enum Code;

TEST_F(ConvertTest, RefusesWhatGgufCannotHold) {
  expect_refused(folder("rope_dynamic", "smollm"), unsupported, "rope scaling is dynamic");
  expect_refused(folder("llama", "llama", {{"hidden_act", "gelu"}}), unsupported, "hidden_act");
  expect_refused(folder("gemma2", "gemma2", {{"hidden_activation", "silu"}}), unsupported,
                 "hidden_act");
  expect_refused(folder("rope_yarn", "smollm", {{"rope_scaling", {{"truncate", false}}}}),
                 unsupported, "truncate false");
  expect_refused(folder("qwen3", "qwen3", {{"attention_bias", true}}), unsupported,
                 "attention_bias is true");
  expect_refused(folder("smollm3_list", "smollm3"), unsupported, "no_rope_layers are not every");
  expect_refused(folder("olmo2", "olmo2", {{"attention_bias", true}}), unsupported,
                 "attention_bias is true");
  expect_refused(folder("stablelm", "stablelm"), unsupported, "stablelm");
  expect_refused(folder("gpt_oss", "gpt_oss"), unsupported, "gpt_oss");
  expect_refused(folder("qwen3_moe_mixed", "qwen3_moe_mixed"), unsupported,
                 "leaves layers without experts, which GGUF files of qwen3moe cannot say");
  expect_refused(folder("qwen3_moe", "qwen3_moe", {{"norm_topk_prob", false}}), unsupported,
                 "norm_topk_prob is false");
  expect_refused(folder("qwen2_moe", "qwen2_moe", {{"norm_topk_prob", true}}), unsupported,
                 "norm_topk_prob is true");
  expect_refused(folder("qwen2_moe", "qwen2_moe", {{"qkv_bias", false}}), unsupported,
                 "qkv_bias is false");
  expect_refused(folder("mixtral", "mixtral", {{"num_local_experts", 6}}), not_found,
                 "model.layers.0.block_sparse_moe.experts.5.w1.weight is missing");
  expect_refused(folder("llama", "llama", {{"model_type", "mamba"}}), unsupported, "mamba");
  expect_refused(folder("llama", "llama", {{"num_hidden_layers", 3}}), not_found,
                 "model.layers.2.input_layernorm.weight is missing");
  expect_refused(folder("llama", "llama", {{"vocab_size", 161}}), invalid_argument,
                 "the token table is (160, 64)");
  expect_refused(folder("llama", "llama"), not_found, "tokenizer.json is not beside", true);
}

// YaRN's own rotation factor is stored as the number that readers multiply their formula by.
TEST_F(ConvertTest, YarnKeepsItsAttentionFactor) {
  const fs::path from =
      folder("rope_yarn", "smollm",
             {{"rope_scaling", {{"attention_factor", 0.9}, {"beta_fast", 20}, {"beta_slow", 2}}}});
  const auto model = load(convert(from, "f32"), 24);
  const auto plain = load(plain_folder(from, path("plain")), 24);
  const auto prompts = prompts_of("rope_yarn");
  EXPECT_LE(test::max_difference(logits_of(*model, prompts), logits_of(*plain, prompts)), 1e-5f);
}

// Layers without a regular pattern are listed one by one.
TEST_F(ConvertTest, AnyLayersMaySlide) {
  const fs::path from =
      folder("gemma3_multimodal", "gemma3_multimodal",
             {{"text_config",
               {{"layer_types", {"full_attention", "full_attention", "sliding_attention"}}}}});
  const fs::path to = convert(from, "f32");
  EXPECT_THAT(
      *io::Checkpoint::open(to).metadata().get_bools("gemma3.attention.sliding_window_pattern"),
      testing::ElementsAre(false, false, true));
  const auto prompts = prompts_of("gemma3_multimodal");
  const auto plain = load(plain_folder(from, path("plain")), 24);
  EXPECT_LE(test::max_difference(logits_of(*load(to, 24), prompts), logits_of(*plain, prompts)),
            1e-5f);
}

}  // namespace
}  // namespace rbee::tools
