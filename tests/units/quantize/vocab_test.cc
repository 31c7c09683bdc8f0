// The files beside a Hugging Face checkpoint's weights, read back from a GGUF file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "rbee/core/error.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/io/safetensors_writer.h"
#include "tests/support/data_folder.h"
#include "tests/units/quantize/scratch.h"
#include "tools/convert/vocab_keys.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class VocabTest : public Scratch {
 protected:
  void SetUp() override {
    Scratch::SetUp();
    io::SafetensorsWriter writer;
    writer.begin(path("model.safetensors"));
    writer.finish();
    write("config.json", R"({"model_type": "llama"})");
    fs::copy(fs::path(test::data_folder()) / "units" / "text" / "data" / "llama3.json",
             path("tokenizer.json"));
  }

  void write(const char* name, std::string_view text) const { std::ofstream(path(name)) << text; }

  io::Checkpoint folder() const { return io::Checkpoint::open(scratch()); }

  io::Checkpoint convert(int64_t rows) const {
    io::GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    EXPECT_FALSE(set_vocab_keys(folder(), rows, writer));
    writer.begin(path("m.gguf"));
    writer.finish();
    return io::Checkpoint::open(path("m.gguf"));
  }
};

constexpr int64_t kTokens = 1300;  // of llama3.json, in which the ids 0, 1 and 2 are special

TEST_F(VocabTest, TheTokenizerStaysTheSame) {
  write("tokenizer_config.json", R"({"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"})");
  const io::Checkpoint made = convert(kTokens);
  const auto before = engine::load_tokenizer(folder());
  const auto after = engine::load_tokenizer(made);
  const std::string text = "<|im_start|>user\nWhy is\tthe sky 1234 blue?<|im_end|>\n";
  EXPECT_EQ(after->encode(text), before->encode(text));
  EXPECT_EQ(after->vocab_size(), before->vocab_size());
  EXPECT_EQ(after->bos(), before->bos());
  EXPECT_EQ(after->eos(), before->eos());
  EXPECT_EQ(after->end_tokens(), before->end_tokens());
  EXPECT_EQ(made.metadata().get_bool("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(made.metadata().get_bool("tokenizer.ggml.add_eos_token"), false);
  EXPECT_EQ(made.metadata().require_string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(made.metadata().require_string("tokenizer.ggml.pre"), "llama-bpe");
  EXPECT_FALSE(made.metadata().contains("tokenizer.chat_template"));
}

TEST_F(VocabTest, RowsWithoutATokenAreFilled) {
  const io::Checkpoint made = convert(kTokens + 2);
  const auto tokens = made.metadata().require_strings("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), static_cast<size_t>(kTokens + 2));
  EXPECT_EQ(tokens.back(), "[PAD1301]");
  EXPECT_EQ(made.metadata().require_ints("tokenizer.ggml.token_type").back(), 5);
  EXPECT_THROW(convert(kTokens - 1), Error);
}

// Llama 3's generation_config.json lists more than the tokenizer knows.
TEST_F(VocabTest, EveryEndTokenOfTheConfigEndsATurn) {
  write("generation_config.json", R"({"eos_token_id": [40, 2, 41, 42]})");
  write("config.json", R"({"model_type": "llama", "eos_token_id": 40})");
  const auto tokenizer = engine::load_tokenizer(convert(kTokens));
  EXPECT_EQ(tokenizer->eos(), 40);
  // <|endoftext|> and <|im_end|> end a turn by their names; 41 and 42 fit in too.
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(0, 2, 40, 41, 42));
}

TEST_F(VocabTest, ChatTemplates) {
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "for tools"},
                              {"name": "default", "template": "from the config"}]})");
  const auto of = [](const io::Checkpoint& made) {
    return std::string(made.metadata().require_string("tokenizer.chat_template"));
  };
  EXPECT_EQ(of(convert(kTokens)), "from the config");
  EXPECT_EQ(convert(kTokens).metadata().require_string("tokenizer.chat_template.tool_use"),
            "for tools");
  write("chat_template.jinja", "from its own file");
  EXPECT_EQ(of(convert(kTokens)), "from its own file");
}

// Readers recognise Phi-3's special tokens by name, and drop white space after them.
TEST_F(VocabTest, Phi3IsKnownByItsName) {
  fs::path file = path("phi3.gguf");
  const auto write_named = [&](std::string_view name) {
    io::GgufWriter writer;
    writer.set_string("general.name", name);
    set_vocab_keys(folder(), kTokens, writer);
    writer.begin(file);
    writer.finish();
    return engine::load_tokenizer(io::Checkpoint::open(file))->encode("<|im_end|> \n a").size();
  };
  const size_t plain = write_named("Llama 3");
  EXPECT_LT(write_named("Phi-3 mini"), plain);
  EXPECT_LT(write_named("my-phi3"), plain);
}

TEST_F(VocabTest, NoTokenizer) {
  fs::remove(path("tokenizer.json"));
  try {
    convert(kTokens);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), HasSubstr("--no-vocabulary"));
  }
}

}  // namespace
}  // namespace rbee::tools
