#include "rbee/hub/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "rbee/core/error.h"

namespace rbee::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr int64_t kGb = 1'000'000'000;

std::vector<RepoFile> listing(std::initializer_list<std::pair<const char*, int64_t>> files) {
  std::vector<RepoFile> out;
  for (const auto& [path, size] : files) out.push_back({.path = path, .size = size, .blob_id = {}});
  return out;
}

std::vector<std::string> paths(const Choice& choice) {
  std::vector<std::string> out;
  for (const RepoFile& file : choice.files) out.push_back(file.path);
  return out;
}

std::string error_of(const std::vector<RepoFile>& files, const WantedFiles& wanted) {
  try {
    (void)choose_files(files, wanted);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    return error.what();
  }
  return "no error";
}

const std::vector<RepoFile>& chat() {
  static const std::vector<RepoFile> files = listing({{"README.md", 1},
                                                      {"m-BF16.gguf", 16 * kGb},
                                                      {"m-Q2_K.gguf", 3 * kGb},
                                                      {"m-Q4_K_M.gguf", 5 * kGb},
                                                      {"m-Q8_0.gguf", 8 * kGb},
                                                      {"m-UD-Q6_K_XL.gguf", 7 * kGb},
                                                      {"imatrix.gguf", kGb},
                                                      {"mmproj-BF16.gguf", kGb},
                                                      {"mmproj-F16.gguf", kGb},
                                                      {"mmproj-F32.gguf", 2 * kGb}});
  return files;
}

TEST(Choose, QuantizationsAreReadFromNames) {
  EXPECT_EQ(quantization_of("a/Model-7B.Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(quantization_of("model-iq3_xxs.gguf"), "IQ3_XXS");
  EXPECT_EQ(quantization_of("m-UD-IQ2_M-00001-of-00003.gguf"), "UD-IQ2_M");
  EXPECT_EQ(quantization_of("model-fp16.gguf"), "F16");
  EXPECT_EQ(quantization_of("gpt-oss-20b-MXFP4.gguf"), "MXFP4");
  EXPECT_EQ(quantization_of("model-TQ1_0.gguf"), "TQ1_0");
  EXPECT_EQ(quantization_of("Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(quantization_of("model.gguf"), "");
}

TEST(Choose, TheBestQuantizationFitsAndHasLessThan16Bits) {
  EXPECT_EQ(choose_files(chat(), {.memory = 64 * kGb}).model, "m-Q8_0.gguf");
  EXPECT_EQ(choose_files(chat(), {.memory = 8 * kGb}).model, "m-UD-Q6_K_XL.gguf");
  EXPECT_EQ(choose_files(chat(), {.memory = 6 * kGb}).model, "m-Q4_K_M.gguf");
  const Choice tight = choose_files(chat(), {.memory = kGb});
  EXPECT_EQ(tight.model, "m-Q2_K.gguf");
  EXPECT_THAT(tight.why, HasSubstr("may not fit"));
  EXPECT_EQ(choose_files(chat(), {}).model, "m-Q4_K_M.gguf");  // memory unknown
}

TEST(Choose, AskedForOrThereComesFirst) {
  EXPECT_EQ(choose_files(chat(), {.quantization = "bf16"}).model, "m-BF16.gguf");
  EXPECT_EQ(choose_files(chat(), {.quantization = "Q6_K_XL"}).model, "m-UD-Q6_K_XL.gguf");
  EXPECT_THAT(error_of(chat(), {.quantization = "Q5_0"}),
              HasSubstr("it has Q2_K, Q4_K_M, UD-Q6_K_XL, Q8_0, BF16"));
  const WantedFiles there{.memory = 64 * kGb, .is_there = [](const RepoFile& file) {
                            return file.path == "m-Q2_K.gguf";
                          }};
  EXPECT_EQ(choose_files(chat(), there).model, "m-Q2_K.gguf");
}

TEST(Choose, OneVisionTowerComesAlong) {
  const Choice choice = choose_files(chat(), {.quantization = "Q2_K"});
  EXPECT_THAT(paths(choice), ElementsAre("m-Q2_K.gguf", "mmproj-F16.gguf"));
  EXPECT_EQ(choice.mmproj, "mmproj-F16.gguf");
  EXPECT_THAT(paths(choose_files(chat(), {.file = "mmproj-F32.gguf"})),
              ElementsAre("mmproj-F32.gguf"));
}

TEST(Choose, AllPartsOfASplitFile) {
  const auto files = listing({{"q/m-Q4_0-00002-of-00002.gguf", 2},
                              {"q/m-Q4_0-00001-of-00002.gguf", 2},
                              {"m-Q2_K-00001-of-00002.gguf", 1}});
  const Choice choice = choose_files(files, {.quantization = "Q4_0"});
  EXPECT_THAT(paths(choice),
              ElementsAre("q/m-Q4_0-00001-of-00002.gguf", "q/m-Q4_0-00002-of-00002.gguf"));
  EXPECT_EQ(choice.model, "q/m-Q4_0-00001-of-00002.gguf");
  EXPECT_THAT(error_of(files, {.quantization = "Q2_K"}),
              HasSubstr("one of 2 parts, and 1 are there"));
  const Choice named = choose_files(files, {.file = "q/m-Q4_0-00001-of-00002.gguf"});
  EXPECT_EQ(named.files.size(), 2U);
}

TEST(Choose, PartsWithoutAnExtension) {
  const auto files = listing({{"x-00001-of-00002", 1}, {"x-00002-of-00002", 1}});
  EXPECT_EQ(choose_files(files, {.file = "x-00001-of-00002"}).files.size(), 2U);
}

TEST(Choose, NamesWithoutAQuantization) {
  EXPECT_THAT(choose_files(listing({{"a.gguf", 1}}), {}).why, HasSubstr("the only GGUF file"));
  const auto several = listing({{"a.gguf", 1}, {"b.gguf", 2}, {"c.gguf", 1}});
  const Choice choice = choose_files(several, {});
  EXPECT_EQ(choice.model, "b.gguf");
  EXPECT_THAT(choice.why, HasSubstr("the largest of the GGUF files whose names tell no"));
  EXPECT_THAT(choose_files(listing({{"a.gguf", 1}, {"b-Q8_0.gguf", 2}}), {}).why,
              HasSubstr("the GGUF file whose name tells no quantization"));
}

// A hostile listing; quadratic work would take minutes for each.
TEST(Choose, LongListingsTakeNoLongTime) {
  std::vector<RepoFile> parts, names, folders{{.path = "model_index.json", .blob_id = {}}};
  for (int i = 1; i <= 50'000; ++i) {
    std::string number = std::to_string(100'000 + i).substr(1);
    parts.push_back({.path = "m-Q4_0-" + number + "-of-50000.gguf", .size = 1, .blob_id = {}});
    names.push_back({.path = "m-Q4_" + number + ".gguf", .size = 1, .blob_id = {}});
    folders.push_back({.path = "p" + number + "/config.json", .size = 1, .blob_id = {}});
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(choose_files(parts, {}).files.size(), 50'000U);
  EXPECT_EQ(choose_files(names, {}).files.size(), 1U);
  EXPECT_THROW((void)choose_files(folders, {}), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Choose, AFolderOfSafetensorsWithoutDuplicates) {
  const auto files = listing({{"config.json", 1},
                              {"tokenizer.json", 1},
                              {"tokenizer.model", 1},
                              {"chat_template.jinja", 1},
                              {"model.safetensors.index.json", 1},
                              {"model-00001-of-00002.safetensors", 5},
                              {"model-00002-of-00002.safetensors", 5},
                              {"consolidated.safetensors", 10},
                              {"pytorch_model.bin", 10},
                              {"onnx/model.onnx", 9},
                              {"original/model.safetensors", 9},
                              {"1_Pooling/config.json", 1},
                              {"README.md", 1}});
  const Choice choice = choose_files(files, {});
  EXPECT_THAT(paths(choice),
              UnorderedElementsAre("config.json", "tokenizer.json", "tokenizer.model",
                                   "chat_template.jinja", "model.safetensors.index.json",
                                   "model-00001-of-00002.safetensors",
                                   "model-00002-of-00002.safetensors", "1_Pooling/config.json"));
  EXPECT_EQ(choice.model, "");
  EXPECT_THAT(error_of(files, {.quantization = "Q8_0"}), HasSubstr("no GGUF files"));
}

TEST(Choose, OneVariantOfEachPartOfAFolderOfDiffusers) {
  const auto files = listing({{"model_index.json", 1},
                              {"generation_config.json", 1},
                              {"v1-5-pruned.safetensors", 9},
                              {"scheduler/scheduler_config.json", 1},
                              {"tokenizer/vocab.json", 1},
                              {"tokenizer/merges.txt", 1},
                              {"unet/config.json", 1},
                              {"unet/diffusion_pytorch_model.safetensors", 8},
                              {"unet/diffusion_pytorch_model.fp16.safetensors", 4},
                              {"unet/diffusion_pytorch_model.non_ema.safetensors", 8},
                              {"unet/diffusion_pytorch_model.bin", 8},
                              {"text_encoder/config.json", 1},
                              {"text_encoder/model.safetensors.index.fp16.json", 1},
                              {"text_encoder/model.fp16-00001-of-00002.safetensors", 2},
                              {"text_encoder/model.fp16-00002-of-00002.safetensors", 2},
                              {"text_encoder/model.safetensors.index.json", 1},
                              {"text_encoder/model-00001-of-00001.safetensors", 4},
                              {"vae/config.json", 1},
                              {"vae/diffusion_pytorch_model.safetensors", 3},
                              {"safety_checker/config.json", 1},
                              {"safety_checker/model.safetensors", 3}});
  EXPECT_THAT(paths(choose_files(files, {})),
              UnorderedElementsAre(
                  "model_index.json", "generation_config.json", "scheduler/scheduler_config.json",
                  "tokenizer/vocab.json", "tokenizer/merges.txt", "unet/config.json",
                  "unet/diffusion_pytorch_model.fp16.safetensors", "text_encoder/config.json",
                  "text_encoder/model.safetensors.index.fp16.json",
                  "text_encoder/model.fp16-00001-of-00002.safetensors",
                  "text_encoder/model.fp16-00002-of-00002.safetensors", "vae/config.json",
                  "vae/diffusion_pytorch_model.safetensors"));
}

TEST(Choose, AdaptersAndSingleFiles) {
  const auto adapter = listing({{"adapter_config.json", 1}, {"adapter_model.safetensors", 2}});
  EXPECT_EQ(choose_files(adapter, {}).model, "");
  EXPECT_EQ(choose_files(adapter, {}).files.size(), 2U);
  const auto lora = listing({{"style.safetensors", 2}, {"README.md", 1}});
  EXPECT_EQ(choose_files(lora, {}).model, "style.safetensors");
}

TEST(Choose, PicklesAreNoWeights) {
  EXPECT_THAT(error_of(listing({{"config.json", 1}, {"pytorch_model.bin", 2}}), {}),
              HasSubstr("only weights that Python pickled"));
  EXPECT_THAT(error_of(listing({{"README.md", 1}}), {}),
              HasSubstr("neither .gguf nor .safetensors"));
  EXPECT_THAT(error_of(listing({{"a.gguf", 1}}), {.file = "b.gguf"}),
              HasSubstr("no file 'b.gguf'"));
}

}  // namespace
}  // namespace rbee::hub
