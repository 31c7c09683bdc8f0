// The engine for embeddings over tiny random models: it tokenises as Hugging Face does and gives
// transformers' vectors (tools/goldens/make_embedding_goldens.py), whatever requests wait beside.

#include "rbee/engine/embedding/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/undefined_tensor.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

fs::path folder(const std::string& name) {
  return fs::path(test::data_folder()) / "models/embedding/data" / name;
}

json golden(const std::string& name) {
  std::ifstream file(folder(name) / "golden.json");
  return json::parse(file);
}

EmbeddingSource source(const std::string& name, const char* file = "hf", int64_t context = 0) {
  return load_embedding_source(folder(name) / file,
                               {.device = &test::cpu_device(), .context = context});
}

std::unique_ptr<EmbeddingEngine> engine(const std::string& name, EmbeddingOptions options = {}) {
  return make_embedding_engine(source(name), options);
}

class Sink final : public EmbeddingSink {
 public:
  void on_embedded(EmbeddingResult result) noexcept override {
    promise_.set_value(std::move(result));
  }
  void on_failed(const Failed& failed) noexcept override {
    promise_.set_exception(std::make_exception_ptr(Error(failed.code, "test", failed.message)));
  }
  EmbeddingResult wait() { return promise_.get_future().get(); }

 private:
  std::promise<EmbeddingResult> promise_;
};

std::shared_ptr<Sink> submit(EmbeddingEngine& engine, EmbeddingRequest request) {
  auto sink = std::make_shared<Sink>();
  engine.submit(std::move(request), sink);
  return sink;
}

EmbeddingRequest texts_of(const json& golden) {
  EmbeddingRequest request;
  for (const auto& text : golden["texts"]) request.inputs.emplace_back(text.get<std::string>());
  return request;
}

void expect_goldens(const EmbeddingResult& result, const json& golden) {
  ASSERT_EQ(result.vectors.size(), golden["vectors"].size());
  for (size_t i = 0; i < result.vectors.size(); ++i) {
    EXPECT_THAT(result.vectors[i],
                Pointwise(FloatNear(1e-4f), golden["vectors"][i].get<std::vector<float>>()))
        << golden["texts"][i];
  }
}

struct Model {
  const char* name;
  const char* file;
};
class EveryModel : public testing::TestWithParam<Model> {};

TEST_P(EveryModel, TextsBecomeHuggingFacesTokensAndVectors) {
  const auto [name, file] = GetParam();
  const json wanted = golden(name);
  EmbeddingSource loaded = source(name, file);
  EmbeddingRequest request = texts_of(wanted);
  int64_t tokens = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const auto ids = loaded.encode(request.inputs[i], {}).ids;
    EXPECT_EQ(ids, wanted["ids"][i].get<std::vector<int32_t>>()) << wanted["texts"][i];
    tokens += std::ssize(ids);
  }
  const auto engine = make_embedding_engine(std::move(loaded), {});
  const EmbeddingResult result = submit(*engine, std::move(request))->wait();
  expect_goldens(result, wanted);
  EXPECT_EQ(result.tokens, tokens);
  EXPECT_EQ(engine->info().dimensions, std::ssize(wanted["vectors"][0]));
  EXPECT_FALSE(engine->info().ranks);
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryModel,
    testing::Values(Model{"bert", "hf"}, Model{"bert", "model.gguf"}, Model{"bert_cls", "hf"},
                    Model{"bert_dense", "hf"}, Model{"xlm_roberta", "hf"}, Model{"qwen3", "hf"},
                    Model{"qwen3", "model.gguf"}, Model{"gemma", "hf"},
                    Model{"gemma", "model.gguf"}, Model{"modern_bert", "hf"},
                    Model{"modern_bert", "model.gguf"}, Model{"nomic", "model.gguf"}),
    [](const auto& test) {
      return cat(test.param.name, std::string_view(test.param.file) == "hf" ? "" : "_gguf");
    });

TEST(EmbeddingModels, OnesThatComputeNaNFailTheirRequests) {
  std::string copy = (fs::temp_directory_path() / "rbee-embedding-XXXXXX").string();
  ASSERT_NE(::mkdtemp(copy.data()), nullptr);
  fs::copy(folder("bert") / "hf", copy, fs::copy_options::recursive);
  test::make_undefined(fs::path(copy) / "model.safetensors", "embeddings.LayerNorm.weight");
  const auto engine =
      make_embedding_engine(load_embedding_source(copy, {.device = &test::cpu_device()}), {});
  test::expect_error(Code::internal, {"not finite"},
                     [&] { submit(*engine, {.inputs = {"a text"}})->wait(); });
  fs::remove_all(copy);
}

TEST(EmbeddingPrompts, TheFoldersDefaultStandsBeforeTexts) {
  const json wanted = golden("nomic");
  const auto engine = rbee::engine::engine("nomic");
  EXPECT_THAT(engine->info().prompts, ElementsAre("search_document", "search_query"));
  for (const bool named : {false, true}) {
    EmbeddingRequest request = texts_of(wanted);
    request.inputs.resize(1);
    if (named) request.prompt_name = "search_document";
    const json& made = wanted["prompted"][named ? "search_document" : "search_query"];
    const EmbeddingResult result = submit(*engine, std::move(request))->wait();
    EXPECT_THAT(result.vectors[0],
                Pointwise(FloatNear(1e-4f), made["vector"].get<std::vector<float>>()));
  }
}

TEST(EmbeddingPrompts, StandBeforeTextsOfTheirKind) {
  const json wanted = golden("gemma");
  EmbeddingSource loaded = source("gemma");
  EXPECT_THAT(loaded.info.prompts, ElementsAre("document", "query"));
  const EmbeddingInput text = wanted["texts"][0].get<std::string>();
  for (const auto& [name, made] : wanted["prompted"].items()) {
    EXPECT_EQ(loaded.encode(loaded.prompted(text, name), {}).ids,
              made["ids"].get<std::vector<int32_t>>());
  }
  loaded.default_prompt = "document";
  const auto engine = make_embedding_engine(std::move(loaded), {});
  const auto expect_vector = [&](std::optional<std::string> asked, const char* taken) {
    const auto result =
        submit(*engine, {.inputs = {text}, .prompt_name = std::move(asked)})->wait();
    EXPECT_THAT(
        result.vectors[0],
        Pointwise(FloatNear(1e-4f), wanted["prompted"][taken]["vector"].get<std::vector<float>>()));
  };
  expect_vector("query", "query");
  expect_vector("document", "document");
  expect_vector(std::nullopt, "document");
  const auto submit_wrong = [&](EmbeddingInput input, const char* name) {
    submit(*engine, {.inputs = {std::move(input)}, .prompt_name = name});
  };
  test::expect_error(Code::invalid_argument, {"prompt_name", "\"title\"", "document, query"},
                     [&] { submit_wrong(text, "title"); });
  test::expect_error(Code::invalid_argument, {"prompt_name", "the input has tokens"},
                     [&] { submit_wrong(std::vector<int32_t>{5, 6}, "query"); });
  const auto without = rbee::engine::engine("bert");
  test::expect_error(Code::invalid_argument, {"prompt_name", "no prompts"},
                     [&] { submit(*without, {.inputs = {text}, .prompt_name = "query"}); });
}

class WordRanker : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-ranker-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
      fs::copy(folder("qwen3_ranker") / "hf" / name, folder_);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }
  EmbeddingSource load(std::string_view pooling) const {
    return load_embedding_source(folder_, {.device = &test::cpu_device()}, pooling);
  }

  fs::path folder_;
};

// A folder as Qwen publishes it has no setting for ranking.
TEST_F(WordRanker, RanksByItsYesAndNo) {
  const json wanted = golden("qwen3_ranker");
  EXPECT_FALSE(is_for_embeddings(folder_));
  const auto engine = make_embedding_engine(load("rank"), {});
  EXPECT_TRUE(engine->info().ranks);
  EXPECT_TRUE(engine->info().instructs);
  const TextPair pair{wanted["pairs"][0][0], wanted["pairs"][0][1]};
  const auto score =
      submit(*engine, {.inputs = {pair}, .probability = false})->wait().vectors.at(0).at(0);
  EXPECT_NEAR(score, wanted["scores"][0].get<float>(), 1e-3f);
}

TEST_F(WordRanker, TheUsualInstructionStandsWhereAPairHasNone) {
  const json wanted = golden("qwen3_ranker");
  for (const char* file : {"hf", "model.gguf"}) {
    const EmbeddingSource loaded = source("qwen3_ranker", file);
    const auto ids = loaded.encode(TextPair{wanted["pairs"][0][0], wanted["pairs"][0][1]}, {}).ids;
    EXPECT_EQ(ids, wanted["ids"][0].get<std::vector<int32_t>>()) << file;
  }
}

TEST_F(WordRanker, OfALongPairTheDocumentIsCut) {
  const EmbeddingSource loaded = load("rank");
  std::string text;
  for (int i = 0; i < 500; ++i) text += " dog";
  test::expect_error(Code::invalid_argument, {"the model takes 512"},
                     [&] { loaded.encode(TextPair{"how", text}, {}); });
  const auto whole = loaded.encode(TextPair{"how", "dog"}, {}).ids;
  const auto cut = loaded.encode(TextPair{"how", text}, {.tokens = 300}).ids;
  ASSERT_EQ(cut.size(), 300u);
  for (size_t i = 1; i <= 8; ++i) EXPECT_EQ(cut[300 - i], whole[whole.size() - i]);
  test::expect_error(Code::invalid_argument, {"truncate_prompt_tokens", "100 are kept"},
                     [&] { loaded.encode(TextPair{"how", text}, {.tokens = 100}); });
}

TEST_F(WordRanker, MarksOfChatsWithinADocumentAreText) {
  const EmbeddingSource loaded = load("rank");
  const auto count = [&](const std::string& document) {
    const auto ids = loaded.encode(TextPair{"how", document}, {}).ids;
    return std::ranges::count(ids, loaded.tokenizer->encode("<|im_end|>").at(0));
  };
  EXPECT_EQ(count("a<|im_end|>b {query}"), count("a"));
}

TEST_F(WordRanker, WhatHasNoWordsOrNoPromptIsNamed) {
  fs::copy(folder("qwen3") / "hf" / "tokenizer.json", folder_,
           fs::copy_options::overwrite_existing);
  test::expect_error(Code::unsupported, {"wants a token for \"yes\""}, [&] { load("rank"); });
  test::expect_error(Code::unsupported, {"wanted {query} and then {document}"}, [&] {
    const RerankPrompt wrong("{document} of {query}", *load("last").tokenizer);
  });
  const auto ranker = rbee::engine::engine("bert_ranker");
  test::expect_error(Code::invalid_argument, {"instruction", "reads none"},
                     [&] { submit(*ranker, {.inputs = {TextPair{"a", "b", "c"}}}); });
}

// Files that were converted before converters knew of such heads.
TEST_F(WordRanker, AFileThatSaysSoHasAHead) {
  std::ifstream file(folder("qwen3") / "model.gguf", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string_view key = "qwen3.pooling_type";
  const size_t at = bytes.find(key);
  ASSERT_NE(at, bytes.npos);
  constexpr char kRank = 4;
  bytes[at + key.size() + sizeof(uint32_t)] = kRank;  // after the value's type
  const fs::path path = folder_ / "model.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  test::expect_error(Code::not_found, {"has no cls.output.weight", "--pooling rank"},
                     [&] { load_embedding_source(path, {.device = &test::cpu_device()}); });
}

class EveryRanker : public testing::TestWithParam<Model> {};

TEST_P(EveryRanker, PairsBecomeHuggingFacesTokensAndScores) {
  const auto [name, file] = GetParam();
  const json wanted = golden(name);
  EmbeddingSource loaded = source(name, file);
  EmbeddingRequest request{.probability = false};
  for (size_t i = 0; i < wanted["pairs"].size(); ++i) {
    TextPair pair{wanted["pairs"][i][0], wanted["pairs"][i][1]};
    if (wanted.contains("instructions")) pair.instruction = wanted["instructions"][i];
    request.inputs.emplace_back(pair);
    const auto encoded = loaded.encode(request.inputs.back(), {});
    EXPECT_EQ(encoded.ids, wanted["ids"][i].get<std::vector<int32_t>>());
    if (std::string_view(name).starts_with("bert")) {
      EXPECT_EQ(encoded.segments, wanted["segments"][i].get<std::vector<int32_t>>());
    }
  }
  const auto engine = make_embedding_engine(std::move(loaded), {});
  const EmbeddingResult plain = submit(*engine, request)->wait();
  request.probability = true;
  const EmbeddingResult result = submit(*engine, request)->wait();
  for (size_t i = 0; i < plain.vectors.size(); ++i) {
    const float score = wanted["scores"][i].get<float>();
    EXPECT_THAT(plain.vectors[i], ElementsAre(FloatNear(score, 1e-4f)));
    EXPECT_THAT(result.vectors[i], ElementsAre(FloatNear(1 / (1 + std::exp(-score)), 1e-4f)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryRanker,
    testing::Values(Model{"bert_ranker", "hf"}, Model{"bert_ranker", "model.gguf"},
                    Model{"xlm_roberta_ranker", "hf"}, Model{"modern_bert_ranker", "hf"},
                    Model{"modern_bert_ranker", "model.gguf"}, Model{"qwen3_ranker", "hf"},
                    Model{"qwen3_ranker", "model.gguf"}, Model{"qwen3_classifier", "hf"},
                    Model{"qwen3_classifier", "model.gguf"}),
    [](const auto& test) {
      return cat(test.param.name, std::string_view(test.param.file) == "hf" ? "" : "_gguf");
    });

// Passes of a few tokens: requests share them and are split across them.
TEST(EmbeddingEngine, ManyRequestsShareItsPasses) {
  const json wanted = golden("bert");
  const auto engine = rbee::engine::engine("bert", {.pass_tokens = 40});
  std::vector<std::shared_ptr<Sink>> sinks;
  for (int i = 0; i < 40; ++i) sinks.push_back(submit(*engine, texts_of(wanted)));
  for (const auto& sink : sinks) expect_goldens(sink->wait(), wanted);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.requests_finished, 40u);
  EXPECT_EQ(stats.running + stats.waiting, 0);
}

TEST(EmbeddingEngine, TokensAreTakenAsTheyAre) {
  const json wanted = golden("bert");
  EmbeddingRequest request;
  for (const auto& ids : wanted["ids"])
    request.inputs.emplace_back(ids.get<std::vector<int32_t>>());
  expect_goldens(submit(*engine("bert"), std::move(request))->wait(), wanted);
}

TEST(EmbeddingEngine, FewerDimensionsHaveLengthOneAgain) {
  const auto engine = rbee::engine::engine("bert");
  const json wanted = golden("bert");
  EmbeddingRequest request = texts_of(wanted);
  request.dimensions = 8;
  const std::vector<float> vector = submit(*engine, request)->wait().vectors.at(0);
  auto leading = wanted["vectors"][0].get<std::vector<float>>();
  leading.resize(8);
  const float length =
      std::sqrt(std::inner_product(leading.begin(), leading.end(), leading.begin(), 0.0f));
  for (float& value : leading) value /= length;
  EXPECT_THAT(vector, Pointwise(FloatNear(1e-4f), leading));
  request.dimensions = 33;
  test::expect_error(Code::invalid_argument, {"dimensions", "33", "1 to 32"},
                     [&] { submit(*engine, request); });
}

TEST(EmbeddingEngine, LengthIsTheCheckpointsOrTheRequests) {
  const json wanted = golden("bert_cls");
  const auto engine = rbee::engine::engine("bert_cls");
  const auto length = [&](std::optional<bool> normalise) {
    EmbeddingRequest request = texts_of(wanted);
    request.normalise = normalise;
    const std::vector<float> v = submit(*engine, request)->wait().vectors.at(0);
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0f));
  };
  EXPECT_GT(std::abs(length({}) - 1), 0.1f);
  EXPECT_NEAR(length(true), 1, 1e-5f);
}

// Counts how often a text is encoded.
class CountingTokenizer final : public text::Tokenizer {
 public:
  CountingTokenizer(std::unique_ptr<Tokenizer> inner, std::string counted, int& times)
      : inner_(std::move(inner)), counted_(std::move(counted)), times_(times) {}
  std::vector<int32_t> encode(std::string_view text, text::EncodeOptions options) const override {
    if (text == counted_) ++times_;
    return inner_->encode(text, options);
  }
  std::string piece(int32_t id, bool special) const override { return inner_->piece(id, special); }
  int64_t vocab_size() const override { return inner_->vocab_size(); }
  std::optional<int32_t> find(std::string_view token) const override { return inner_->find(token); }
  bool is_special(int32_t id) const override { return inner_->is_special(id); }

 private:
  int leading_spaces_dropped() const override { return 0; }

  std::unique_ptr<Tokenizer> inner_;
  std::string counted_;
  int& times_;
};

TEST(EmbeddingEngine, AQueryIsReadOnceForAllItsDocuments) {
  EmbeddingSource counting = source("bert_ranker");
  int times = 0;
  counting.tokenizer =
      std::make_unique<CountingTokenizer>(std::move(counting.tokenizer), "how do magnets", times);
  const auto engine = make_embedding_engine(std::move(counting), {});
  const SharedText query("how do magnets"), other("why");
  const std::vector<TextPair> pairs = {{query, "magnets"}, {query, "dogs"}, {other, "dogs"}};
  EmbeddingRequest request;
  request.inputs.assign(pairs.begin(), pairs.end());
  const auto scores = submit(*engine, request)->wait().vectors;
  EXPECT_EQ(times, 1);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto alone = submit(*engine, {.inputs = {pairs[i]}})->wait().vectors.at(0).at(0);
    EXPECT_NEAR(scores.at(i).at(0), alone, 1e-6f) << i;
  }
}

TEST(EmbeddingEngine, LongTextsAreErrorsOrCut) {
  const EmbeddingSource loaded = source("bert", "hf", 10);
  const std::string text = "how do magnets work and why do they";
  test::expect_error(Code::invalid_argument, {"the model takes 10", "truncate_prompt_tokens"},
                     [&] { loaded.encode(text, {}); });
  const auto whole = loaded.tokenizer->encode(text);
  const auto cut = loaded.encode(text, {.tokens = -1}).ids;
  ASSERT_EQ(cut.size(), 10u);
  EXPECT_TRUE(std::equal(cut.begin(), cut.end() - 1, whole.begin()));
  EXPECT_EQ(cut.back(), whole.back());
  EXPECT_EQ(loaded.encode(text, {.tokens = 5}).ids.size(), 5u);
  // Of a pair, the document is cut.
  const auto pair = loaded.encode(TextPair{"how", text}, {.tokens = -1});
  ASSERT_EQ(pair.ids.size(), 10u);
  EXPECT_EQ(pair.ids.back(), whole.back());
  EXPECT_EQ(source("bert_cls").info.model.context_length, 40);
}

TEST(EmbeddingEngine, WrongInputsFailAlone) {
  const auto engine = rbee::engine::engine("bert");
  const auto failing = submit(*engine, {.inputs = {std::vector<int32_t>{2, 100000}}});
  const auto fine = submit(*engine, {.inputs = {std::string("magnets")}});
  test::expect_error(Code::invalid_argument, {"token 100000"}, [&] { failing->wait(); });
  EXPECT_EQ(fine->wait().vectors.size(), 1u);
  test::expect_error(Code::invalid_argument, {"makes embeddings", "ranks no documents"},
                     [&] { submit(*engine, {.inputs = {TextPair{"a", "b"}}}); });
  const auto ranker = rbee::engine::engine("bert_ranker");
  test::expect_error(Code::invalid_argument, {"makes no embeddings"},
                     [&] { submit(*ranker, {.inputs = {std::string("a")}}); });
}

EmbeddingRequest many_of(std::string client, size_t count) {
  EmbeddingRequest request{.client = std::move(client)};
  request.inputs.assign(count, std::string("how do magnets work"));
  return request;
}

TEST(EmbeddingEngine, ClientsTakeTurns) {
  const auto engine = rbee::engine::engine("bert", {.pass_tokens = 40});
  std::vector<std::shared_ptr<Sink>> crowd;
  for (int i = 0; i < 4; ++i) crowd.push_back(submit(*engine, many_of("many", 4000)));
  const std::vector<float> alone = submit(*engine, many_of("one", 1))->wait().vectors.at(0);
  EXPECT_EQ(engine->stats().requests_finished, 1u);
  submit(*engine, many_of("one", 20))->wait();
  EXPECT_EQ(engine->stats().requests_finished, 2u);
  for (const auto& sink : crowd) {
    const EmbeddingResult result = sink->wait();
    ASSERT_EQ(result.vectors.size(), 4000u);
    EXPECT_EQ(result.tokens % 4000, 0);
    EXPECT_THAT(result.vectors.back(), Pointwise(FloatNear(1e-4f), alone));
  }
}

TEST(EmbeddingEngine, AWrongInputBehindManyFailsItsRequestAlone) {
  const auto engine = rbee::engine::engine("bert", {.pass_tokens = 40});
  EmbeddingRequest wrong = many_of("a", 100);
  wrong.inputs.emplace_back(std::vector<int32_t>{100000});
  const auto failing = submit(*engine, wrong);
  const auto fine = submit(*engine, many_of("a", 200));
  test::expect_error(Code::invalid_argument, {"token 100000"}, [&] { failing->wait(); });
  EXPECT_EQ(fine->wait().vectors.size(), 200u);
  EXPECT_EQ(engine->stats().requests_failed, 1u);
}

TEST(EmbeddingEngine, StopFailsWhatWaitsAndRefusesMore) {
  const auto engine = rbee::engine::engine("bert", {.pass_tokens = 1});
  std::vector<std::shared_ptr<Sink>> sinks;
  for (int i = 0; i < 50; ++i) sinks.push_back(submit(*engine, texts_of(golden("bert"))));
  EXPECT_FALSE(engine->cancel("nobody's"));
  engine->stop();
  int cancelled = 0;
  for (const auto& sink : sinks) {
    try {
      sink->wait();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::cancelled);
      ++cancelled;
    }
  }
  EXPECT_EQ(static_cast<uint64_t>(50 - cancelled), engine->stats().requests_finished);
  test::expect_error(Code::unsupported, {"stopping"},
                     [&] { submit(*engine, {.inputs = {std::string("a")}}); });
}

TEST(EmbeddingEngine, FilesSayWhatTheyAreFor) {
  EXPECT_TRUE(is_for_embeddings(folder("qwen3") / "hf"));
  EXPECT_TRUE(is_for_embeddings(folder("qwen3") / "model.gguf"));
  EXPECT_FALSE(
      is_for_embeddings(fs::path(test::data_folder()) / "models/language/data/qwen3/model.gguf"));
}

}  // namespace
}  // namespace rbee::engine
