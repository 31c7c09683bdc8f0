// Reads vocabularies and sizes from GGUF files, in the forms that exist.
#include "rbee/engine/common/gguf_vocab.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>

#include "rbee/core/error.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/models/config_reader.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GgufVocabTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-gguf-vocab-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A file with three tokens and the keys that `add` sets.
  io::Checkpoint file(const std::function<void(io::GgufWriter&)>& add) {
    io::GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    writer.set_string("tokenizer.ggml.model", "llama");
    writer.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
    add(writer);
    writer.add_tensor("a", DType::f32, Shape{1});
    writer.begin(folder_ / "m.gguf");
    writer.write(std::vector<std::byte>(4));
    writer.finish();
    return io::Checkpoint::open(folder_ / "m.gguf");
  }
  text::GgufVocab vocab(const std::function<void(io::GgufWriter&)>& add) {
    const io::Checkpoint checkpoint = file(add);
    return gguf_vocab(checkpoint.metadata());
  }

  fs::path folder_;
};

TEST_F(GgufVocabTest, IdsThatNoTokenHasAreLeftOut) {
  const char* const names[] = {"bos",       "cls",     "eos",  "eot",     "eom",     "unknown",
                               "seperator", "padding", "mask", "fim_pad", "fim_rep", "fim_sep"};
  for (const char* name : names) {
    const std::string key = cat("tokenizer.ggml.", name, "_token_id");
    for (const auto& set : std::vector<std::function<void(io::GgufWriter&)>>{
             [&](io::GgufWriter& writer) { writer.set_u32(key, 3); },
             [&](io::GgufWriter& writer) { writer.set_u32(key, UINT32_MAX); },
             [&](io::GgufWriter& writer) { writer.set_u64(key, UINT64_MAX); },
             [&](io::GgufWriter& writer) { writer.set_u64(key, uint64_t{1} << 32); },
             [&](io::GgufWriter& writer) { writer.set_i32(key, -1); },
             [&](io::GgufWriter& writer) { writer.set_f32(key, 1); },
             [&](io::GgufWriter& writer) { writer.set_string(key, "b"); },
             [&](io::GgufWriter& writer) { writer.set_bool(key, true); },
             [&](io::GgufWriter& writer) { writer.set_ints(key, std::vector<int32_t>{}); }}) {
      const text::GgufVocab read = vocab(set);
      for (const auto& id :
           {read.bos, read.eos, read.eot, read.eom, read.unk, read.sep, read.pad}) {
        EXPECT_EQ(id, std::nullopt) << key;
      }
      EXPECT_THAT(read.more_ends, IsEmpty()) << key;
    }
  }
}

TEST_F(GgufVocabTest, OneIdOrAListOfAnyIntegers) {
  const text::GgufVocab read = vocab([](io::GgufWriter& writer) {
    writer.set_u64("tokenizer.ggml.bos_token_id", 1);
    writer.set_ints("tokenizer.ggml.eos_token_id", std::vector<int32_t>{2, -1, 0});
    writer.set_i32("tokenizer.ggml.fim_sep_token_id", 1);
  });
  EXPECT_EQ(read.bos, 1);
  EXPECT_EQ(read.eos, 2);
  EXPECT_THAT(read.more_ends, ElementsAre(2, 0, 1));
}

TEST_F(GgufVocabTest, ListsMayBeLongerThanTheTokens) {
  const text::GgufVocab read = vocab([](io::GgufWriter& writer) {
    writer.set_floats("tokenizer.ggml.scores", std::vector<float>{1, 2, 3, 4});
    writer.set_ints("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 3, 1, 1});
  });
  EXPECT_THAT(read.scores, ElementsAre(1, 2, 3));
  EXPECT_THAT(read.types, ElementsAre(1, 1, 3));
}

TEST_F(GgufVocabTest, AListOfEqualNumbersIsOneNumber) {
  const io::Checkpoint checkpoint = file([](io::GgufWriter& writer) {
    writer.set_ints("llama.attention.head_count", std::vector<int32_t>{8, 8, 8});
    writer.set_ints("llama.attention.head_count_kv", std::vector<int32_t>{8, 4});
    writer.set_ints("llama.block_count", std::vector<int32_t>{});
    writer.set_floats("llama.rope.freq_base", std::vector<float>{0.5, 0.5});
  });
  const models::ConfigReader reader(checkpoint);
  EXPECT_EQ(reader.integer({"attention.head_count", ""}), 8);
  EXPECT_EQ(reader.number({"rope.freq_base", ""}, {}), 0.5);
  const auto error = [&](std::string_view name) -> std::string {
    try {
      reader.integer({name, ""});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("attention.head_count_kv"),
              HasSubstr("llama.attention.head_count_kv is 8 for one layer and 4 for another"));
  EXPECT_THAT(error("block_count"), HasSubstr("llama.block_count is an empty list"));
}

}  // namespace
}  // namespace rbee::engine
