// Z-Image: its language model as text encoder, texts of several lengths in a batch, files in
// ComfyUI's layout and GGUF, and adapters.

#include <gtest/gtest.h>

#include <algorithm>

#include "rbee/io/gguf_writer.h"
#include "rbee/models/image/encoder_file.h"
#include "rbee/models/image/language_text.h"
#include "rbee/models/image/model_files.h"
#include "rbee/models/image/single_file.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"
#include "tests/models/image/original_layout.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::EncoderRole;
using models::ImageModel;

constexpr const char* kCase = "z_image";
constexpr int64_t kHidden = 40;

const Replacements kLlamaCpp = {{"embed_tokens.", "token_embd."},
                                {"input_layernorm", "attn_norm"},
                                {"post_attention_layernorm", "ffn_norm"},
                                {"self_attn.q_proj", "attn_q"},
                                {"self_attn.k_proj", "attn_k"},
                                {"self_attn.v_proj", "attn_v"},
                                {"self_attn.q_norm", "attn_q_norm"},
                                {"self_attn.k_norm", "attn_k_norm"},
                                {"self_attn.o_proj", "attn_output"},
                                {"mlp.gate_proj", "ffn_gate"},
                                {"mlp.up_proj", "ffn_up"},
                                {"mlp.down_proj", "ffn_down"}};

std::string llama_cpp_name(const std::string& name) {
  if (name == "norm.weight") return "output_norm.weight";
  return replaced(replaced(name, {{"layers.", "blk."}}), kLlamaCpp);
}

class ZImageTest : public testing::Test {
 protected:
  fs::path file(const char* name) const { return folder_.path() / name; }

  // ComfyUI's names and stacked layers.
  std::vector<MadeTensor> transformer(const std::string& prefix) const {
    std::vector<MadeTensor> out;
    for (MadeTensor tensor : made_part(file("transformer"))) {
      const size_t query = tensor.name.find("attention.to_q.");
      if (query != std::string::npos) {
        MadeTensor whole = {tensor.name.substr(0, query) + "attention.qkv.weight",
                            {3 * tensor.shape[0], tensor.shape[1]},
                            {}};
        for (const char* part : {"to_q", "to_k", "to_v"}) {
          const std::string name = tensor.name.substr(0, query) + "attention." + part + ".weight";
          const std::vector<float> values = made_weights(name, tensor.shape);
          whole.values.insert(whole.values.end(), values.begin(), values.end());
        }
        tensor = std::move(whole);
      } else if (tensor.name.find(".to_k.") != std::string::npos ||
                 tensor.name.find(".to_v.") != std::string::npos) {
        continue;
      }
      tensor.name = prefix + replaced(tensor.name, {{"all_x_embedder.2-1.", "x_embedder."},
                                                    {"all_final_layer.2-1.", "final_layer."},
                                                    {"attention.to_out.0.", "attention.out."},
                                                    {"attention.norm_q.", "attention.q_norm."},
                                                    {"attention.norm_k.", "attention.k_norm."}});
      out.push_back(std::move(tensor));
    }
    out.push_back({prefix + "norm_final.weight", Shape{96}, std::vector<float>(96, 1.0f)});
    return out;
  }

  std::vector<MadeTensor> language(const std::string& prefix) const {
    std::vector<MadeTensor> out = made_part(file("text_encoder"));
    for (MadeTensor& tensor : out) tensor.name = prefix + tensor.name;
    return out;
  }

  // As llama.cpp's converter writes it, in f16.
  void write_language_gguf(const fs::path& path) const {
    io::GgufWriter writer;
    writer.set_string("general.architecture", "qwen3");
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, uint32_t>>{{"block_count", 4},
                                                                 {"context_length", 600},
                                                                 {"embedding_length", kHidden},
                                                                 {"feed_forward_length", 56},
                                                                 {"attention.head_count", 4},
                                                                 {"attention.head_count_kv", 2},
                                                                 {"attention.key_length", 16},
                                                                 {"attention.value_length", 16}}) {
      writer.set_u32(cat("qwen3.", key), value);
    }
    writer.set_f32("qwen3.rope.freq_base", 1e6f);
    writer.set_f32("qwen3.attention.layer_norm_rms_epsilon", 1e-6f);
    const std::vector<std::string> words = {"a", "<|im_start|>", "<|im_end|>"};
    writer.set_string("tokenizer.ggml.model", "gpt2");
    writer.set_strings("tokenizer.ggml.tokens", words);
    const std::vector<MadeTensor> tensors = language("");
    for (const MadeTensor& tensor : tensors) {
      writer.add_tensor(llama_cpp_name(tensor.name), DType::f32, tensor.shape);
    }
    writer.begin(path);
    for (const MadeTensor& tensor : tensors) writer.write(std::as_bytes(std::span(tensor.values)));
    writer.finish();
  }

  models::ImageLoadOptions parts() const {
    return {.vae = file("vae"), .llm = file("text_encoder")};
  }

  void expect_same(const ImageModel& model, float tolerance = kImageTolerance) const {
    expect_text(model, golden_, tolerance);
    expect_denoiser(model, golden_, tolerance);
    expect_vae(*model.vae, golden_, tolerance);
  }

  ImageFolder folder_{kCase};
  ImageGolden golden_{kCase};
};

TEST_F(ZImageTest, FilesOfComfyUi) {
  write_safetensors(file("z_image_turbo.safetensors"), transformer("model.diffusion_model."));
  write_safetensors(file("qwen_3_4b.safetensors"), language("model."));
  models::ImageLoadOptions options = parts();
  const fs::path path = file("z_image_turbo.safetensors");
  expect_same(load_on_cpu(path, options));
  options.llm = file("qwen_3_4b.safetensors");
  const ImageModel model = load_on_cpu(path, options);
  expect_same(model);
  EXPECT_EQ(model.family, models::ImageFamily::z_image);
  EXPECT_EQ(model.scheduler.shift, 3);
  EXPECT_FALSE(model.scheduler.use_dynamic_shifting);
  EXPECT_EQ(model.scheduler.prediction_type, "flow_prediction");
  options.llm.clear();
  expect_error(Code::not_found, {"z_image_turbo", "text_encoder", "llm"},
               [&] { load_on_cpu(path, options); });
  options = parts();
  options.t5xxl = file("text_encoder");
  expect_error(Code::invalid_argument, {"t5xxl", "z_image"}, [&] { load_on_cpu(path, options); });
  options = parts();
  options.llm = path;
  expect_error(Code::unsupported, {"z_image_turbo", "llm"}, [&] { load_on_cpu(path, options); });
}

TEST_F(ZImageTest, OneFileWithAllParts) {
  std::vector<MadeTensor> all = transformer("model.diffusion_model.");
  for (MadeTensor& tensor : language("text_encoders.qwen3_4b.transformer.model.")) {
    all.push_back(std::move(tensor));
  }
  for (MadeTensor& tensor : made_part(file("vae"))) {
    tensor.name = "vae." + original_vae(tensor.name, 3);
    all.push_back(std::move(tensor));
  }
  write_safetensors(file("whole.safetensors"), all);
  models::ModelFiles files = models::read_single_file(file("whole.safetensors"));
  for (models::ModelPart& part : files.parts) {  // of the tiny VAE no tensor shows the groups
    if (part.name == "vae") {
      part.config = models::read_diffusers_folder(folder_.path()).require("vae").config;
    }
  }
  expect_same(load_image_model(std::move(files), {.device = &cpu_device()}));
}

// Under diffusers' names, too.
TEST_F(ZImageTest, GgufFiles) {
  write_gguf(file("comfy.gguf"), transformer(""));
  write_gguf(file("diffusers.gguf"), made_part(file("transformer")));
  write_language_gguf(file("qwen3.gguf"));
  models::ImageLoadOptions options = parts();
  options.llm = file("qwen3.gguf");
  for (const char* name : {"comfy.gguf", "diffusers.gguf"}) {
    const ImageModel model = load_on_cpu(file(name), options);
    expect_text(model, golden_);
    expect_denoiser(model, golden_, 0.15f);
    EXPECT_EQ(model.text.front().tokenizer.gguf, file("qwen3.gguf"));
  }
}

// Only the layers that are read are needed, and no output matrix.
TEST_F(ZImageTest, LaterLayersAreNotLoaded) {
  std::vector<MadeTensor> tensors = language("model.");
  std::erase_if(tensors, [](const MadeTensor& tensor) {
    return tensor.name.starts_with("model.layers.3.") &&
           tensor.name.find("q_proj") == std::string::npos;  // by which layers are counted
  });
  write_safetensors(file("cut.safetensors"), tensors);
  models::ImageLoadOptions options;
  options.llm = file("cut.safetensors");
  const ImageModel model = load_on_cpu(folder_.path(), options);
  expect_text(model, golden_);
  EXPECT_EQ(model.text.front().encoder->layers(), 3);
  EXPECT_EQ(model.text.front().encoder->width(), kHidden);
  EXPECT_EQ(model.text.front().encoder->max_tokens(), 512);
}

// States behind several layers stand side by side, whatever other prompts are in the batch.
TEST_F(ZImageTest, StatesBehindSeveralLayers) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(file("text_encoder"));
  const models::LoadOptions load{.device = &cpu_device(), .progress = {}};
  const models::LanguageTextEncoder both(checkpoint, load, {.behind = {1, 3}}),
      first(checkpoint, load, {.behind = {1}}), last(checkpoint, load, {.behind = {3}});
  const std::vector<int32_t> ids = golden_.ids();
  const auto half = static_cast<int64_t>(ids.size() / 2);
  const Tensor all = both({.ids = ids, .batch = 2}).hidden;
  EXPECT_EQ(all.shape(), (Shape{2, half, 2 * kHidden}));
  for (int64_t i = 0; i < 2; ++i) {
    const models::TextInput one{
        .ids = std::span(ids).subspan(static_cast<size_t>(i * half), static_cast<size_t>(half))};
    const Tensor row = all.slice(Axis{0}, i, 1);
    expect_close(contiguous(row.slice(Axis{2}, 0, kHidden)), first(one).hidden, kImageTolerance,
                 "first");
    expect_close(contiguous(row.slice(Axis{2}, kHidden, kHidden)), last(one).hidden,
                 kImageTolerance, "last");
  }
  for (const std::vector<int64_t>& behind : {std::vector<int64_t>{}, {0}, {5}, {3, 1}, {2, 2}}) {
    expect_error(Code::invalid_argument, {"layer"},
                 [&] { models::LanguageTextEncoder(checkpoint, load, {.behind = behind}); });
  }
  const std::vector<int32_t> outside = {448};
  expect_error(Code::invalid_argument, {"448", "vocabulary"},
               [&] { first({.ids = outside, .batch = 1}); });
  const std::vector<int32_t> many(513, 1);
  expect_error(Code::invalid_argument, {"513", "512"}, [&] { first({.ids = many, .batch = 1}); });
}

// Three texts, of which the second takes two multiples of the padding: what a prompt gives does not
// depend on its neighbours.
TEST_F(ZImageTest, TextsOfOneBatchHaveLengthsOfTheirOwn) {
  const ImageModel model = load_on_cpu(folder_.path());
  const std::vector<int64_t> lengths = {20, 40, 31};
  std::vector<Tensor> rows, alone;
  const Tensor x = golden_.tensor("unet.x").slice(Axis{0}, 0, 1);
  const auto step = [&](int64_t count) {
    return from_host<float>(std::vector<float>(static_cast<size_t>(count), 700), {count},
                            cpu_device());
  };
  for (const int64_t length : lengths) {
    const auto seed = static_cast<uint32_t>(length);
    const Tensor text =
        device_tensor(random_values(static_cast<size_t>(40 * kHidden), seed), {1, 40, kHidden});
    rows.push_back(text);
    const auto own =
        model.denoiser->prepare({.context = contiguous(text.slice(Axis{1}, 0, length))});
    alone.push_back((*model.denoiser)(x, step(1), *own));
  }
  const auto both = model.denoiser->prepare({.context = concat(rows, Axis{0}), .tokens = lengths});
  const Tensor found = (*model.denoiser)(concat({x, x, x}, Axis{0}), step(3), *both);
  expect_close(found, concat(alone, Axis{0}), kImageTolerance, "batch");
  expect_error(Code::invalid_argument, {"41 tokens of 40"},
               [&] { model.denoiser->prepare({.context = rows.front(), .tokens = {41}}); });
}

// ComfyUI's trainers name layers as diffusers does, kohya's stack them.
TEST_F(ZImageTest, AdaptersOfEveryName) {
  constexpr int64_t kWidth = 96, kRank = 2;
  const fs::path path = file("lora.safetensors");
  const auto run = [&](const std::vector<MadeTensor>& adapter) {
    models::ImageLoadOptions options;
    if (!adapter.empty()) {
      write_safetensors(path, adapter);
      options.loras = {{path, 0.5f}};
    }
    return denoised(load_on_cpu(folder_.path(), options), golden_);
  };
  const std::vector<float> up = made_weights("up", {3 * kWidth, kRank});
  const std::vector<float> down = made_weights("down", {kRank, kWidth});
  const auto split = [&](const std::string& prefix) {
    std::vector<MadeTensor> out;
    auto begin = up.begin();
    for (const char* part : {"to_q", "to_k", "to_v"}) {
      const std::string name = cat(prefix, "layers.1.attention.", part, ".lora_");
      out.push_back({name + "B.weight", {kWidth, kRank}, {begin, begin + kWidth * kRank}});
      out.push_back({name + "A.weight", {kRank, kWidth}, down});
      begin += kWidth * kRank;
    }
    return out;
  };
  const Tensor wanted = run(split("transformer."));
  const std::vector<float> plain = run({}).to_host<float>(), changed = wanted.to_host<float>();
  float change = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    change = std::max(change, std::abs(changed[i] - plain[i]));
  }
  EXPECT_GT(change, 0.01f);
  expect_close(run(split("diffusion_model.")), wanted, kImageTolerance, "ComfyUI");
  for (const std::string name :
       {"lora_unet_layers_1_attention_qkv.lora_", "diffusion_model.layers.1.attention.qkv.lora_"}) {
    expect_close(run({{name + "up.weight", {3 * kWidth, kRank}, up},
                      {name + "down.weight", {kRank, kWidth}, down}}),
                 wanted, kImageTolerance, name.c_str());
  }
}

TEST_F(ZImageTest, WhatIsNotImplementedIsRefused) {
  const auto refuse = [&](const char* from, const char* to, const char* field) {
    const ImageFolder folder(kCase);
    folder.edit("transformer/config.json", from, to);
    expect_error(Code::unsupported, {field}, [&] { load_on_cpu(folder.path()); });
  };
  refuse("\"siglip_feat_dim\": null", "\"siglip_feat_dim\": 8", "siglip_feat_dim");
  refuse("\"all_f_patch_size\": [\n  1", "\"all_f_patch_size\": [\n  2", "all_f_patch_size");
  const ImageFolder folder(kCase);
  folder.edit("transformer/config.json", "\"n_heads\": 3", "\"n_heads\": 4");
  expect_error(Code::invalid_argument, {"axes_dims", "32", "96"},
               [&] { load_on_cpu(folder.path()); });
}

}  // namespace
}  // namespace rbee::test
