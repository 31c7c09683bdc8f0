#include "rbee/io/diffusers_folder.h"

#include <nlohmann/json.hpp>

#include "tests/units/io/scratch_folder.h"

namespace rbee::io {
namespace {

namespace fs = std::filesystem;
using test::expect_error;

constexpr const char* kIndex = R"({
  "_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.42.1",
  "unet": ["diffusers", "UNet2DConditionModel"],
  "text_encoder": ["transformers", "CLIPTextModel"],
  "safety_checker": [null, null], "requires_safety_checker": false})";

// A safetensors file of one f32 tensor (1).
std::string one_tensor(const std::string& name) {
  const std::string header =
      cat("{\"", name, R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})");
  return test::raw(uint64_t{header.size()}, header, 1.0f);
}

class DiffusersFolderTest : public test::ScratchFolder {
 protected:
  void part_file(const std::string& part, const std::string& name, const std::string& bytes) {
    fs::create_directories(path(part));
    write(part + "/" + name, bytes);
  }
  Checkpoint weights() { return open_part_weights(path("unet")); }
};

TEST_F(DiffusersFolderTest, PartsAreTheListsOfTheIndex) {
  write("model_index.json", kIndex);
  part_file("unet", "config.json", R"({"in_channels": 9})");
  ASSERT_TRUE(DiffusersFolder::is_one(folder()));
  const auto pipeline = DiffusersFolder::open(folder());
  EXPECT_EQ(pipeline.pipeline(), "StableDiffusionPipeline");
  ASSERT_EQ(pipeline.parts().size(), 2u);
  EXPECT_EQ(pipeline.require("text_encoder").class_name, "CLIPTextModel");
  EXPECT_EQ(pipeline.require("text_encoder").library, "transformers");
  EXPECT_EQ(pipeline.find("safety_checker"), nullptr);
  EXPECT_EQ(pipeline.config("unet").integer("in_channels"), 9);
  EXPECT_FALSE(pipeline.text_file("unet", "merges.txt").has_value());
  expect_error(Code::not_found, {"model_index.json", "has no vae", "text_encoder, unet"},
               [&] { pipeline.require("vae"); });
  expect_error(Code::not_found, {"text_encoder", "config.json", "no such file"},
               [&] { pipeline.config("text_encoder"); });
}

TEST_F(DiffusersFolderTest, MalformedIndexesNameTheField) {
  EXPECT_FALSE(DiffusersFolder::is_one(folder()));
  const auto open = [&] { DiffusersFolder::open(folder()); };
  expect_error(Code::not_found, {"model_index.json"}, open);
  write("model_index.json", "[1]");
  expect_error(Code::invalid_argument, {"does not hold an object"}, open);
  write("model_index.json", R"({"_class_name": "X"})");
  expect_error(Code::invalid_argument, {"names no part"}, open);
  write("model_index.json", R"({"unet": ["diffusers"]})");
  expect_error(Code::invalid_argument, {"unet", "a library and a class"}, open);
  write("model_index.json", R"({"../unet": ["diffusers", "X"]})");
  expect_error(Code::invalid_argument, {"../unet", "a library and a class"}, open);
  write("model_index.json", R"({"unet": ["diffusers", 3]})");
  expect_error(Code::invalid_argument, {"unet", "[\"diffusers\",3]", "a list of texts"}, open);
}

TEST_F(DiffusersFolderTest, FullPrecisionComesBeforeVariants) {
  part_file("unet", "diffusion_pytorch_model.fp16.safetensors", one_tensor("half"));
  EXPECT_NE(weights().find("half"), nullptr);
  part_file("unet", "diffusion_pytorch_model.safetensors", one_tensor("full"));
  EXPECT_NE(weights().find("full"), nullptr);
  // Each is read only once.
  EXPECT_EQ(weights().tensors().size(), 1u);
}

TEST_F(DiffusersFolderTest, ShardedWeightsAreReadByTheirIndex) {
  part_file("unet", "a.safetensors", one_tensor("first"));
  part_file("unet", "b.safetensors", one_tensor("second"));
  part_file("unet", "model.safetensors.index.fp16.json",
            R"({"weight_map": {"first": "a.safetensors", "second": "b.safetensors"}})");
  EXPECT_EQ(weights().tensors().size(), 2u);
  fs::remove(path("unet/b.safetensors"));
  expect_error(Code::not_found, {"model.safetensors.index.fp16.json", "b.safetensors"},
               [&] { weights(); });
}

TEST_F(DiffusersFolderTest, PicklesAreRefusedWithARemedy) {
  part_file("unet", "config.json", "{}");
  expect_error(Code::not_found, {"unet", "no weights"}, [&] { weights(); });
  part_file("unet", "diffusion_pytorch_model.bin", "PK");
  expect_error(Code::unsupported, {"diffusion_pytorch_model.bin", "pickled", "safetensors"},
               [&] { weights(); });
  expect_error(Code::unsupported, {"v1-5.ckpt", "pickled"}, [] { refuse_pickle("v1-5.ckpt"); });
  refuse_pickle("v1-5.safetensors");
}

TEST(JsonConfigTest, ReadsEachKindAndFallsBack) {
  const JsonConfig config(
      R"({"a": 8, "b": 8.0, "list": [1, 2, 3], "rate": 0.5, "on": true, "word": "x",
          "none": null, "inner": {"a": 9}})",
      "unet/config.json");
  EXPECT_EQ(config.integer("a"), 8);
  EXPECT_EQ(config.integer("b"), 8);
  EXPECT_EQ(config.integer_or("none", 7), 7);
  EXPECT_EQ(config.number_or("rate", 1), 0.5);
  EXPECT_TRUE(config.flag_or("on", false));
  EXPECT_EQ(config.text("word"), "x");
  EXPECT_EQ(config.integers("list"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(config.numbers("list"), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(config.integer_each("list", 3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(config.integer_each("a", 3), (std::vector<int64_t>{8, 8, 8}));
  EXPECT_EQ(config.integer_each("gone", 2, {}, 5), (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(config.section("inner").integer("a"), 9);
  EXPECT_FALSE(config.section("gone").has("a"));
  EXPECT_TRUE(config.is_list("list"));
  EXPECT_FALSE(config.is_list("none"));
}

TEST(JsonConfigTest, ErrorsNameFieldAndValue) {
  const JsonConfig config(R"({"a": 8.5, "big": 1e300, "list": [1, "x"], "word": 3,
                              "bigs": [1, -1e39]})",
                          "config.json");
  const auto wrong = [&](const std::vector<std::string>& parts, const auto& action) {
    expect_error(Code::invalid_argument, parts, action);
  };
  wrong({"config.json: a", "8.5", "1 to 16"}, [&] { config.integer("a", {1, 16}); });
  wrong({"config.json: big", "1e+300"}, [&] { config.integer("big"); });
  wrong({"config.json: big", "1e+300", "to 3.4028235e+38"}, [&] { config.number_or("big", 0); });
  wrong({"config.json: bigs", "-1e+39"}, [&] { config.numbers("bigs"); });
  wrong({"config.json: a", "8.5", "from 0 to 1"}, [&] { config.number_or("a", 0, kZeroToOne); });
  wrong({"config.json: word", "3", "from 4 to 5"}, [&] { config.number_or("word", 4, {4, 5}); });
  wrong({"config.json: list", "\"x\""}, [&] { config.integers("list"); });
  wrong({"config.json: list", "x"}, [&] { config.integer_each("list", 3); });
  wrong({"config.json: word", "3", "a text"}, [&] { config.text("word"); });
  wrong({"config.json: word", "an object"}, [&] { config.section("word"); });
  expect_error(Code::not_found, {"config.json: gone", "missing"}, [&] { config.integer("gone"); });
  wrong({"config.json: no JSON: line 2, column 7: expected a comma or }, found \"\"\""},
        [] { JsonConfig("{\"a\": NaN,\n\"b\":1 \"c\":2}", "config.json"); });
}

// No default stands in for it; a field that nobody reads may have it.
TEST(JsonConfigTest, ANumberThatJsonLacksIsNoNumber) {
  for (const std::string number : {"NaN", "Infinity", "-Infinity"}) {
    const JsonConfig config(cat("{\"lora_alpha\": ", number, ", \"r\": 4, \"s\": [", number, "]}"),
                            "config.json");
    const std::vector<std::string> said = {"config.json: lora_alpha", cat('"', number, '"')};
    expect_error(Code::invalid_argument, said, [&] { config.number_or("lora_alpha", 8); });
    expect_error(Code::invalid_argument, said, [&] { config.integer_or("lora_alpha", 8); });
    expect_error(Code::invalid_argument, {"config.json: s"}, [&] { config.numbers("s"); });
    EXPECT_EQ(config.integer("r"), 4);
  }
}

}  // namespace
}  // namespace rbee::io
