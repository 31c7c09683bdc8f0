// Vectors and scores of tiny embedding models against transformers;
// tools/goldens/make_embedding_goldens.py writes goldens and checkpoints.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/models/dense_modules.h"
#include "rbee/models/embedding_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::Pooling;
using nlohmann::json;

struct EmbeddingCase {
  const char* name;
  const char* file;  // "hf" or "model.gguf"
  Pooling pooling;
  bool normalise = true;
};

constexpr EmbeddingCase kCases[] = {
    {"bert", "hf", Pooling::mean},
    {"bert", "model.gguf", Pooling::mean},
    {"bert_cls", "hf", Pooling::cls, false},
    {"xlm_roberta", "hf", Pooling::cls},
    {"xlm_roberta", "model.gguf", Pooling::cls},
    {"qwen3", "hf", Pooling::last},
    {"qwen3", "model.gguf", Pooling::last},
    {"bert_dense", "hf", Pooling::cls},
    {"gemma", "hf", Pooling::mean},
    {"gemma", "model.gguf", Pooling::mean},
    {"modern_bert", "hf", Pooling::cls},
    {"modern_bert", "model.gguf", Pooling::cls},
    {"nomic", "hf", Pooling::mean},
    {"nomic", "model.gguf", Pooling::mean},
    {"nomic_native", "hf", Pooling::mean},
    {"nomic_experts", "hf", Pooling::mean},
    {"nomic_experts_gguf", "hf", Pooling::mean},
    {"nomic_experts_gguf", "model.gguf", Pooling::mean},
};
constexpr EmbeddingCase kRankers[] = {
    {"bert_ranker", "hf", Pooling::mean},        {"bert_ranker", "model.gguf", Pooling::cls},
    {"xlm_roberta_ranker", "hf", Pooling::mean}, {"xlm_roberta_ranker", "model.gguf", Pooling::cls},
    {"modern_bert_ranker", "hf", Pooling::mean}, {"modern_bert_ranker", "model.gguf", Pooling::cls},
    {"qwen3_ranker", "hf", Pooling::last},       {"qwen3_ranker", "model.gguf", Pooling::last},
    {"qwen3_classifier", "hf", Pooling::last},   {"qwen3_classifier", "model.gguf", Pooling::last},
};

fs::path folder(const char* name) {
  return fs::path(test::data_folder()) / "models/embedding/data" / name;
}

class EmbeddingGolden : public testing::TestWithParam<EmbeddingCase> {
 protected:
  void SetUp() override {
    std::ifstream file(folder(GetParam().name) / "golden.json");
    golden_ = json::parse(file);
    model_ = load({});
  }

  static fs::path path() { return folder(GetParam().name) / GetParam().file; }
  static std::unique_ptr<models::EmbeddingModel> load(models::LoadOptions options) {
    options.device = &device_under_test();
    const io::Checkpoint checkpoint = io::Checkpoint::open(path());
    const models::EmbeddingSettings settings = models::read_embedding_settings(checkpoint);
    auto model = models::load_embedding_model(checkpoint, options, settings.words);
    return models::with_dense_modules(std::move(model), settings.dense, checkpoint, path(),
                                      options);
  }

  models::TextBatch batch(size_t first, size_t count) const {
    models::TextBatch out;
    for (size_t i = first; i < first + count; ++i) {
      const auto ids = golden_["ids"][i].get<std::vector<int32_t>>();
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      out.lengths.push_back(std::ssize(ids));
      std::vector<int32_t> segments(ids.size(), 0);
      if (golden_.contains("segments")) golden_["segments"][i].get_to(segments);
      out.segments.insert(out.segments.end(), segments.begin(), segments.end());
    }
    return out;
  }
  size_t count() const { return golden_["ids"].size(); }

  // Compares the model's vector for a text with the golden's.
  void expect_vector(std::vector<float> got, size_t text) const {
    if (GetParam().normalise) {
      double squares = 0;
      for (const float value : got) squares += double{value} * double{value};
      for (float& value : got) value /= static_cast<float>(std::sqrt(squares));
    }
    const auto wanted = golden_["vectors"][text].get<std::vector<float>>();
    EXPECT_LE(max_difference(got, wanted), 0.1f * kLogitBound) << "text " << text;
  }

  json golden_;
  std::unique_ptr<models::EmbeddingModel> model_;
};

using EmbeddingVectors = EmbeddingGolden;

TEST_P(EmbeddingVectors, EachTextAlone) {
  for (size_t i = 0; i < count(); ++i) {
    expect_vector(model_->embed(batch(i, 1), GetParam().pooling).to_host<float>(), i);
  }
}

TEST_P(EmbeddingVectors, TextsOfAllLengthsTogether) {
  const auto all = model_->embed(batch(0, count()), GetParam().pooling).to_host<float>();
  const size_t width = all.size() / count();
  for (size_t i = 0; i < count(); ++i) {
    const auto row = std::span(all).subspan(i * width, width);
    expect_vector({row.begin(), row.end()}, i);
  }
}

// Texts of equal length share an operation; none may affect another.
TEST_P(EmbeddingVectors, TheSameTextTwiceBesideAnother) {
  models::TextBatch twice = batch(0, 1);
  for (int i = 0; i < 2; ++i) {
    const models::TextBatch more = batch(i == 0 ? 0 : 1, 1);
    twice.ids.insert(twice.ids.end(), more.ids.begin(), more.ids.end());
    twice.segments.insert(twice.segments.end(), more.segments.begin(), more.segments.end());
    twice.lengths.push_back(more.lengths.front());
  }
  const auto all = model_->embed(twice, GetParam().pooling).to_host<float>();
  const size_t width = all.size() / 3;
  for (size_t i = 0; i < 3; ++i) {
    const auto row = std::span(all).subspan(i * width, width);
    expect_vector({row.begin(), row.end()}, i == 2 ? 1 : 0);
  }
}

TEST_P(EmbeddingVectors, ThePoolingShows) {
  for (const Pooling other : {Pooling::mean, Pooling::cls, Pooling::last}) {
    if (other == GetParam().pooling) continue;
    const auto got = model_->embed(batch(0, 1), other).to_host<float>();
    const auto own = model_->embed(batch(0, 1), GetParam().pooling).to_host<float>();
    EXPECT_GT(max_difference(got, own), 0.01f) << models::name(other);
  }
}

TEST_P(EmbeddingVectors, SettingsOfTheCheckpoint) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path());
  EXPECT_TRUE(models::makes_embeddings(checkpoint));
  const models::EmbeddingSettings settings = models::read_embedding_settings(checkpoint);
  EXPECT_EQ(settings.pooling, GetParam().pooling);
  EXPECT_EQ(settings.normalise, GetParam().normalise);
  EXPECT_EQ(settings.max_tokens, std::string_view(GetParam().name) == "bert_cls" ? 40 : 0);
  EXPECT_FALSE(model_->ranks());
  EXPECT_EQ(model_->max_tokens(), 64);
  EXPECT_EQ(model_->quantization(), "f32");
}

TEST_P(EmbeddingVectors, Dimensions) {
  const auto vector = model_->embed(batch(0, 1), GetParam().pooling);
  EXPECT_EQ(vector.shape(), (Shape{1, model_->dimensions()}));
  EXPECT_EQ(model_->dimensions(), std::ssize(golden_["vectors"][0]));
}

TEST(DenseModules, AreCountedWithTheModel) {
  const auto load = [](const char* name) {
    const fs::path path = folder(name) / "hf";
    const io::Checkpoint checkpoint = io::Checkpoint::open(path);
    const models::LoadOptions options{.device = &device_under_test()};
    return models::with_dense_modules(models::load_embedding_model(checkpoint, options),
                                      models::read_embedding_settings(checkpoint).dense, checkpoint,
                                      path, options);
  };
  const auto plain = load("bert"), dense = load("bert_dense");
  EXPECT_EQ(dense->parameters() - plain->parameters(), 32 * 40 + 40 + 40 * 24);
  EXPECT_GT(dense->weight_bytes(), plain->weight_bytes());
}

TEST_P(EmbeddingVectors, PlainWeights) {
  model_ = load({.pack_weights = false});
  expect_vector(model_->embed(batch(3, 1), GetParam().pooling).to_host<float>(), 3);
}

using RankerScores = EmbeddingGolden;

TEST_P(RankerScores, PairsTogetherAndAlone) {
  ASSERT_TRUE(model_->ranks());
  const auto wanted = golden_["scores"].get<std::vector<float>>();
  const auto all = model_->rank(batch(0, count())).to_host<float>();
  EXPECT_LE(max_difference(all, wanted), 0.1f * kLogitBound);
  for (size_t i = 0; i < count(); ++i) {
    const auto one = model_->rank(batch(i, 1)).to_host<float>();
    EXPECT_NEAR(one.at(0), wanted[i], 0.1f * kLogitBound);
  }
}

TEST_P(RankerScores, TheSecondTextHasItsSegment) {
  models::TextBatch pair = batch(0, 1);
  const auto with = model_->rank(pair).to_host<float>();
  pair.segments.assign(pair.segments.size(), 0);
  const auto without = model_->rank(pair).to_host<float>();
  const auto segments = golden_["segments"][0].get<std::vector<int32_t>>();
  if (std::ranges::count(segments, 1) == 0) {
    EXPECT_EQ(with, without);
  } else {
    EXPECT_GT(std::abs(with[0] - without[0]), 0.01f);
  }
}

std::string test_name(const testing::TestParamInfo<EmbeddingCase>& test) {
  return cat(test.param.name, std::string_view(test.param.file) == "hf" ? "" : "_gguf");
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddingVectors, testing::ValuesIn(kCases), test_name);
INSTANTIATE_TEST_SUITE_P(Models, RankerScores, testing::ValuesIn(kRankers), test_name);

class BadEmbeddingFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-embedding-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::copy(folder("bert") / "hf", folder_,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const char* name, const json& value) const {
    std::ofstream(folder_ / name) << value.dump();
  }
  void set(const char* key, const json& value) const {
    std::ifstream file(folder("bert") / "hf" / "config.json");
    json config = json::parse(file);
    config[key] = value;
    write("config.json", config);
  }
  void expect(Code code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] {
      const io::Checkpoint checkpoint = io::Checkpoint::open(folder_);
      const auto settings = models::read_embedding_settings(checkpoint);
      const models::LoadOptions options{.device = &device_under_test()};
      models::with_dense_modules(models::load_embedding_model(checkpoint, options), settings.dense,
                                 checkpoint, folder_, options);
    });
  }

  fs::path folder_;
};

TEST_F(BadEmbeddingFolder, ErrorsNameFileAndField) {
  set("position_embedding_type", "relative_key");
  expect(Code::unsupported, {"position_embedding_type is \"relative_key\""});
  set("hidden_act", "snake");
  expect(Code::unsupported, {"hidden_act is \"snake\"", "gelu"});
  set("is_decoder", true);
  expect(Code::unsupported, {"causal attention"});
  set("max_position_embeddings", 65);
  expect(Code::invalid_argument, {"embeddings.position_embeddings.weight", "(64, 32)", "(65, 32)"});
  set("hidden_act", "gelu");
  write("1_Pooling/config.json", {{"pooling_mode_max_tokens", true}});
  expect(Code::unsupported, {"1_Pooling/config.json", "pooling"});
  write("1_Pooling/config.json", {{"pooling_mode_mean_tokens", "yes"}});
  expect(Code::invalid_argument, {"1_Pooling/config.json", "pooling_mode_mean_tokens: is \"yes\""});
  write("modules.json", {{{"type", "sentence_transformers.models.LSTM"}, {"path", "2_LSTM"}}});
  expect(Code::unsupported, {"modules.json", "LSTM"});
  write("modules.json", {{{"type", "x.Pooling"}, {"path", "../away"}}});
  expect(Code::invalid_argument, {"../away/config.json"});
  write("modules.json", {{{"type", "x.Pooling"}, {"path", "9_Pooling"}}});
  expect(Code::not_found, {"9_Pooling/config.json", "missing"});
}

TEST_F(BadEmbeddingFolder, PromptsAreReadAndChecked) {
  const auto settings = [&] {
    return models::read_embedding_settings(io::Checkpoint::open(folder_));
  };
  const char* file = "config_sentence_transformers.json";
  EXPECT_TRUE(settings().prompts.empty());
  write(file, {{"prompts", {{"query", "find: "}, {"passage", nullptr}}},
               {"default_prompt_name", "query"}});
  const std::map<std::string, std::string> wanted{{"passage", ""}, {"query", "find: "}};
  EXPECT_EQ(settings().prompts, wanted);
  EXPECT_EQ(settings().default_prompt, "query");
  write(file, {{"prompts", {{"query", "find: "}}}, {"default_prompt_name", "title"}});
  expect(Code::invalid_argument, {file, "default_prompt_name is \"title\""});
  write(file, {{"prompts", {{"query", 7}}}});
  expect(Code::invalid_argument, {file, "query: is 7"});
  write(file, {{"prompts", "none"}});
  expect(Code::invalid_argument, {file, "prompts: is \"none\""});
  write(file, json::object());
  write("1_Pooling/config.json", {{"pooling_mode_mean_tokens", true}, {"include_prompt", false}});
  expect(Code::unsupported, {"1_Pooling/config.json", "include_prompt is false"});
}

TEST_F(BadEmbeddingFolder, LengthsAreWhole) {
  for (const char* length : {"256.5", "-1", "18446744073709551615"}) {
    write("sentence_bert_config.json", json::parse(cat(R"({"max_seq_length": )", length, "}")));
    expect(Code::invalid_argument, {cat("sentence_bert_config.json: max_seq_length: is ", length),
                                    "a whole number from 0 to 2147483647"});
  }
}

TEST_F(BadEmbeddingFolder, DenseModulesNameFileAndField) {
  write("1_Pooling/config.json", {{"pooling_mode_mean_tokens", true}});
  const json pooling = {{"type", "x.Pooling"}, {"path", "1_Pooling"}};
  const json dense = {{"type", "x.Dense"}, {"path", "2_Dense"}};
  write("modules.json", {dense, pooling});
  expect(Code::unsupported, {"modules.json", "2_Dense", "between Pooling and Normalize"});
  write("modules.json", {pooling, dense});
  expect(Code::not_found, {"2_Dense/config.json", "missing"});
  fs::create_directory(folder_ / "2_Dense");
  const auto config = [&](int64_t in, int64_t out, const char* activation) {
    write("2_Dense/config.json",
          {{"in_features", in}, {"out_features", out}, {"activation_function", activation}});
  };
  config(32, 0, "x.Tanh");
  expect(Code::invalid_argument, {"2_Dense/config.json", "out_features: is 0"});
  write("2_Dense/config.json", {{"in_features", 32.5}, {"out_features", 8}});
  expect(Code::invalid_argument, {"2_Dense/config.json: in_features: is 32.5", "1 to 65536"});
  config(32, 8, "x.GELU");
  expect(Code::unsupported, {"2_Dense/config.json", "\"x.GELU\"", "Tanh and Identity"});
  write("2_Dense/config.json",
        {{"in_features", 32}, {"out_features", 8}, {"module_input_name", "token_embeddings"}});
  expect(Code::unsupported, {"2_Dense/config.json", "module_input_name is \"token_embeddings\""});
  config(16, 8, "x.Tanh");
  expect(Code::invalid_argument, {"2_Dense", "in_features is 16", "32"});
  config(32, 8, "x.Tanh");
  expect(Code::not_found, {"2_Dense/model.safetensors"});
  fs::copy(folder("bert_dense") / "hf" / "2_Dense" / "model.safetensors", folder_ / "2_Dense");
  expect(Code::invalid_argument, {"linear.weight", "(40, 32)", "(8, 32)"});
}

TEST_F(BadEmbeddingFolder, WordsToRankByAreChecked) {
  const auto expect_words = [&](const char* name, Code code, const char* part) {
    const io::Checkpoint checkpoint = io::Checkpoint::open(folder(name) / "hf");
    const models::LoadOptions options{.device = &device_under_test()};
    expect_error(code, {part}, [&] {
      models::load_embedding_model(checkpoint, options, models::RankWords{.yes = 5, .no = 5000});
    });
  };
  expect_words("bert", Code::unsupported, "no words to rank by");
  expect_words("qwen3", Code::invalid_argument, "token 5000 is outside of the vocabulary of 317");
  write("modules.json", {{{"type", "x.LogitScore"}, {"path", "1_Pooling"}}});
  write("1_Pooling/config.json", {{"false_token_id", 7}});
  expect(Code::not_found, {"1_Pooling/config.json", "true_token_id"});
  // 4294967301 is 5 in 32 bits.
  for (const json& token : {json(4294967301), json(5.5), json(-1)}) {
    write("1_Pooling/config.json", {{"true_token_id", token}});
    expect(Code::invalid_argument,
           {"1_Pooling/config.json: true_token_id: is " + token.dump(), "0 to 2147483647"});
  }
}

TEST_F(BadEmbeddingFolder, NomicsOtherShapesAreNamed) {
  json config;
  const auto use = [&](const char* name) {
    const fs::path nomic = folder(name) / "hf";
    fs::copy(nomic, folder_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    std::ifstream file(nomic / "config.json");
    config = json::parse(file);
  };
  const auto expect_changed = [&](const char* key, const json& value, Code code = Code::unsupported,
                                  const char* named = "") {
    json changed = config;
    changed[key] = value;
    write("config.json", changed);
    expect(code, {std::string_view(named).empty() ? key : named});
  };
  use("nomic");
  expect_changed("mlp_fc1_bias", true);
  expect_changed("prenorm", true);
  expect_changed("rotary_emb_fraction", 0.5);
  expect_changed("rotary_emb_scale_base", 512);
  expect_changed("moe_every_n_layers", 2);
  expect_changed("activation_function", "relu");
  expect_changed("qkv_proj_bias", true, Code::not_found, "attn.Wqkv.bias");
  use("nomic_experts");
  expect_changed("moe_every_n_layers", 1);
  expect_changed("moe_normalize_expert_weights", true);
  expect_changed("expert_choice_router", true);
  expect_changed("num_shared_experts", 1);
  expect_changed("ffn_div", 2);
  expect_changed("activation_function", "swiglu", Code::unsupported, "mlp_fc1_bias");
  expect_changed("moe_top_k", 6, Code::invalid_argument);
  expect_changed("num_experts", 6, Code::invalid_argument, "(6, 32)");
}

TEST_F(BadEmbeddingFolder, ModernBertsSettingsAreNamed) {
  const fs::path modern = folder("modern_bert_ranker") / "hf";
  fs::copy(modern, folder_, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  std::ifstream file(modern / "config.json");
  const json config = json::parse(file);
  const auto expect_changed = [&](const char* key, const json& value, Code code) {
    json changed = config;
    changed[key] = value;
    write("config.json", changed);
    expect(code, {key});
  };
  expect_changed("classifier_pooling", "max", Code::unsupported);
  expect_changed("classifier_activation", "snake", Code::unsupported);
  expect_changed("hidden_activation", "snake", Code::unsupported);
  expect_changed("local_attention", -1, Code::invalid_argument);
  expect_changed("global_attn_every_n_layers", 0, Code::invalid_argument);
}

TEST_F(BadEmbeddingFolder, TextModelsAndEncodersAreToldApart) {
  expect_error(Code::unsupported, {"bert", "makes embeddings, not text"}, [&] {
    models::load_language_model(io::Checkpoint::open(folder_), {.device = &device_under_test()});
  });
  for (const char* file : {"hf", "model.gguf"}) {
    expect_error(Code::unsupported, {"embeddings, not text"}, [&] {
      models::load_language_model(io::Checkpoint::open(folder("gemma") / file),
                                  {.device = &device_under_test()});
    });
  }
  const fs::path llama = fs::path(test::data_folder()) / "models/language/data" / "llama" / "hf";
  EXPECT_FALSE(models::makes_embeddings(io::Checkpoint::open(llama)));
}

}  // namespace
}  // namespace rbee::test
