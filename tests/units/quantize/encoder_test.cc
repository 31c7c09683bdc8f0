// Folders of encoders, and of an embedding decoder, as GGUF files: settings, names and values must
// equal gguf-py's in the goldens' files, and vectors transformers'
// (tools/goldens/make_embedding_goldens.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/io/safetensors_writer.h"
#include "rbee/models/embedding_model.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"
#include "tests/units/quantize/folder_conversion.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

fs::path data_folder(std::string_view name) {
  return fs::path(test::data_folder()) / "models/embedding/data" / name;
}

json read_json(const fs::path& path) {
  std::ifstream in(path);
  return json::parse(in);
}

class EncoderConvertTest : public FolderConversion {
 protected:
  // A copy of a case's folder with its config.json changed.
  fs::path folder(const char* name, const json& changes = json::object()) {
    const fs::path made = path(cat("hf", count_++));
    fs::copy(data_folder(name) / "hf", made, fs::copy_options::recursive);
    write_changed(made / "config.json", changes);
    return made;
  }

  static void write_changed(const fs::path& file, const json& changes) {
    json value = read_json(file);
    value.merge_patch(changes);
    std::ofstream(file) << value;
  }

  // A normaliser of published tokenizers of this kind, instead of the goldens' NFKC. stripped: as
  // in newer exports of SentencePiece models.
  static void use_charsmap(const fs::path& made, bool stripped = false) {
    const json unigram =
        read_json(fs::path(test::data_folder()) / "units" / "text" / "data" / "unigram.json");
    json map;
    for (const json& step : unigram["normalizer"]["normalizers"]) {
      if (step["type"] == "Precompiled") map = step;
    }
    ASSERT_FALSE(map.is_null());
    json tokenizer = read_json(made / "tokenizer.json");
    tokenizer["normalizer"] = map;
    if (stripped) {
      const json strip = {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}};
      const json squeeze = {
          {"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\xE2\x96\x81"}};
      tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", {map, strip, squeeze}}};
    } else {
      tokenizer["pre_tokenizer"] = {
          {"type", "Sequence"},
          {"pretokenizers", {{{"type", "WhitespaceSplit"}}, tokenizer["pre_tokenizer"]}}};
    }
    std::ofstream(made / "tokenizer.json") << tokenizer;
  }

  fs::path convert(const fs::path& from, const char* type, bool vocabulary = true) {
    return FolderConversion::convert(from, type, vocabulary);
  }
};

// Vectors of length 1, or scores, for a golden's texts.
std::vector<std::vector<float>> outputs(const fs::path& path, const json& golden) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const auto model = models::load_embedding_model(checkpoint, {.device = &test::cpu_device()});
  const models::Pooling pooling = models::read_embedding_settings(checkpoint).pooling;
  std::vector<std::vector<float>> out;
  for (size_t i = 0; i < golden["ids"].size(); ++i) {
    models::TextBatch batch{.ids = golden["ids"][i].get<std::vector<int32_t>>()};
    batch.lengths = {std::ssize(batch.ids)};
    batch.segments.assign(batch.ids.size(), 0);
    if (golden.contains("segments")) golden["segments"][i].get_to(batch.segments);
    if (model->ranks()) {
      out.push_back(model->rank(batch).to_host<float>());
      continue;
    }
    std::vector<float> vector = model->embed(batch, pooling).to_host<float>();
    double squares = 0;
    for (const float value : vector) squares += double{value} * double{value};
    for (float& value : vector) value /= static_cast<float>(std::sqrt(squares));
    out.push_back(std::move(vector));
  }
  return out;
}

struct EncoderCase {
  const char* name;
  const char* architecture;
  bool unigram = false;
};

constexpr EncoderCase kCases[] = {
    {"bert", "bert"},
    {"xlm_roberta", "bert", true},
    {"modern_bert", "modern-bert"},
    {"nomic", "nomic-bert"},
    {"nomic_experts_gguf", "nomic-bert-moe", true},
    {"bert_ranker", "bert"},
    {"xlm_roberta_ranker", "bert", true},
    {"modern_bert_ranker", "modern-bert"},
    {"qwen3", "qwen3"},  // an embedding decoder
};

class EncoderFamilyTest : public EncoderConvertTest,
                          public testing::WithParamInterface<EncoderCase> {
 protected:
  fs::path source() {
    const fs::path made = folder(GetParam().name);
    if (GetParam().unigram) use_charsmap(made);
    return made;
  }
  static json golden() { return read_json(data_folder(GetParam().name) / "golden.json"); }
};

TEST_P(EncoderFamilyTest, HasTheKeysAndTensorsOfGgufPy) {
  const io::Checkpoint made = io::Checkpoint::open(convert(source(), "f32"));
  const io::Checkpoint wanted = io::Checkpoint::open(data_folder(GetParam().name) / "model.gguf");
  EXPECT_EQ(made.architecture(), GetParam().architecture);
  for (const io::MetaEntry& entry : wanted.metadata().entries()) {
    // The converter turns the unknown token into a kind of its own, and trims spaces.
    if (entry.key == "general.name" || entry.key == "tokenizer.ggml.token_type" ||
        entry.key == "tokenizer.ggml.remove_extra_whitespaces") {
      continue;
    }
    const io::MetaEntry* own = made.metadata().find(entry.key);
    ASSERT_NE(own, nullptr) << entry.key;
    EXPECT_EQ(own->type, entry.type) << entry.key;
    EXPECT_TRUE(std::ranges::equal(own->value, entry.value)) << entry.key;
  }
  // Readers that build pairs themselves double RoBERTa's separator if this is set.
  const bool roberta = std::string_view(GetParam().name).starts_with("xlm_roberta");
  EXPECT_EQ(made.metadata().get_bool("tokenizer.ggml.add_sep_token").value_or(false), roberta);
  EXPECT_EQ(made.metadata().contains("tokenizer.ggml.seperator_token_id"),
            models::is_encoder(made.architecture()));
  EXPECT_EQ(made.tensors().size(), wanted.tensors().size());
  for (const io::TensorEntry& entry : wanted.tensors()) {
    const io::TensorEntry& own = made.require(entry.name);
    EXPECT_EQ(own.shape, entry.shape) << entry.name;
    EXPECT_EQ(io::read_floats(own), io::read_floats(entry)) << entry.name;
  }
}

TEST_P(EncoderFamilyTest, KeepsTheVectors) {
  const json golden = EncoderFamilyTest::golden();
  const auto made = outputs(convert(source(), "f32"), golden);
  for (size_t i = 0; i < made.size(); ++i) {
    const auto wanted = golden.contains("vectors")
                            ? golden["vectors"][i].get<std::vector<float>>()
                            : std::vector<float>{golden["scores"][i].get<float>()};
    EXPECT_LE(test::max_difference(made[i], wanted), 1e-4f) << "text " << i;
  }
}

TEST_P(EncoderFamilyTest, TokensStayTheSame) {
  const json golden = EncoderFamilyTest::golden();
  const fs::path from = source();
  const auto before = engine::load_tokenizer(io::Checkpoint::open(from));
  const auto after = engine::load_tokenizer(io::Checkpoint::open(convert(from, "f32")));
  for (const json& pair : golden.value("pairs", json::array())) {
    for (const auto& text : pair.get<std::vector<std::string>>()) {
      EXPECT_EQ(after->encode(text), before->encode(text)) << text;
    }
  }
  const json texts = golden.value("texts", json::array());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(after->encode(texts[i].get<std::string>()),
              golden["ids"][i].get<std::vector<int32_t>>())
        << texts[i];
  }
}

TEST_F(EncoderConvertTest, TextsThatAreStrippedHaveTheSameTokens) {
  const fs::path from = folder("xlm_roberta");
  use_charsmap(from, true);
  const auto before = engine::load_tokenizer(io::Checkpoint::open(from));
  const auto after = engine::load_tokenizer(io::Checkpoint::open(convert(from, "f32")));
  for (const char* text : {"two words", " lead", "   lead", "trail ", "trail   ", "in   side",
                           " a  b   c ", "a\tb\nc", "\xC2\xA0x\xE3\x80\x80y ", "x"}) {
    EXPECT_EQ(after->encode(text), before->encode(text)) << '"' << text << '"';
  }
}

struct Bounds {
  const char* type;
  double cosine;  // at least
  float score;    // apart at most
};

// Rows of 32 random weights lose more precision than a model's.
TEST_P(EncoderFamilyTest, BlockTypesGiveNearlyTheSameVectors) {
  const json golden = EncoderFamilyTest::golden();
  for (const Bounds& bounds : {Bounds{"q8_0", 0.995, 0.1f}, {"q4_k_m", 0.93, 0.6f}}) {
    SCOPED_TRACE(bounds.type);
    const fs::path to = convert(source(), bounds.type);
    EXPECT_TRUE(is_quantized(io::Checkpoint::open(to).require("blk.0.attn_output.weight").dtype));
    const auto made = outputs(to, golden);
    for (size_t i = 0; i < made.size(); ++i) {
      if (golden.contains("scores")) {
        EXPECT_NEAR(made[i].at(0), golden["scores"][i].get<float>(), bounds.score);
        continue;
      }
      const auto wanted = golden["vectors"][i].get<std::vector<float>>();
      double cosine = 0;
      for (size_t k = 0; k < wanted.size(); ++k) cosine += double{made[i][k]} * double{wanted[k]};
      EXPECT_GE(cosine, bounds.cosine) << "text " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EncoderFamilyTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Nomic's settings under transformers' own names.
TEST_F(EncoderConvertTest, NativeSettingsAreRead) {
  const json golden = read_json(data_folder("nomic_native") / "golden.json");
  const auto made = outputs(convert(folder("nomic_native"), "f32"), golden);
  for (size_t i = 0; i < made.size(); ++i) {
    const auto wanted = golden["vectors"][i].get<std::vector<float>>();
    EXPECT_LE(test::max_difference(made[i], wanted), 1e-4f);
  }
}

TEST_F(EncoderConvertTest, CaseIsKeptWhereTheTokenizerKeepsIt) {
  const fs::path from = folder("bert");
  write_changed(from / "tokenizer.json", {{"normalizer", {{"lowercase", false}}}});
  const auto before = engine::load_tokenizer(io::Checkpoint::open(from));
  const auto after = engine::load_tokenizer(io::Checkpoint::open(convert(from, "f32")));
  const std::string text = "The THE the \u00e9l\u00e8ves";
  EXPECT_EQ(after->encode(text), before->encode(text));
  const auto lower = engine::load_tokenizer(io::Checkpoint::open(data_folder("bert") / "hf"));
  EXPECT_NE(after->encode(text), lower->encode(text));
}

using enum Code;

TEST_F(EncoderConvertTest, RefusesWhatGgufCannotHold) {
  expect_refused(folder("bert_dense"), unsupported, "Dense modules");
  expect_refused(folder("gemma"), unsupported, "see both ways");
  expect_refused(folder("bert", {{"hidden_act", "gelu_new"}}), unsupported, "hidden_act");
  expect_refused(folder("bert", {{"num_hidden_layers", 3}}), not_found, "encoder.layer.2.");
  expect_refused(folder("bert", {{"vocab_size", 161}}), invalid_argument,
                 "the token table is (160, 32)");
  expect_refused(folder("modern_bert", {{"hidden_activation", "silu"}}), unsupported,
                 "hidden_activation");
  expect_refused(
      folder("modern_bert", {{"layer_types",
                              {"sliding_attention", "full_attention", "sliding_attention",
                               "full_attention", "full_attention"}}}),
      unsupported, "layer_types");
  expect_refused(folder("modern_bert_ranker", {{"classifier_pooling", "cls"}}), unsupported,
                 "classifier_pooling");
  expect_refused(folder("nomic", {{"activation_function", "geglu"}}), unsupported, "swiglu");
  expect_refused(folder("nomic_experts", json::object()), unsupported, "experts.bias is not zero");
  expect_refused(folder("nomic_experts_gguf", {{"activation_function", "gelu_new"}}), unsupported,
                 "not gelu");
}

TEST_F(EncoderConvertTest, RefusesVocabulariesThatGgufCannotHold) {
  const auto expect_changed = [&](const char* name, const json& changes, const char* part) {
    const fs::path from = folder(name);
    write_changed(from / "tokenizer.json", changes);
    expect_refused(from, unsupported, part, true);
  };
  expect_changed("bert", {{"normalizer", {{"clean_text", false}}}}, "clean_text false");
  expect_changed("bert", {{"normalizer", {{"type", "Lowercase"}}}}, "normalizer Lowercase");
  expect_changed("bert", {{"pre_tokenizer", {{"type", "Whitespace"}}}}, "BertPreTokenizer");
  expect_changed("bert", {{"post_processor", nullptr}}, "nothing before or behind");
  expect_changed("bert", {{"model", {{"continuing_subword_prefix", "@@"}}}}, "\"##\"");
  expect_changed("xlm_roberta", json::object(), "normalizer NFKC");
  expect_changed("xlm_roberta",
                 {{"normalizer", nullptr}, {"pre_tokenizer", {{"type", "WhitespaceSplit"}}}},
                 "pre-tokenizer WhitespaceSplit");
}

}  // namespace
}  // namespace rbee::tools
