// Adapters with keys of every form change a model like the sums of their matrices.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_device.h"
#include "rbee/core/log.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

constexpr const char* kUnetFile = "unet/diffusion_pytorch_model.fp16.safetensors";
constexpr const char* kTextFile = "text_encoder/model.fp16.safetensors";

// The name of one layer in a file.
struct Form {
  const char* part;
  const char* tensor;  // in the folder, without ".weight"
  std::string up, down;
  std::string alpha{};
  bool pixel = false;  // matrices as convolutions of one pixel
};

Form kohya(const char* part, const char* tensor, const std::string& name, bool pixel = false) {
  return {part, tensor, name + ".lora_up.weight", name + ".lora_down.weight", name + ".alpha",
          pixel};
}

const Form kForms[] = {
    kohya("unet", "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q",
          "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q"),
    kohya("unet", "down_blocks.0.attentions.1.proj_in", "lora_unet_input_blocks_2_1_proj_in", true),
    kohya("unet", "up_blocks.1.attentions.2.transformer_blocks.0.attn2.to_out.0",
          "lora_unet_output_blocks_5_1_transformer_blocks_0_attn2_to_out_0"),
    kohya("unet", "mid_block.resnets.1.conv2", "lora_unet_middle_block_2_out_layers_3"),
    kohya("unet", "up_blocks.1.upsamplers.0.conv", "lora_unet_output_blocks_5_2_conv"),
    kohya("unet", "down_blocks.1.downsamplers.0.conv", "lora_unet_input_blocks_6_0_op"),
    kohya("unet", "down_blocks.0.resnets.0.conv1", "lora_unet_down_blocks_0_resnets_0_conv1"),
    kohya("unet", "time_embedding.linear_1", "lora_unet_time_embed_0"),
    {"unet", "mid_block.attentions.0.transformer_blocks.0.attn2.to_k",
     "unet.mid_block.attentions.0.transformer_blocks.0.attn2.to_k.lora_B.weight",
     "unet.mid_block.attentions.0.transformer_blocks.0.attn2.to_k.lora_A.weight"},
    {"unet", "mid_block.attentions.0.transformer_blocks.0.ff.net.0.proj",
     "unet.mid_block.attentions.0.transformer_blocks.0.ff.net.0.proj.lora.up.weight",
     "unet.mid_block.attentions.0.transformer_blocks.0.ff.net.0.proj.lora.down.weight"},
    {"unet", "up_blocks.2.attentions.0.transformer_blocks.0.attn1.to_out.0",
     "unet.up_blocks.2.attentions.0.transformer_blocks.0.attn1.processor.to_out_lora.up.weight",
     "unet.up_blocks.2.attentions.0.transformer_blocks.0.attn1.processor.to_out_lora.down.weight"},
    kohya("text_encoder", "encoder.layers.0.self_attn.q_proj",
          "lora_te_text_model_encoder_layers_0_self_attn_q_proj"),
    {"unet", "mid_block.attentions.0.transformer_blocks.0.attn1.to_v",
     "base_model.model.mid_block.attentions.0.transformer_blocks.0.attn1.to_v.lora_B.weight",
     "base_model.model.mid_block.attentions.0.transformer_blocks.0.attn1.to_v.lora_A.weight"},
    {"text_encoder", "encoder.layers.0.mlp.fc2",
     "base_model.model.text_model.encoder.layers.0.mlp.fc2.lora_B.weight",
     "base_model.model.text_model.encoder.layers.0.mlp.fc2.lora_A.weight"},
    {"text_encoder", "encoder.layers.1.mlp.fc1",
     "text_encoder.text_model.encoder.layers.1.mlp.fc1.lora_linear_layer.up.weight",
     "text_encoder.text_model.encoder.layers.1.mlp.fc1.lora_linear_layer.down.weight"},
    {"text_encoder", "encoder.layers.2.self_attn.v_proj",
     "text_encoder.text_model.encoder.layers.2.self_attn.v_proj.lora_B.weight",
     "text_encoder.text_model.encoder.layers.2.self_attn.v_proj.lora_A.weight"},
    // PEFT's form with an adapter's name, diffusers' before 0.15, and ComfyUI's.
    {"unet", "mid_block.attentions.0.transformer_blocks.0.attn1.to_q",
     "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_q.lora_B.my.style.weight",
     "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_q.lora_A.my.style.weight"},
    {"unet", "mid_block.attentions.0.transformer_blocks.0.attn1.to_k",
     "mid_block.attentions.0.transformer_blocks.0.attn1.processor.to_k_lora.up.weight",
     "mid_block.attentions.0.transformer_blocks.0.attn1.processor.to_k_lora.down.weight"},
    {"unet", "mid_block.attentions.0.transformer_blocks.0.attn2.to_q",
     "model.diffusion_model.middle_block.1.transformer_blocks.0.attn2.to_q.lora_B.default_0.weight",
     "model.diffusion_model.middle_block.1.transformer_blocks.0.attn2.to_q.lora_A.default_0."
     "weight"},
    kohya("unet", "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_k",
          "lora_unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_k"),
    kohya("text_encoder", "encoder.layers.1.self_attn.k_proj",
          "lora_te1.text_model.encoder.layers.1.self_attn.k_proj"),
    kohya("text_encoder", "encoder.layers.1.self_attn.v_proj",
          "lora_te.text_model.encoder.layers.1.self_attn.v_proj"),
    {"unet", "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_v",
     "base_model.model.unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_v.lora_B."
     "weight",
     "base_model.model.unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_v.lora_A."
     "weight"},
    {"text_encoder", "encoder.layers.2.mlp.fc1",
     "base_model.model.text_encoder.text_model.encoder.layers.2.mlp.fc1.lora_B.default.weight",
     "base_model.model.text_encoder.text_model.encoder.layers.2.mlp.fc1.lora_A.default.weight"},
    kohya("text_encoder", "encoder.layers.0.self_attn.k_proj",
          "text_encoders.clip_l.transformer.text_model.encoder.layers.0.self_attn.k_proj"),
    {"text_encoder", "encoder.layers.1.self_attn.q_proj",
     "clip_l.transformer.text_model.encoder.layers.1.self_attn.q_proj.lora_B.weight",
     "clip_l.transformer.text_model.encoder.layers.1.self_attn.q_proj.lora_A.weight"},
};

MadeTensor find(const std::vector<MadeTensor>& part, const std::string& layer) {
  const auto found = std::ranges::find(part, layer + ".weight", &MadeTensor::name);
  EXPECT_NE(found, part.end()) << layer;
  return *found;
}

constexpr int64_t kRank = 2;
constexpr float kAlpha = 3;

class LoraTest : public testing::Test {
 protected:
  std::vector<MadeTensor>& part(const std::string& name) { return name == "unet" ? unet_ : text_; }

  // Appends the matrices of `form` to `file` and adds their product to the model's tensor.
  void add(const Form& form, float strength, std::vector<MadeTensor>& file) {
    const auto at =
        std::ranges::find(part(form.part), std::string(form.tensor) + ".weight", &MadeTensor::name);
    ASSERT_NE(at, part(form.part).end()) << form.tensor;
    const int64_t out = at->shape[0], in = numel(at->shape) / out;
    Shape down_shape = at->shape, up_shape{out, kRank};
    down_shape[0] = kRank;
    if (form.pixel || at->shape.rank() == 4) up_shape = Shape{out, kRank, 1, 1};
    const MadeTensor up{form.up, up_shape, made_weights(form.up + "x", up_shape)};
    const MadeTensor down{form.down, down_shape, made_weights(form.down + "x", down_shape)};
    const float factor = strength * (form.alpha.empty() ? 1.0f : kAlpha / float{kRank});
    for (int64_t i = 0; i < out * in; ++i) {
      float sum = 0;
      for (int64_t r = 0; r < kRank; ++r) {
        sum += up.values[static_cast<size_t>(i / in * kRank + r)] *
               down.values[static_cast<size_t>(r * in + i % in)];
      }
      at->values[static_cast<size_t>(i)] += factor * sum;
    }
    file.push_back(up);
    file.push_back(down);
    if (!form.alpha.empty()) file.push_back({form.alpha, Shape{1}, {kAlpha}});
  }

  fs::path write(const std::string& name, const std::vector<MadeTensor>& tensors) {
    const fs::path path = folder_.path() / name;
    write_safetensors(path, tensors);
    return path;
  }

  struct Outputs {
    std::vector<float> hidden, denoised;
  };
  Outputs run(const models::ImageModel& model) {
    const std::vector<int32_t> ids = golden_.ids();
    const auto text = (*model.text[0].encoder)({.ids = ids, .batch = 2});
    const auto prompt = model.denoiser->prepare({.context = text.hidden});
    const Tensor out =
        (*model.denoiser)(golden_.tensor("unet.x"), golden_.tensor("unet.steps"), *prompt);
    return {text.hidden.to_host<float>(), out.to_host<float>()};
  }

  static float difference(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0;
    for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
  }

  ImageFolder folder_{"sd1"};
  ImageGolden golden_{"sd1"};
  std::vector<MadeTensor> unet_ = made_part(image_data("sd1") / "model" / "unet");
  std::vector<MadeTensor> text_ = made_part(image_data("sd1") / "model" / "text_encoder");
};

TEST_F(LoraTest, EveryFormOfKeysIsMerged) {
  const Outputs plain = run(load_on_cpu(folder_.path()));
  std::vector<MadeTensor> first, second;
  for (const Form& form : kForms) add(form, 0.5f, first);
  add(kForms[0], -0.7f, second);
  const models::LoraSource loras[] = {{write("a.safetensors", first), 0.5f},
                                      {write("b.safetensors", second), -0.7f}};
  const Outputs merged = run(load_on_cpu(folder_.path(), {.loras = {loras[0], loras[1]}}));
  write(kUnetFile, unet_);
  write(kTextFile, text_);
  const Outputs wanted = run(load_on_cpu(folder_.path()));
  EXPECT_LE(difference(merged.hidden, wanted.hidden), 2e-3f);
  EXPECT_LE(difference(merged.denoised, wanted.denoised), 2e-3f);
  EXPECT_GE(difference(merged.hidden, plain.hidden), 0.1f);
  EXPECT_GE(difference(merged.denoised, plain.denoised), 0.1f);
}

// Biases of convolutions and norms in LyCORIS' keys, and of the second matrix in PEFT's.
TEST_F(LoraTest, BiasesAndNormsAreChanged) {
  constexpr const char* kNorm = "mid_block.resnets.0.norm1";
  constexpr const char* kConv = "mid_block.resnets.1.conv2";
  constexpr float kStrength = 0.5f;
  std::vector<MadeTensor> file;
  const Form out = kohya("unet", "mid_block.attentions.0.transformer_blocks.0.attn1.to_out.0", "");
  const std::string peft = cat("unet.", out.tensor, ".lora_");
  add({out.part, out.tensor, peft + "B.weight", peft + "A.weight"}, kStrength, file);
  const auto change = [&](const std::string& key, const std::string& tensor) {
    const auto at = std::ranges::find(unet_, tensor, &MadeTensor::name);
    ASSERT_NE(at, unet_.end()) << tensor;
    file.push_back({key, at->shape, made_weights(key, at->shape)});
    for (float& value : file.back().values) value *= 8;
    for (size_t i = 0; i < at->values.size(); ++i) {
      at->values[i] += kStrength * file.back().values[i];
    }
  };
  change("lora_unet_mid_block_resnets_0_norm1.w_norm", cat(kNorm, ".weight"));
  change("lora_unet_mid_block_resnets_0_norm1.b_norm", cat(kNorm, ".bias"));
  change("lora_unet_middle_block_2_out_layers_3.diff_b", cat(kConv, ".bias"));
  change("lora_unet.mid_block.resnets.1.norm2.diff", "mid_block.resnets.1.norm2.weight");
  change(peft + "B.bias", cat(out.tensor, ".bias"));
  const auto with = [&](const std::vector<MadeTensor>& tensors) {
    return run(load_on_cpu(folder_.path(),
                           {.loras = {{write("biases.safetensors", tensors), kStrength}}}));
  };
  const Outputs merged = with(file);
  for (size_t i = 2; i < file.size(); ++i) {
    std::vector<MadeTensor> others = file;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_GE(difference(merged.denoised, with(others).denoised), 4e-3f) << file[i].name;
  }
  write(kUnetFile, unet_);
  const Outputs wanted = run(load_on_cpu(folder_.path()));
  EXPECT_LE(difference(merged.denoised, wanted.denoised), 2e-3f);
}

TEST_F(LoraTest, PartsOfAnAdapterAreNotLeftOut) {
  std::vector<MadeTensor> file;
  add(kForms[0], 1, file);
  const std::string layer = "lora_unet_mid_block_attentions_0_transformer_blocks_0_attn1_to_q";
  for (const std::string leaf :
       {".diff_b", ".oft_R.weight", ".oft_R.default.weight", ".set_weight", ".lora_up.weight"}) {
    std::vector<MadeTensor> more = file;
    more.push_back({layer + leaf, Shape{2, 2}, {1, 2, 3, 4}});
    const models::LoraSource lora{write("more.safetensors", more), 1};
    const std::string named = leaf == ".diff_b" ? "attn1.to_q.weight" : leaf;
    expect_error(Code::unsupported, {"more.safetensors", named.c_str()},
                 [&] { load_on_cpu(folder_.path(), {.loras = {lora}}); });
  }
}

// Row lengths equal to the plain adapter's change nothing; twice those lengths double the layer's
// weight.
TEST_F(LoraTest, DoraSetsTheLengthsOfRows) {
  std::vector<MadeTensor> file;
  add(kForms[0], 1, file);
  const MadeTensor& made = find(unet_, kForms[0].tensor);
  const int64_t rows = made.shape[0];
  const auto row = made.values.size() / static_cast<size_t>(rows);
  std::vector<float> lengths(static_cast<size_t>(rows));
  for (size_t i = 0; i < made.values.size(); ++i)
    lengths[i / row] += made.values[i] * made.values[i];
  for (float& length : lengths) length = std::sqrt(length);
  const auto layer = [](const std::string& name) { return name.substr(0, name.find(".lora_up")); };
  const auto with = [&](const std::string& leaf, const Shape& shape, float factor) {
    std::vector<MadeTensor> tensors = file;
    tensors.push_back({cat(layer(kForms[0].up), leaf), shape, lengths});
    for (float& length : tensors.back().values) length *= factor;
    return run(load_on_cpu(folder_.path(), {.loras = {{write("dora.safetensors", tensors), 1}}}));
  };
  const Outputs plain =
      run(load_on_cpu(folder_.path(), {.loras = {{write("lora.safetensors", file), 1}}}));
  EXPECT_LE(difference(with(".dora_scale", {rows, 1}, 1).denoised, plain.denoised), 2e-3f);
  const Outputs twice = with(".dora_scale", {rows, 1}, 2);
  EXPECT_GE(difference(twice.denoised, plain.denoised), 0.1f);
  EXPECT_EQ(with(".lora_magnitude_vector", {rows}, 2).denoised, twice.denoised);
  for (MadeTensor& tensor : unet_) {
    if (tensor.name != cat(kForms[0].tensor, ".weight")) continue;
    for (float& value : tensor.values) value *= 2;
  }
  write(kUnetFile, unet_);
  EXPECT_LE(difference(twice.denoised, run(load_on_cpu(folder_.path())).denoised), 2e-3f);
}

TEST_F(LoraTest, TextEncodersMayHaveAStrengthOfTheirOwn) {
  std::vector<MadeTensor> file;
  for (const Form& form : kForms) add(form, form.part == "unet"sv ? 0.5f : -0.25f, file);
  const models::LoraSource lora{write("a.safetensors", file), 0.5f, -0.25f};
  const Outputs merged = run(load_on_cpu(folder_.path(), {.loras = {lora}}));
  const Outputs equal = run(load_on_cpu(folder_.path(), {.loras = {{lora.path, 0.5f}}}));
  write(kUnetFile, unet_);
  write(kTextFile, text_);
  const Outputs wanted = run(load_on_cpu(folder_.path()));
  EXPECT_LE(difference(merged.hidden, wanted.hidden), 2e-3f);
  EXPECT_LE(difference(merged.denoised, wanted.denoised), 2e-3f);
  EXPECT_GE(difference(merged.hidden, equal.hidden), 0.1f);
}

// PEFT's rule: alpha / r or alpha / sqrt(r), with settings for single layers
// (peft/tuners/lora/layer.py, update_layer).
TEST_F(LoraTest, FoldersOfPeftTellTheirFactors) {
  std::vector<MadeTensor> file;
  std::vector<Form> forms;
  for (const Form& form : kForms) {
    if (form.up.starts_with("base_model.")) forms.push_back(form);
  }
  ASSERT_GE(forms.size(), 2u);
  add(forms[0], 0.5f * 6.0f / std::sqrt(2.0f), file);
  add(forms[1], 0.5f * 2.0f / std::sqrt(2.0f), file);
  fs::create_directory(folder_.path() / "peft");
  const fs::path path = write("peft/adapter_model.safetensors", file);
  const auto config = [&](const char* text) {
    std::ofstream(folder_.path() / "peft" / "adapter_config.json") << text;
  };
  config(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, "use_rslora": true,
             "alpha_pattern": {"fc2": 2}})");
  const Outputs merged = run(load_on_cpu(folder_.path(), {.loras = {{path, 0.5f}}}));
  config(R"({"r": 3, "lora_alpha": 6, "rank_pattern": {"to_v": 2}})");
  expect_error(Code::invalid_argument, {"adapter_config.json", "fc2 is 3"},
               [&] { load_on_cpu(folder_.path(), {.loras = {{path, 1}}}); });
  config(R"({"r": 2, "lora_bias": true})");
  expect_error(Code::unsupported, {"lora_bias"},
               [&] { load_on_cpu(folder_.path(), {.loras = {{path, 1}}}); });
  config(R"({"r": 2, "use_dora": true})");
  EXPECT_NO_THROW(load_on_cpu(folder_.path(), {.loras = {{path, 1}}}));
  write(kUnetFile, unet_);
  write(kTextFile, text_);
  const Outputs wanted = run(load_on_cpu(folder_.path()));
  EXPECT_LE(difference(merged.hidden, wanted.hidden), 2e-3f);
  EXPECT_LE(difference(merged.denoised, wanted.denoised), 2e-3f);
}

TEST_F(LoraTest, FilesOfSeveralAdaptersAreRefused) {
  std::vector<MadeTensor> file;
  for (const char* adapter : {"one", "two"}) {
    const std::string layer = "unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_v";
    add({"unet", "mid_block.attentions.0.transformer_blocks.0.attn1.to_v",
         cat(layer, ".lora_B.", adapter, ".weight"), cat(layer, ".lora_A.", adapter, ".weight")},
        1, file);
  }
  const fs::path path = write("two.safetensors", file);
  expect_error(Code::invalid_argument, {"two.safetensors", "several adapters"},
               [&] { load_on_cpu(folder_.path(), {.loras = {{path, 1}}}); });
}

// The same in a header by diffusers: a configuration for each part, with the part's name before
// each field (diffusers/loaders/lora_base.py, _pack_dict_with_prefix).
TEST_F(LoraTest, HeadersOfDiffusersTellTheirFactors) {
  std::vector<MadeTensor> file;
  for (const Form& form : kForms) {
    const bool own_alpha = !form.alpha.empty();
    if (form.part == "unet"sv && form.up.starts_with("unet.mid_block") &&
        form.up.ends_with(".lora_B.weight")) {
      add(form, 0.5f * 6.0f / 2, file);
    } else if (form.up.starts_with("text_encoder.") && form.up.ends_with(".lora_B.weight")) {
      add(form, 0.5f * 8.0f / std::sqrt(2.0f), file);
    } else if (own_alpha && form.part == "unet"sv) {
      add(form, 0.5f, file);
    }
  }
  const fs::path path = folder_.path() / "style.safetensors";
  const auto saved = [&](const std::string& said) {
    write_safetensors(path, file, DType::f16, {{"format", "pt"}, {"lora_adapter_metadata", said}});
  };
  saved(R"({"unet.peft_type": "LORA", "unet.r": 4, "unet.lora_alpha": 3, "unet.use_dora": false,
            "unet.rank_pattern": {"mid_block.attentions.0.transformer_blocks.0.attn2.to_k": 2},
            "unet.alpha_pattern": {"attn2.to_k": 6}, "unet.modules_to_save": null,
            "unet.target_modules": ["to_k"],
            "text_encoder.r": 2, "text_encoder.lora_alpha": 8, "text_encoder.use_rslora": true})");
  const Outputs merged = run(load_on_cpu(folder_.path(), {.loras = {{path, 0.5f}}}));
  saved(R"({"unet.r": 3, "unet.lora_alpha": 3})");
  expect_error(Code::invalid_argument, {"style.safetensors", "lora_adapter_metadata", "is 3"},
               [&] { load_on_cpu(folder_.path(), {.loras = {{path, 1}}}); });
  saved("[1]");
  expect_error(Code::invalid_argument, {"lora_adapter_metadata", "no JSON object"},
               [&] { load_on_cpu(folder_.path(), {.loras = {{path, 1}}}); });
  write(kUnetFile, unet_);
  write(kTextFile, text_);
  const Outputs wanted = run(load_on_cpu(folder_.path()));
  EXPECT_LE(difference(merged.hidden, wanted.hidden), 2e-3f);
  EXPECT_LE(difference(merged.denoised, wanted.denoised), 2e-3f);
}

// They are merged before the weights are rounded.
TEST_F(LoraTest, MergedIntoInt8) {
  std::vector<MadeTensor> file;
  for (const Form& form : kForms) add(form, 0.5f, file);
  const models::LoraSource lora{write("a.safetensors", file), 0.5f};
  const Outputs merged = run(load_on_cpu(folder_.path(), {.int8 = true, .loras = {lora}}));
  const Outputs plain = run(load_on_cpu(folder_.path(), {.int8 = true}));
  write(kUnetFile, unet_);
  write(kTextFile, text_);
  const Outputs wanted = run(load_on_cpu(folder_.path(), {.int8 = true}));
  EXPECT_LE(difference(merged.denoised, wanted.denoised), 2e-2f);
  EXPECT_GE(difference(merged.denoised, plain.denoised), 0.1f);
}

// Tests each form alone, so that a lost one cannot hide among others.
TEST_F(LoraTest, EachFormFindsItsLayer) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.up);
    std::vector<MadeTensor> file;
    add(form, 1, file);
    const models::LoraSource lora{write("one.safetensors", file), 1};
    EXPECT_NO_THROW(load_on_cpu(folder_.path(), {.loras = {lora}}));
    file.pop_back();
    if (!form.alpha.empty()) file.pop_back();
    const models::LoraSource half{write("half.safetensors", file), 1};
    expect_error(Code::unsupported, {"half.safetensors", "no whole change of a layer"},
                 [&] { load_on_cpu(folder_.path(), {.loras = {half}}); });
  }
}

TEST_F(LoraTest, WrongAdaptersAreNamed) {
  std::vector<MadeTensor> file;
  add(kForms[0], 1, file);
  file[0].shape = Shape{8, 4};
  const models::LoraSource wide{write("wide.safetensors", file), 1};
  expect_error(Code::invalid_argument, {"attn1.to_q.weight", "8, 4", "another model"},
               [&] { load_on_cpu(folder_.path(), {.loras = {wide}}); });
  const models::LoraSource endless{wide.path, INFINITY};
  expect_error(Code::invalid_argument, {"wide.safetensors", "strength is inf"},
               [&] { load_on_cpu(folder_.path(), {.loras = {endless}}); });
  const models::LoraSource gone{folder_.path() / "gone.safetensors", 1};
  expect_error(Code::not_found, {"gone.safetensors"},
               [&] { load_on_cpu(folder_.path(), {.loras = {gone}}); });
}

TEST_F(LoraTest, UnknownKeysAreCounted) {
  std::vector<MadeTensor> file;
  add(kForms[0], 1, file);
  file.push_back({"lora_unet_nowhere.lora_up.weight", Shape{2, 2}, {1, 2, 3, 4}});
  file.push_back({"lora_unet_nowhere.lora_down.weight", Shape{2, 2}, {1, 2, 3, 4}});
  file.push_back({"something.dora_scale", Shape{2}, {1, 2}});
  const models::LoraSource lora{write("some.safetensors", file), 1};
  std::string text;
  set_log_sink(
      [&](LogLevel, std::string_view, std::span<const LogField> fields) {
        for (const LogField& field : fields) text += cat(field.key, "=", field.value, " ");
      },
      LogLevel::warn);
  load_on_cpu(folder_.path(), {.loras = {lora}});
  set_log_sink({}, LogLevel::error);
  EXPECT_NE(text.find("layers used=1 unknown=2"), std::string::npos) << text;
}

size_t bytes_in_use() {
  return static_cast<cpu::CpuDevice&>(get_device({DeviceKind::cpu, 0})).allocator().stats().in_use;
}

TEST_F(LoraTest, OtherAdaptersTakeTheirPlaceWithoutASecondModel) {
  std::vector<MadeTensor> first, second;
  for (const Form& form : kForms) add(form, 1, first);
  const fs::path whole = write("whole.safetensors", first);
  add(kForms[0], 1, second);
  const fs::path unet_only = write("unet.safetensors", second);
  models::ImageModel model = load_on_cpu(folder_.path());
  const Outputs plain = run(model);
  models::ImageLoadOptions options;
  options.device = &get_device({DeviceKind::cpu, 0});
  const auto change = [&](std::vector<models::LoraSource> loras) {
    options.loras = std::move(loras);
    models::change_loras(model, folder_.path(), options);
  };
  // Reading a part starts with its size, which must not exceed the model's.
  const size_t before = bytes_in_use();
  size_t most = 0;
  options.progress = [&](int64_t, int64_t) { most = std::max(most, bytes_in_use()); };
  change({{whole, 0.5f}});
  EXPECT_LE(most, before + before / 10);
  EXPECT_EQ(model.adapted, (std::vector<std::string>{"text_encoder", "unet"}));
  const Outputs fresh = run(load_on_cpu(folder_.path(), {.loras = {{whole, 0.5f}}}));
  EXPECT_EQ(difference(run(model).denoised, fresh.denoised), 0);
  EXPECT_EQ(difference(run(model).hidden, fresh.hidden), 0);

  const models::Vae* vae = model.vae.get();
  change({{unet_only, 1}});
  EXPECT_EQ(difference(run(model).hidden, plain.hidden), 0);  // the text encoder's part is gone
  const models::TextEncoder* text = model.text[0].encoder.get();
  change({});
  EXPECT_EQ(difference(run(model).denoised, plain.denoised), 0);
  EXPECT_EQ(model.text[0].encoder.get(), text);  // no adapter, so it was kept
  EXPECT_EQ(model.vae.get(), vae);
  EXPECT_TRUE(model.adapted.empty());
}

TEST_F(LoraTest, AdaptersThatDoNotFitChangeNothing) {
  std::vector<MadeTensor> good, bad;
  add(kForms[0], 1, good);
  models::ImageModel model = load_on_cpu(folder_.path());
  models::ImageLoadOptions options;
  options.device = &get_device({DeviceKind::cpu, 0});
  options.loras = {{write("good.safetensors", good), 1}};
  models::change_loras(model, folder_.path(), options);
  const Outputs before = run(model);
  bad = good;
  bad[0].shape = Shape{bad[0].shape[0] / 2, bad[0].shape[1] * 2};
  options.loras = {{write("bad.safetensors", bad), 1}};
  expect_error(Code::invalid_argument, {"bad.safetensors", "another model"},
               [&] { models::change_loras(model, folder_.path(), options); });
  EXPECT_EQ(difference(run(model).denoised, before.denoised), 0);
  EXPECT_EQ(model.adapted, (std::vector<std::string>{"unet"}));
}

// kohya's scripts call T5 te3 in any model, older ones te2 in FLUX; diffusers uses the part's name.
TEST(T5LoraTest, GoesByEveryName) {
  struct Case {
    const char* model;
    size_t encoder;
    std::vector<std::string> prefixes;
  };
  const Case cases[] = {{"sd3", 2, {"lora_te3_"}}, {"flux", 1, {"lora_te3_", "lora_te2_"}}};
  for (const Case& each : cases) {
    const ImageFolder folder(each.model);
    const std::string part = cat("text_encoder_", each.encoder + 1);
    const auto run = [&](const models::ImageLoadOptions& options) {
      const std::vector<int32_t> ids{5, 9, 1, 0};
      const models::ImageModel model = load_on_cpu(folder.path(), options);
      return (*model.text.at(each.encoder).encoder)({.ids = ids, .batch = 1})
          .hidden.to_host<float>();
    };
    const auto adapted = [&](const std::string& up, const std::string& down,
                             const std::string& layer) {
      const Shape shape = find(made_part(image_data(each.model) / "model" / part), layer).shape;
      const Shape up_shape{shape[0], kRank}, down_shape{kRank, shape[1]};
      const fs::path path = folder.path() / "lora.safetensors";
      write_safetensors(path, {{up, up_shape, made_weights("up", up_shape)},
                               {down, down_shape, made_weights("down", down_shape)}});
      return run({.loras = {{path, 0.5f}}});
    };
    const std::vector<float> plain = run({});
    for (const char* layer : {"encoder.block.0.layer.0.SelfAttention.q",
                              "encoder.block.1.layer.1.DenseReluDense.wi_0"}) {
      const std::string in_diffusers = cat(part, ".", layer);
      const std::vector<float> wanted =
          adapted(in_diffusers + ".lora_B.weight", in_diffusers + ".lora_A.weight", layer);
      EXPECT_NE(wanted, plain) << in_diffusers;
      std::string joined = layer;
      std::ranges::replace(joined, '.', '_');
      for (const std::string& prefix : each.prefixes) {
        const std::string name = prefix + joined;
        EXPECT_EQ(adapted(name + ".lora_up.weight", name + ".lora_down.weight", layer), wanted)
            << name;
      }
    }
  }
}

// Transformers: one layer of the authors is several in diffusers, each with its rows of the result.
TEST(TransformerLoraTest, LayersThatAreFusedGetTheirRows) {
  const ImageFolder folder("flux");
  const ImageGolden golden("flux");
  constexpr int64_t kWidth = 64, kMlp = 4 * kWidth;
  const auto denoised = [&](const std::vector<MadeTensor>& file) {
    const fs::path path = folder.path() / "lora.safetensors";
    models::ImageLoadOptions options;
    if (!file.empty()) {
      write_safetensors(path, file);
      options.loras = {{path, 0.5f}};
    }
    const models::ImageModel model = load_on_cpu(folder.path(), options);
    const auto prompt = model.denoiser->prepare({.context = golden.tensor("text_encoder_2.skip0"),
                                                 .pooled = golden.tensor("text_encoder.pooled"),
                                                 .guidance = golden.tensor("unet.guidance")});
    return (*model.denoiser)(golden.tensor("unet.x"), golden.tensor("unet.steps"), *prompt)
        .to_host<float>();
  };
  const auto made = [](const std::string& name, int64_t rows, int64_t cols) {
    return MadeTensor{name, Shape{rows, cols}, made_weights(name, Shape{rows, cols})};
  };
  const auto part = [&](const MadeTensor& up, int64_t first, int64_t rows,
                        const std::string& name) {
    const auto begin = up.values.begin() + first * kRank;
    return MadeTensor{name, Shape{rows, kRank}, {begin, begin + rows * kRank}};
  };
  const MadeTensor down = made("lora_unet_single_blocks_1_linear1.lora_down.weight", kRank, kWidth);
  const MadeTensor up =
      made("lora_unet_single_blocks_1_linear1.lora_up.weight", 3 * kWidth + kMlp, kRank);
  std::vector<MadeTensor> split;
  int64_t first = 0;
  for (const auto& [layer, rows] : {std::pair{"attn.to_q", kWidth},
                                    {"attn.to_k", kWidth},
                                    {"attn.to_v", kWidth},
                                    {"proj_mlp", kMlp}}) {
    const std::string name = cat("transformer.single_transformer_blocks.1.", layer, ".lora_");
    split.push_back(part(up, first, rows, name + "B.weight"));
    split.push_back({name + "A.weight", down.shape, down.values});
    first += rows;
  }
  const std::vector<float> fused = denoised({up, down}), wanted = denoised(split);
  const std::vector<float> plain = denoised({});
  float difference = 0, change = 0;
  for (size_t i = 0; i < fused.size(); ++i) {
    difference = std::max(difference, std::abs(fused[i] - wanted[i]));
    change = std::max(change, std::abs(fused[i] - plain[i]));
  }
  EXPECT_LE(difference, 1e-4f);
  EXPECT_GE(change, 0.1f);
}

}  // namespace
}  // namespace rbee::test
