// Checkpoints with wrong sizes, without a tensor, or with an unknown setting: the error must name
// the field or tensor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/log.h"
#include "rbee/models/embedding_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class BadCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-models-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  static fs::path data(const std::string& name) {
    return fs::path(test::data_folder()) / "models/language/data" / name;
  }

  // The Hugging Face folder of a case with its config changed.
  fs::path changed_config(const std::string& name, const std::function<void(json&)>& change) {
    fs::copy(data(name) / "hf", folder_,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    json config = json::parse(read_file(folder_ / "config.json"));
    change(config);
    write_file(folder_ / "config.json", config.dump());
    return folder_;
  }

  // The GGUF file of a case with its bytes changed.
  fs::path changed_gguf(const std::string& name, const std::function<void(std::string&)>& change) {
    std::string bytes = read_file(data(name) / "model.gguf");
    change(bytes);
    write_file(folder_ / "model.gguf", bytes);
    return folder_ / "model.gguf";
  }

  static std::unique_ptr<models::LanguageModel> load(const fs::path& path) {
    return models::load_language_model(io::Checkpoint::open(path), {.device = &cpu_device()});
  }

  static void expect_error(const fs::path& path, Code code, const std::vector<std::string>& parts) {
    try {
      load(path);
      ADD_FAILURE() << "loaded; wanted an error with " << testing::PrintToString(parts);
    } catch (const Error& error) {
      EXPECT_EQ(name(error.code()), name(code)) << error.what();
      for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

 private:
  fs::path folder_;
};

// Overwrites the 32-bit value of a metadata key.
void set_u32(std::string& bytes, const std::string& key, uint32_t value) {
  const size_t at = bytes.find(key);
  ASSERT_NE(at, std::string::npos) << key;
  std::memcpy(bytes.data() + at + key.size() + sizeof(uint32_t), &value, sizeof value);
}

void rename(std::string& bytes, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
}

struct ConfigCase {
  const char* field;  // its name in errors
  json value;
  Code code;
  std::vector<std::string> parts;
};

TEST_F(BadCheckpointTest, ConfigFields) {
  const ConfigCase cases[] = {
      {"hidden_size", 0, Code::invalid_argument, {"hidden_size is 0"}},
      {"hidden_size", -64, Code::invalid_argument, {"hidden_size is -64"}},
      {"hidden_size", "64", Code::invalid_argument, {"hidden_size is \"64\"", "an integer"}},
      {"hidden_size", 64.5, Code::invalid_argument, {"hidden_size is 64.5", "an integer"}},
      {"hidden_size", 1ull << 63, Code::invalid_argument, {"hidden_size is 9223372036854775808"}},
      {"hidden_size", 1ll << 40, Code::invalid_argument, {"hidden_size is 1099511627776"}},
      {"hidden_size", nullptr, Code::not_found, {"hidden_size is missing"}},
      {"hidden_size", 66, Code::invalid_argument, {"66", "not a multiple of 4 heads"}},
      {"hidden_size",
       128,
       Code::invalid_argument,
       {"model.embed_tokens.weight", "(160, 64)", "(160, 128)"}},
      {"num_attention_heads", 0, Code::invalid_argument, {"num_attention_heads is 0"}},
      {"num_key_value_heads",
       3,
       Code::invalid_argument,
       {"num_key_value_heads is 3", "divisor of the 4 heads"}},
      {"num_key_value_heads", 0, Code::invalid_argument, {"num_key_value_heads is 0"}},
      {"num_hidden_layers",
       3,
       Code::not_found,
       {"model.layers.2.input_layernorm.weight", "(64)", "missing"}},
      {"num_hidden_layers", 1000000, Code::invalid_argument, {"num_hidden_layers is 1000000"}},
      {"vocab_size",
       161,
       Code::invalid_argument,
       {"model.embed_tokens.weight", "(160, 64)", "(161, 64)"}},
      {"intermediate_size",
       95,
       Code::invalid_argument,
       {"model.layers.0.mlp.gate_proj.weight", "(96, 64)", "(95, 64)"}},
      {"head_dim", 12, Code::invalid_argument, {"self_attn.q_proj.weight", "(48, 64)"}},
      {"head_dim", 15, Code::invalid_argument, {"rotary_dim is 15"}},
      {"max_position_embeddings", 0, Code::invalid_argument, {"max_position_embeddings is 0"}},
      {"rms_norm_eps", -1, Code::invalid_argument, {"rms_norm_eps is -1"}},
      {"rms_norm_eps", "small", Code::invalid_argument, {"rms_norm_eps is \"small\""}},
      {"rms_norm_eps", 1e300, Code::invalid_argument, {"rms_norm_eps is 1e+300", "from 0 to 1"}},
      {"rope_theta", 0, Code::invalid_argument, {"config.json's rope_theta is 0", "from 1 to"}},
      {"rope_theta", 1, Code::invalid_argument, {"base is 1"}},
      {"rope_theta", 1e300, Code::invalid_argument, {"rope_theta is 1e+300", "to 3.4028235e+38"}},
      {"partial_rotary_factor", -0.5, Code::invalid_argument, {"partial_rotary_factor is -0.5"}},
      {"partial_rotary_factor", 2.0, Code::invalid_argument, {"partial_rotary_factor is 2"}},
      {"hidden_act", "snake", Code::unsupported, {"hidden_act", "snake", "silu"}},
      {"attention_bias", true, Code::not_found, {"model.layers.0.self_attn.q_proj.bias", "(64)"}},
      {"attention_bias", 1, Code::invalid_argument, {"attention_bias is 1", "true or false"}},
      {"num_local_experts", 8, Code::unsupported, {"num_local_experts is 8", "experts"}},
      {"quantization_config", {{"quant_method", "aqlm"}}, Code::unsupported, {"aqlm", "GGUF"}},
      {"model_type", "mamba", Code::unsupported, {"mamba", "llama", "qwen3", "gemma3", "phi3"}},
  };
  for (const ConfigCase& each : cases) {
    SCOPED_TRACE(cat(each.field, " = ", each.value.dump()));
    const fs::path path =
        changed_config("llama", [&](json& config) { config[each.field] = each.value; });
    expect_error(path, each.code, each.parts);
  }
}

TEST_F(BadCheckpointTest, RopeScaling) {
  const ConfigCase cases[] = {
      {"rope_scaling", {{"type", "spiral"}}, Code::unsupported, {"spiral", "yarn", "longrope"}},
      {"rope_scaling",
       {{"type", "linear"}, {"factor", 0}},
       Code::invalid_argument,
       {"factor is 0"}},
      {"rope_scaling",
       {{"type", "linear"}, {"factor", 1e300}},
       Code::invalid_argument,
       {"rope_scaling.factor is 1e+300", "3.4028235e+38"}},
      {"rope_scaling",
       {{"type", "yarn"}, {"factor", 4}, {"attention_factor", -1}},
       Code::invalid_argument,
       {"rope_scaling.attention_factor is -1"}},
      {"rope_scaling",
       {{"type", "yarn"}, {"factor", 4}, {"beta_fast", 0}},
       Code::invalid_argument,
       {"rope_scaling.beta_fast is 0"}},
      {"rope_scaling",
       {{"type", "yarn"}, {"factor", 4}, {"mscale", 1e39}},
       Code::invalid_argument,
       {"rope_scaling.mscale is 1e+39", "from 0 to 1000"}},
      {"rope_scaling",
       {{"type", "linear"}, {"factor", "2"}},
       Code::invalid_argument,
       {"factor is \"2\""}},
      {"rope_scaling",
       {{"type", "longrope"}, {"short_factor", {1, 2}}},
       Code::invalid_argument,
       {"short_factor has 2 values, wanted 8"}},
      {"rope_scaling",
       {{"type", "longrope"}, {"short_factor", {1, 1, 1, 1, 1, 1, 1, 0}}},
       Code::invalid_argument,
       {"rope_scaling.short_factor is 0"}},
      {"rope_scaling",
       {{"type", "longrope"}, {"short_factor", 1}},
       Code::invalid_argument,
       {"an array of numbers"}},
      {"rope_scaling",
       {{"type", "yarn"}, {"original_max_position_embeddings", 0}},
       Code::invalid_argument,
       {"original_max_position_embeddings is 0"}},
      {"rope_scaling",
       {{"type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}},
       Code::invalid_argument,
       {"high_freq_factor is 4"}},
  };
  for (const ConfigCase& each : cases) {
    SCOPED_TRACE(each.value.dump());
    const fs::path path =
        changed_config("llama", [&](json& config) { config[each.field] = each.value; });
    expect_error(path, each.code, each.parts);
  }
}

TEST_F(BadCheckpointTest, FamilyFields) {
  const auto set = [](const char* key, const json& value) {
    return [key, value](json& config) { config[key] = value; };
  };
  expect_error(changed_config("gemma2", set("layer_types", {"full_attention"})),
               Code::invalid_argument, {"layer_types has 1 entries for 3 layers"});
  expect_error(changed_config("gemma2", set("layer_types", {"a", "b", "c"})), Code::unsupported,
               {"layer_types[0] is \"a\""});
  expect_error(changed_config("gemma2", set("query_pre_attn_scalar", 0)), Code::invalid_argument,
               {"query_pre_attn_scalar is 0"});
  expect_error(changed_config("gemma2", set("final_logit_softcapping", -1)), Code::invalid_argument,
               {"final_logit_softcapping is -1"});
  expect_error(changed_config("gemma3", set("use_bidirectional_attention", true)),
               Code::unsupported, {"use_bidirectional_attention"});
  expect_error(changed_config("mistral", set("sliding_window", -8)), Code::invalid_argument,
               {"sliding_window is -8"});
  expect_error(changed_config("gemma3_multimodal", set("text_config", 7)), Code::invalid_argument,
               {"text_config is not an object"});
  expect_error(changed_config("granite", set("residual_multiplier", 0)), Code::invalid_argument,
               {"residual_multiplier is 0"});
  expect_error(changed_config("smollm3", set("no_rope_layers", {1, 1})), Code::invalid_argument,
               {"no_rope_layers has 2 entries for 4 layers"});
  expect_error(changed_config("smollm3", set("use_sliding_window", true)), Code::unsupported,
               {"use_sliding_window is true"});
  expect_error(changed_config("stablelm", set("layer_norm_eps", 2)), Code::invalid_argument,
               {"layer_norm_eps is 2"});
  expect_error(changed_config("stablelm", set("qk_layernorm", true)), Code::not_found,
               {"model.layers.0.self_attn.q_layernorm.norms.0.weight", "(16)"});
}

TEST_F(BadCheckpointTest, Experts) {
  const auto set = [](const char* key, const json& value) {
    return [key, value](json& config) { config[key] = value; };
  };
  expect_error(changed_config("mixtral", set("num_experts_per_tok", 6)), Code::invalid_argument,
               {"num_experts_per_tok is 6", "the 5 experts"});
  expect_error(changed_config("mixtral", set("num_local_experts", 2000)), Code::invalid_argument,
               {"num_local_experts is 2000", "1 to 1024"});
  expect_error(changed_config("mixtral", set("num_experts_per_tok", nullptr)), Code::not_found,
               {"num_experts_per_tok is missing"});
  expect_error(changed_config("mixtral", set("num_local_experts", 6)), Code::invalid_argument,
               {"model.layers.0.block_sparse_moe.gate.weight", "(5, 64)", "(6, 64)"});
  expect_error(changed_config("qwen2_moe", set("use_sliding_window", true)), Code::unsupported,
               {"use_sliding_window is true"});
  expect_error(changed_config("qwen3_moe_mixed", set("mlp_only_layers", {3})),
               Code::invalid_argument, {"mlp_only_layers has 3", "0 to 2"});
  expect_error(changed_config("qwen3_moe", set("moe_intermediate_size", 33)),
               Code::invalid_argument,
               {"model.layers.0.mlp.experts.0.gate_proj.weight", "(32, 64)", "(33, 64)"});
  expect_error(
      changed_gguf("mixtral",
                   [](std::string& b) { rename(b, "blk.1.ffn_up_exps", "blk.1.ffn_up_expx"); }),
      Code::not_found, {"blk.1.ffn_up_exps.weight", "(5, 32, 64)", "missing"});
  expect_error(
      changed_gguf("mixtral", [](std::string& b) { set_u32(b, "llama.expert_used_count", 9); }),
      Code::invalid_argument, {"llama.expert_used_count is 9", "5 experts"});
}

TEST_F(BadCheckpointTest, VariantsOfLlama) {
  const auto set = [](const char* key, const json& value) {
    return [key, value](json& config) { config[key] = value; };
  };
  const auto in_rope = [](const char* key, const json& value) {
    return [key, value](json& config) { config["text_config"]["rope_parameters"][key] = value; };
  };
  expect_error(changed_config("ministral3", in_rope("llama_4_scaling_beta", -1)),
               Code::invalid_argument, {"llama_4_scaling_beta is -1", "from 0 to 100"});
  expect_error(changed_config("ministral3", in_rope("llama_4_scaling_beta", nullptr)),
               Code::not_found, {"llama_4_scaling_beta is missing"});
  expect_error(changed_config("hunyuan_dense",
                              [](json& config) { config["rope_parameters"]["alpha"] = 0.5; }),
               Code::invalid_argument, {"rope_parameters.alpha is 0.5"});
  expect_error(changed_config("seed_oss", set("attention_out_bias", true)), Code::not_found,
               {"model.layers.0.self_attn.o_proj.bias", "(32)"});
  expect_error(changed_config("exaone4", set("sliding_window_pattern", "LGL")), Code::unsupported,
               {"sliding_window_pattern is \"LGL\""});
  expect_error(changed_config("cohere2", set("logit_scale", 0)), Code::invalid_argument,
               {"logit_scale is 0"});
  expect_error(changed_config("glm4", set("partial_rotary_factor", 1.5)), Code::invalid_argument,
               {"partial_rotary_factor is 1.5"});
  expect_error(changed_config("glm4_moe", set("n_group", 4)), Code::invalid_argument,
               {"3 of 6 experts", "4 groups"});
  expect_error(changed_config("minimax_m2", set("rotary_dim", 26)), Code::invalid_argument,
               {"rotary_dim is 26", "2 to 24"});
  expect_error(changed_config("ernie4_5_moe", set("moe_layer_start_index", 3)),
               Code::invalid_argument, {"moe_layer_start_index is 3"});
  expect_error(changed_config("hunyuan_moe", set("use_cla", true)), Code::unsupported,
               {"use_cla is true"});
  expect_error(changed_config("hunyuan_dense", set("use_qk_norm", false)), Code::unsupported,
               {"use_qk_norm is false"});
  expect_error(changed_config("hunyuan_moe", set("moe_topk", {2, 1})), Code::unsupported,
               {"moe_topk is 2 for one layer and 1 for another"});
  expect_error(changed_config("glm4_moe_lite", set("mlp_layer_types", {"sparse", "dense"})),
               Code::unsupported, {"mlp_layer_types has 2 entries", "first dense ones"});
}

// What published files say in other ways than the fixtures do.
TEST_F(BadCheckpointTest, OtherSpellingsLoad) {
  EXPECT_NE(load(changed_config("exaone4", [](json& c) { c["sliding_window_pattern"] = "LLG"; })),
            nullptr);
  EXPECT_NE(load(changed_config("hunyuan_moe", [](json& c) { c["moe_topk"] = {2, 2}; })), nullptr);
}

TEST_F(BadCheckpointTest, LayersWithStates) {
  const auto set = [](const char* key, const json& value) {
    return [key, value](json& config) { config[key] = value; };
  };
  const auto refused = [&](const char* key, const json& value, Code code, const char* part) {
    expect_error(changed_config("qwen3_next", set(key, value)), code, {part});
  };
  refused("layer_types", {"linear_attention", "full_attention"}, Code::invalid_argument,
          "layer_types has 2 entries for 3 layers");
  refused("layer_types", {"full_attention", "full_attention", "mamba"}, Code::unsupported,
          "layer_types[2] is \"mamba\"");
  refused("linear_num_value_heads", 3, Code::invalid_argument,
          "linear_num_value_heads is 3, wanted a multiple of the 2 key heads");
  refused("linear_conv_kernel_dim", 1, Code::invalid_argument, "linear_conv_kernel_dim is 1");
  refused("linear_key_head_dim", 0, Code::invalid_argument, "linear_key_head_dim is 0");
  refused("hidden_act", "gelu", Code::unsupported, "hidden_act is not silu");
  refused("mlp_only_layers", {1}, Code::unsupported, "mlp_only_layers");
  refused("linear_value_head_dim", 17, Code::invalid_argument,
          "model.layers.0.linear_attn.in_proj_qkvz.weight is (192, 64), wanted (200, 64)");
  expect_error(changed_gguf("qwen3_next",
                            [](std::string& b) { set_u32(b, "qwen3next.ssm.inner_size", 63); }),
               Code::invalid_argument, {"qwen3next.ssm.inner_size is 63", "4 value heads"});
  expect_error(
      changed_gguf("qwen3_5", [](std::string& b) { rename(b, "blk.0.ssm_a", "blk.0.ssm_x"); }),
      Code::not_found, {"blk.0.ssm_a", "missing"});
  test::expect_error(Code::unsupported, {"no embeddings yet"}, [&] {
    models::load_embedding_model(io::Checkpoint::open(data("qwen3_5") / "model.gguf"),
                                 {.device = &cpu_device()});
  });
}

TEST_F(BadCheckpointTest, LatentAttention) {
  const auto set = [](const char* key, const json& value) {
    return [key, value](json& config) { config[key] = value; };
  };
  expect_error(changed_config("deepseek_v2", set("kv_lora_rank", nullptr)), Code::not_found,
               {"kv_lora_rank is missing"});
  expect_error(changed_config("deepseek_v2", set("v_head_dim", 13)), Code::invalid_argument,
               {"model.layers.0.self_attn.kv_b_proj.weight", "(112, 32)", "(116, 32)"});
  expect_error(changed_config("deepseek_v2", set("qk_rope_head_dim", 7)), Code::invalid_argument,
               {"7"});
  expect_error(changed_config("deepseek_v2", set("n_group", 3)), Code::invalid_argument,
               {"3 of 8 experts", "3 groups"});
  expect_error(changed_config("deepseek_v2", set("topk_group", 5)), Code::invalid_argument,
               {"topk_group is 5", "1 to 4"});
  expect_error(changed_config("deepseek_v2", set("moe_layer_freq", 2)), Code::unsupported,
               {"moe_layer_freq is 2"});
  expect_error(changed_config("deepseek_v3", set("attention_bias", true)), Code::unsupported,
               {"attention_bias is true"});
  expect_error(
      changed_gguf("deepseek_v3",
                   [](std::string& b) { set_u32(b, "deepseek2.attention.key_length", 8); }),
      Code::invalid_argument, {"keys of 8 elements", "8 that are rotated"});
  expect_error(changed_gguf("deepseek_v3",
                            [](std::string& b) { set_u32(b, "deepseek2.expert_gating_func", 4); }),
               Code::invalid_argument, {"expert_gating_func is 4"});
  expect_error(changed_gguf("deepseek_v3",
                            [](std::string& b) {
                              rename(b, "blk.1.exp_probs_b.bias", "blk.1.exp_probs_x.bias");
                            }),
               Code::not_found, {"blk.1.exp_probs_b.bias", "(8)"});
}

TEST_F(BadCheckpointTest, GptOss) {
  const auto set = [](const char* key, const json& value) {
    return [key, value](json& config) { config[key] = value; };
  };
  expect_error(changed_config("gpt_oss", set("swiglu_alpha", 2)), Code::unsupported,
               {"swiglu_alpha is 2", "1.702"});
  expect_error(changed_config("gpt_oss", set("swiglu_limit", 0)), Code::invalid_argument,
               {"swiglu_limit is 0"});
  expect_error(changed_config("gpt_oss", set("quantization_config", {{"quant_method", "aqlm"}})),
               Code::unsupported, {"aqlm"});
  expect_error(
      changed_config("gpt_oss", set("intermediate_size", 64)), Code::invalid_argument,
      {"model.layers.0.mlp.experts.gate_up_proj_blocks", "(5, 64, 2, 16)", "(5, 128, 2, 16)"});
  expect_error(changed_gguf("gpt_oss",
                            [](std::string& b) {
                              rename(b, "blk.1.attn_sinks.weight", "blk.1.attn_sinkx.weight");
                            }),
               Code::not_found, {"blk.1.attn_sinks.weight", "(4)"});
}

TEST_F(BadCheckpointTest, ConfigThatIsNoConfig) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{\"a\":";
  for (const std::string& text : {std::string("{"), std::string("[1]"), deep}) {
    const fs::path path = changed_config("llama", [](json&) {});
    write_file(path / "config.json", text);
    EXPECT_THROW(load(path), Error) << text.substr(0, 10);
  }
}

// transformers writes them for settings without a bound.
TEST_F(BadCheckpointTest, ConfigWithNumbersThatJsonHasNot) {
  const fs::path path = changed_config("llama", [](json& config) { config["unbounded"] = 7; });
  std::string text = read_file(path / "config.json");
  const size_t at = text.find("\"unbounded\":7");
  ASSERT_NE(at, text.npos);
  write_file(path / "config.json", text.replace(at + 12, 1, "[-Infinity, NaN]"));
  EXPECT_NO_THROW(load(path));
}

TEST_F(BadCheckpointTest, GgufFields) {
  expect_error(changed_gguf("llama", [](std::string& b) { set_u32(b, "llama.block_count", 0); }),
               Code::invalid_argument, {"llama.block_count is 0"});
  expect_error(
      changed_gguf("llama", [](std::string& b) { set_u32(b, "llama.block_count", 0xffffffff); }),
      Code::invalid_argument, {"llama.block_count is 4294967295"});
  expect_error(
      changed_gguf("llama", [](std::string& b) { set_u32(b, "llama.attention.head_count_kv", 3); }),
      Code::invalid_argument, {"llama.attention.head_count_kv is 3"});
  expect_error(changed_gguf("mistral",
                            [](std::string& b) { set_u32(b, "llama.attention.value_length", 16); }),
               Code::unsupported, {"llama.attention.value_length is 16", "24"});
  expect_error(changed_gguf("llama",
                            [](std::string& b) {
                              rename(b, "llama.embedding_length", "llama.embedding_lenght");
                            }),
               Code::not_found, {"llama.embedding_length is missing"});
  expect_error(
      changed_gguf("llama", [](std::string& b) { set_u32(b, "llama.rope.dimension_count", 18); }),
      Code::invalid_argument, {"llama.rope.dimension_count is 18"});
  const auto with_float = [&](const std::string& key, float value) {
    return changed_gguf("llama",
                        [&](std::string& b) { set_u32(b, key, std::bit_cast<uint32_t>(value)); });
  };
  const std::string eps = "llama.attention.layer_norm_rms_epsilon", base = "llama.rope.freq_base";
  expect_error(with_float(eps, NAN), Code::invalid_argument, {eps + " is nan", "from 0 to 1"});
  expect_error(with_float(eps, -1), Code::invalid_argument, {eps + " is -1"});
  expect_error(with_float(base, INFINITY), Code::invalid_argument, {base + " is inf", "from 1 to"});
}

TEST_F(BadCheckpointTest, GgufTensors) {
  expect_error(
      changed_gguf("llama",
                   [](std::string& b) { rename(b, "blk.1.attn_q.weight", "blk.1.attn_x.weight"); }),
      Code::not_found, {"blk.1.attn_q.weight", "(64, 64)", "missing"});
  expect_error(
      changed_gguf("llama",
                   [](std::string& b) { rename(b, "token_embd.weight", "token_embx.weight"); }),
      Code::not_found, {"token_embd.weight"});
  expect_error(
      changed_gguf("qwen2",
                   [](std::string& b) { rename(b, "blk.0.attn_k.bias", "blk.0.attn_k.bins"); }),
      Code::not_found, {"blk.0.attn_k.bias", "(32)"});
  expect_error(changed_gguf("phi3_long",
                            [](std::string& b) {
                              rename(b, "rope_factors_long.weight", "rope_factors_lung.weight");
                            }),
               Code::invalid_argument, {"long_factor has 0 values, wanted 6"});
}

TEST_F(BadCheckpointTest, UnknownGgufArchitecture) {
  const fs::path path = changed_gguf("llama", [](std::string& bytes) {
    const std::string key = "general.architecture";
    const size_t value = bytes.find(key) + key.size() + sizeof(uint32_t) + sizeof(uint64_t);
    bytes.replace(value, 5, "lemma");
  });
  expect_error(path, Code::unsupported, {"\"lemma\"", "llama", "mistral", "qwen2", "gemma2"});
}

// A tensor that no family knows does not stop the load, but is logged.
TEST_F(BadCheckpointTest, LeftoverTensorsAreLogged) {
  const fs::path path = changed_gguf("llama_bias", [](std::string& bytes) {
    rename(bytes, "blk.0.attn_q.bias", "blk.0.attn_x.bias");
  });
  std::string logged;
  set_log_sink(
      [&](LogLevel, std::string_view message, std::span<const LogField> fields) {
        logged += message;
        for (const LogField& field : fields) logged += cat(" ", field.key, "=", field.value);
      },
      LogLevel::warn);
  load(path);
  set_log_sink({}, LogLevel::error);
  EXPECT_THAT(logged, AllOf(HasSubstr("count=1"), HasSubstr("first=blk.0.attn_x.bias")));
}

TEST_F(BadCheckpointTest, LoadOptions) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(data("llama") / "hf");
  EXPECT_THROW(models::load_language_model(checkpoint, {}), Error);
  EXPECT_THROW(models::load_language_model(checkpoint, {.device = &cpu_device(), .context = -1}),
               Error);
  EXPECT_THROW(models::load_language_model(checkpoint,
                                           {.device = &cpu_device(), .context = int64_t{1} << 40}),
               Error);
}

TEST_F(BadCheckpointTest, ForwardChecksItsBatch) {
  const auto model = load(data("llama") / "hf");
  const auto index = [](std::vector<int32_t> values) {
    return from_host<int32_t>(values, {static_cast<int64_t>(values.size())}, cpu_device());
  };
  const auto cache = [](nn::CacheLayer second) {
    const nn::CacheLayer first{.kv_heads = 2, .head_dim = 16};
    return nn::KvCache({.layers = {first, second}, .blocks = 1}, cpu_device());
  };
  nn::KvCache other = cache({.kv_heads = 1, .head_dim = 16});
  nn::KvCache fits = cache({.kv_heads = 2, .head_dim = 16});
  models::ForwardBatch batch;
  batch.ids = index({1, 2});
  batch.positions = index({0, 1});
  batch.paged = {.seq_starts = index({0, 2}),
                 .kv_lens = index({2}),
                 .block_table = index({0}).reshape({1, 1}),
                 .slots = index({0, 1})};
  batch.logit_rows = index({1});
  EXPECT_NO_THROW(model->forward(batch, fits));
  EXPECT_THROW(model->forward(batch, other), Error);

  models::ForwardBatch wrong = batch;
  wrong.positions = index({0});
  EXPECT_THROW(model->forward(wrong, fits), Error);
  wrong = batch;
  wrong.ids = index({1, 160});
  EXPECT_THROW(model->forward(wrong, fits), Error);
  wrong = batch;
  wrong.logit_rows = index({2});
  EXPECT_THROW(model->forward(wrong, fits), Error);
  wrong = batch;
  wrong.logit_rows = {};
  EXPECT_THROW(model->forward(wrong, fits), Error);
}

}  // namespace
}  // namespace rbee::test
