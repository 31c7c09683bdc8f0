// Hugging Face folders: the files that belong to a model, and the model's name.

#include "rbee/io/checkpoint.h"
#include "rbee/io/json_parse.h"
#include "rbee/io/safetensors_writer.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

namespace fs = std::filesystem;

class HfFolderTest : public ScratchFolder {
 protected:
  void write_shard(std::string_view name, const std::vector<std::string>& tensors) const {
    SafetensorsWriter writer;
    for (const std::string& tensor : tensors) writer.add_tensor(tensor, DType::u8, Shape{1});
    writer.begin(path(name));
    for (size_t i = 0; i < tensors.size(); ++i) writer.write(std::as_bytes(std::span("x", 1)));
    writer.finish();
  }
  void write_index(std::string_view map) const {
    write("model.safetensors.index.json", cat("{\"metadata\":{},\"weight_map\":", map, "}"));
  }
  void expect_refused(Code code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] { Checkpoint::open(folder()); });
  }
};

TEST_F(HfFolderTest, EveryFileWithoutAnIndex) {
  write_shard("b.safetensors", {"one"});
  write_shard("a.safetensors", {"two", "three"});
  write("c.txt", "not weights");
  const Checkpoint checkpoint = Checkpoint::open(folder());
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "two");
  EXPECT_EQ(checkpoint.file_bytes(), static_cast<int64_t>(fs::file_size(path("a.safetensors")) +
                                                          fs::file_size(path("b.safetensors"))));
}

TEST_F(HfFolderTest, FilesOfTheIndex) {
  write_shard("1.safetensors", {"one"});
  write_shard("2.safetensors", {"two", "extra"});
  write_shard("old.safetensors", {"one"});
  write_index(R"({"one":"1.safetensors","two":"2.safetensors"})");
  const Checkpoint checkpoint = Checkpoint::open(folder());
  EXPECT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.require("one").file->path(), path("1.safetensors"));
}

TEST_F(HfFolderTest, IndexThatLies) {
  write_shard("1.safetensors", {"one"});
  write_index(R"({"one":"1.safetensors","two":"1.safetensors"})");
  expect_refused(Code::not_found, {"1.safetensors", "tensor two"});
  write_index(R"({"one":"1.safetensors","two":"2.safetensors"})");
  expect_refused(Code::not_found, {"index.json", "lists 2.safetensors"});
  write_shard("2.safetensors", {"one", "two"});
  expect_refused(Code::invalid_argument,
                 {"2.safetensors", "tensor one comes twice", "1.safetensors"});
  for (const char* name :
       {"\"../1.safetensors\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "7", "\"1\\u0000\""}) {
    write_index(cat("{\"one\":", name, "}"));
    expect_refused(Code::invalid_argument, {"places one in", "no file name"});
  }
  write_index("{}");
  expect_refused(Code::not_found, {"no .safetensors"});
  write_index("[]");
  expect_refused(Code::invalid_argument, {"no object weight_map"});
  write("model.safetensors.index.json", "{}");
  expect_refused(Code::invalid_argument, {"no object weight_map"});
  write("model.safetensors.index.json", "{\"weight_map\":");
  expect_refused(Code::invalid_argument, {"index.json"});
}

TEST_F(HfFolderTest, NothingToOpen) {
  expect_refused(Code::not_found, {"no .safetensors file"});
  write("model.gguf", "");
  expect_refused(Code::not_found, {"no .safetensors file", "model.gguf itself"});
  expect_error(Code::not_found, {"none"}, [&] { Checkpoint::open(path("none")); });
  const auto text = write("model.bin", "");
  expect_error(Code::invalid_argument, {".gguf", ".safetensors"}, [&] { Checkpoint::open(text); });
}

struct ArchitectureCase {
  const char* config;
  const char* architecture;
};

TEST_F(HfFolderTest, Architecture) {
  write_shard("m.safetensors", {"one"});
  const ArchitectureCase cases[] = {
      {R"({"model_type":"Qwen2"})", "qwen2"},
      {R"({"model_type":"llama","architectures":["MistralForCausalLM"]})", "llama"},
      {R"({"architectures":["LlamaForCausalLM"]})", "llama"},
      {R"({"architectures":["MistralForCausalLM","LlamaForCausalLM"]})", "mistral"},
      {R"({"architectures":["PhiForCausalLM"]})", "phi"},
      {R"({"architectures":["Qwen2ForCausalLM"]})", "qwen"},
      {R"({"architectures":["GemmaForCausalLM"]})", "gemma"},
      {R"({"architectures":["FalconForCausalLM"]})", "FalconForCausalLM"},
  };
  for (const ArchitectureCase& each : cases) {
    write("config.json", each.config);
    EXPECT_EQ(Checkpoint::open(folder()).architecture(), each.architecture) << each.config;
  }
}

TEST_F(HfFolderTest, ConfigWithoutArchitecture) {
  write_shard("m.safetensors", {"one"});
  const auto expect = [&](Code code, const std::vector<std::string>& parts) {
    expect_error(code, parts, [&] { Checkpoint::open(folder()).architecture(); });
  };
  expect(Code::not_found, {"config.json", "missing"});
  write("config.json", "{}");
  expect(Code::not_found, {"config.json", "model_type"});
  write("config.json", R"({"model_type":7,"architectures":[]})");
  expect(Code::not_found, {"config.json", "architectures"});
  write("config.json", "[1]");
  expect(Code::invalid_argument, {"config.json", "object"});
  write("config.json", std::string(1000, '['));
  expect(Code::invalid_argument, {"config.json"});
}

TEST_F(HfFolderTest, JsonLimits) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  expect_error(Code::invalid_argument, {"name", "deeper than 64"},
               [&] { parse_json(deep, "name"); });
  EXPECT_NO_THROW(parse_json(deep, "name", {.depth = 65}));
  expect_error(Code::invalid_argument, {"name", "130 bytes", "the 129 allowed"},
               [&] { parse_json(deep, "name", {.bytes = 129}); });
}

}  // namespace
}  // namespace rbee::io::test
