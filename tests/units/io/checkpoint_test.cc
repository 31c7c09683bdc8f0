// The functions of a checkpoint besides tensors and metadata.

#include <sys/stat.h>

#include <ctime>
#include <memory>
#include <type_traits>

#include "rbee/core/input_file.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/io/hf_folder.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ScratchFolder {
 protected:
  fs::path write_model(const std::vector<std::string>& tokens = {"a"}) const {
    GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    writer.set_strings("tokenizer.ggml.tokens", tokens);
    writer.add_tensor("a", DType::f32, Shape{2, 2});
    writer.add_tensor("b", DType::f16, Shape{4096});
    writer.begin(path("m.gguf"));
    writer.write(std::vector<std::byte>(16));
    writer.write(std::vector<std::byte>(8192));
    writer.finish();
    return path("m.gguf");
  }
};

TEST_F(CheckpointTest, FindAndRequire) {
  const Checkpoint checkpoint = Checkpoint::open(write_model());
  ASSERT_NE(checkpoint.find("a"), nullptr);
  EXPECT_EQ(checkpoint.find("a"), &checkpoint.require("a"));
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  expect_error(Code::not_found, {"m.gguf", "tensor c is missing"},
               [&] { checkpoint.require("c"); });
}

// A copy's index would refer to the names of the original.
static_assert(!std::is_copy_constructible_v<Checkpoint> && !std::is_copy_assignable_v<Checkpoint>);

TEST_F(CheckpointTest, Moves) {
  Checkpoint first = Checkpoint::open(write_model());
  const TensorEntry* entry = first.find("b");
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.find("b"), entry);
  EXPECT_EQ(second.metadata().get_string("general.architecture"), "llama");
}

TEST_F(CheckpointTest, TensorsKeepTheFileMapped) {
  TensorEntry entry;
  {
    const Checkpoint checkpoint = Checkpoint::open(write_model());
    entry = checkpoint.require("b");
  }
  fs::remove(path("m.gguf"));
  entry.file->will_need(entry.data);
  EXPECT_EQ(entry.data[8191], std::byte{0});
  entry.file->dont_need(entry.data);
  EXPECT_EQ(entry.data[0], std::byte{0});
}

TEST_F(CheckpointTest, TextFiles) {
  const Checkpoint checkpoint = Checkpoint::open(write_model());
  write("tokenizer.json", "{\"a\":1}");
  write("empty.json", "");
  EXPECT_EQ(checkpoint.text_file("tokenizer.json"), "{\"a\":1}");
  EXPECT_EQ(checkpoint.text_file("empty.json"), "");
  EXPECT_EQ(checkpoint.text_file("none.json"), std::nullopt);
  for (const char* name : {"", ".", "..", "../m.gguf", "/etc/passwd", "a//b", "a/../b", "a/"}) {
    expect_error(Code::invalid_argument, {"is not a file beside the weights"},
                 [&] { checkpoint.text_file(name); });
  }
  fs::create_directory(path("folder"));
  write("folder/b.json", "{}");
  EXPECT_EQ(checkpoint.text_file("folder/b.json"), "{}");
  EXPECT_EQ(checkpoint.text_file("none/b.json"), std::nullopt);
  fs::create_directory(path("folder.json"));
  expect_error(Code::io, {"folder.json"}, [&] { checkpoint.text_file("folder.json"); });
  fs::resize_file(write("large.json", "x"), uintmax_t{1} << 40);  // sparse
  expect_error(Code::invalid_argument, {"large.json", "1099511627776 bytes"},
               [&] { checkpoint.text_file("large.json"); });
}

TEST_F(CheckpointTest, PathsThatAreNoFiles) {
  fs::create_directory(path("x.gguf"));
  expect_error(Code::not_found, {"x.gguf"}, [&] { Checkpoint::open(path("x.gguf")); });
  expect_error(Code::io, {"/dev/null"}, [&] { MappedFile::open("/dev/null"); });
  expect_error(Code::not_found, {"none"}, [&] { MappedFile::open(path("none")); });
  EXPECT_TRUE(MappedFile::open(write("empty", ""))->bytes().empty());
}

// Opening a FIFO waits for a writer, unless it is non-blocking.
TEST_F(CheckpointTest, FifosAreRefusedAtOnce) {
  const auto make = [&](const char* name) { ASSERT_EQ(::mkfifo(path(name).c_str(), 0600), 0); };
  make("m.gguf");
  make("config.json");
  make("m.safetensors");
  expect_error(Code::io, {"m.gguf: a FIFO, not a file"}, [&] { Checkpoint::open(path("m.gguf")); });
  expect_error(Code::io, {"m.safetensors: a FIFO"}, [&] { Checkpoint::open(folder()); });
  expect_error(Code::io, {"config.json: a FIFO"},
               [&] { read_text(path("config.json"), kMaxTextFile); });
  write("model.safetensors.index.json", R"({"weight_map":{"a":"m.safetensors"}})");
  expect_error(Code::io, {"m.safetensors: a FIFO"}, [&] { Checkpoint::open(folder()); });
  fs::remove(path("model.safetensors.index.json"));
  make("model.safetensors.index.json");
  expect_error(Code::io, {"index.json: a FIFO"}, [&] { Checkpoint::open(folder()); });
}

TEST_F(CheckpointTest, HintsAboutNothing) {
  const auto file = MappedFile::open(write("f", "abc"));
  EXPECT_NO_THROW(file->will_need({}));
  EXPECT_NO_THROW(file->dont_need({}));
  file->dont_need(file->bytes());  // less than a page: kept
  EXPECT_EQ(file->bytes()[2], std::byte{'c'});
}

// A large vocabulary must not make opening slow. The test counts this process's CPU time; the bound
// leaves room for sanitizers, without which it takes milliseconds.
TEST_F(CheckpointTest, LargeVocabularyOpensFast) {
  std::vector<std::string> tokens;
  tokens.reserve(262144);
  for (int i = 0; i < 262144; ++i) tokens.push_back(cat("token ", i));
  const fs::path path = write_model(tokens);
  const std::clock_t start = std::clock();
  const Checkpoint checkpoint = Checkpoint::open(path);
  const auto views = checkpoint.metadata().require_strings("tokenizer.ggml.tokens");
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  ASSERT_EQ(views.size(), tokens.size());
  EXPECT_EQ(views.back(), tokens.back());
}

}  // namespace
}  // namespace rbee::io::test
