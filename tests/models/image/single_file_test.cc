// A folder's tensors, written as one file with the names of the original repositories, give the
// same pictures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "rbee/models/image/encoder_file.h"
#include "rbee/models/image/model_files.h"
#include "rbee/models/image/single_file.h"
#include "rbee/models/image/tiny_autoencoder.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"
#include "tests/models/image/original_layout.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;

// Original names of a UNet's layers, written out block by block.
std::string original_unet(const std::string& name, int64_t levels, int64_t resnets,
                          const std::vector<bool>& attends) {
  static const Replacements kInner = {
      {"norm1", "in_layers.0"},  {"conv1", "in_layers.2"},  {"time_emb_proj", "emb_layers.1"},
      {"norm2", "out_layers.0"}, {"conv2", "out_layers.3"}, {"conv_shortcut", "skip_connection"}};
  Replacements blocks = {{"time_embedding.linear_1", "time_embed.0"},
                         {"time_embedding.linear_2", "time_embed.2"},
                         {"add_embedding.linear_1", "label_emb.0.0"},
                         {"add_embedding.linear_2", "label_emb.0.2"},
                         {"conv_norm_out", "out.0"},
                         {"conv_out", "out.2"},
                         {"conv_in", "input_blocks.0.0"},
                         {"mid_block.resnets.0", "middle_block.0"},
                         {"mid_block.attentions.0", "middle_block.1"},
                         {"mid_block.resnets.1", "middle_block.2"}};
  int64_t in = 1, out = 0;
  for (int64_t i = 0; i < levels; ++i) {
    const std::string down = cat("down_blocks.", i), up = cat("up_blocks.", i);
    for (int64_t j = 0; j < resnets; ++j, ++in) {
      blocks.emplace_back(cat(down, ".resnets.", j, "."), cat("input_blocks.", in, ".0."));
      blocks.emplace_back(cat(down, ".attentions.", j, "."), cat("input_blocks.", in, ".1."));
    }
    blocks.emplace_back(down + ".downsamplers.0.conv", cat("input_blocks.", in++, ".0.op"));
    for (int64_t j = 0; j <= resnets; ++j, ++out) {
      blocks.emplace_back(cat(up, ".resnets.", j, "."), cat("output_blocks.", out, ".0."));
      blocks.emplace_back(cat(up, ".attentions.", j, "."), cat("output_blocks.", out, ".1."));
    }
    const bool attention = attends[static_cast<size_t>(levels - 1 - i)];
    blocks.emplace_back(up + ".upsamplers.0",
                        cat("output_blocks.", out - 1, attention ? ".2" : ".1"));
  }
  const std::string moved = replaced(name, blocks);
  return name.find("resnets") != std::string::npos ? replaced(moved, kInner) : moved;
}

std::string original_clip(const std::string& name) {
  const std::string plain = replaced(name, {{"text_model.", ""}});
  return replaced(replaced(plain, {{"embeddings.token_embedding", "token_embedding"},
                                   {"embeddings.position_embedding.weight", "positional_embedding"},
                                   {"encoder.layers", "transformer.resblocks"},
                                   {"final_layer_norm", "ln_final"},
                                   {"text_projection.weight", "text_projection"}}),
                  {{"layer_norm1", "ln_1"},
                   {"layer_norm2", "ln_2"},
                   {"self_attn", "attn"},
                   {"mlp.fc1", "mlp.c_fc"},
                   {"mlp.fc2", "mlp.c_proj"}});
}

class SingleFileTest : public testing::Test {
 protected:
  void open(const std::string& name) {
    folder_ = std::make_unique<ImageFolder>(name);
    golden_ = std::make_unique<ImageGolden>(name);
  }

  void add(const std::string& prefix, const std::string& part, const auto& rename) {
    for (MadeTensor& tensor : made_part(folder_->path() / part)) {
      tensor.name = prefix + rename(tensor.name);
      tensors_.push_back(std::move(tensor));
    }
  }
  void add_unet(int64_t levels, int64_t resnets, const std::vector<bool>& attends) {
    add("model.diffusion_model.", "unet",
        [&](const std::string& name) { return original_unet(name, levels, resnets, attends); });
    add("first_stage_model.", "vae", [](const std::string& name) { return original_vae(name, 3); });
  }

  void add_sd1() {
    open("sd1");
    add_unet(3, 2, {true, true, false});
    add("cond_stage_model.transformer.text_model.", "text_encoder",
        [](const std::string& name) { return name; });
  }
  void add_sdxl() {
    open("sdxl");
    add_unet(2, 1, {false, true});
    add("conditioner.embedders.0.transformer.text_model.", "text_encoder",
        [](const std::string& name) { return name; });
    const std::string prefix = "conditioner.embedders.1.model.";
    add_open_clip(prefix, "text_encoder_2", 3);
    turn_projection(prefix + "text_projection");
  }

  MadeTensor take(const std::string& name) {
    const auto at = std::ranges::find(tensors_, name, &MadeTensor::name);
    EXPECT_NE(at, tensors_.end()) << name;
    MadeTensor tensor = *at;
    tensors_.erase(at);
    return tensor;
  }

  // Fuses q, k and v and transposes the projection, as in OpenCLIP.
  void add_open_clip(const std::string& prefix, const std::string& part, int64_t layers) {
    add(prefix, part, original_clip);
    for (int64_t i = 0; i < layers; ++i) {
      const std::string attention = cat(prefix, "transformer.resblocks.", i, ".attn.");
      for (const char* leaf : {"weight", "bias"}) {
        MadeTensor fused = take(attention + "q_proj." + leaf);
        for (const char* other : {"k_proj.", "v_proj."}) {
          const MadeTensor more = take(attention + other + leaf);
          fused.values.insert(fused.values.end(), more.values.begin(), more.values.end());
        }
        fused.name = attention + "in_proj_" + leaf;
        fused.shape[0] *= 3;
        tensors_.push_back(std::move(fused));
      }
    }
  }
  void turn_projection(const std::string& name) {
    MadeTensor tensor = take(name);
    MadeTensor turned{name, Shape{tensor.shape[1], tensor.shape[0]}, tensor.values};
    const auto rows = static_cast<size_t>(tensor.shape[0]);
    const auto cols = static_cast<size_t>(tensor.shape[1]);
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      turned.values[i % cols * rows + i / cols] = tensor.values[i];
    }
    tensors_.push_back(std::move(turned));
  }

  models::ImageModel load() {
    const fs::path file = folder_->path() / (gguf_ ? "whole.gguf" : "whole.safetensors");
    gguf_ ? write_gguf(file, tensors_) : write_safetensors(file, tensors_);
    return load(file);
  }
  // Takes the settings that no tensor shows from the folder.
  models::ImageModel load(const fs::path& file) {
    models::ModelFiles files = models::read_single_file(file);
    const models::ModelFiles wanted = models::read_diffusers_folder(folder_->path());
    family_ = files.family;
    EXPECT_EQ(files.parts.size(), wanted.parts.size());
    for (models::ModelPart& part : files.parts) {
      const models::ModelPart& other = wanted.require(part.name);
      EXPECT_EQ(part.class_name, other.class_name);
      if (part.name == "unet") expect_same_shape(part.config, other.config);
      part.config = other.config;
    }
    return load_image_model(std::move(files), {.device = &cpu_device()});
  }

  static void expect_same_shape(const io::JsonConfig& found, const io::JsonConfig& wanted) {
    EXPECT_EQ(found.integers("block_out_channels"), wanted.integers("block_out_channels"));
    for (const char* field : {"down_block_types", "up_block_types"}) {
      EXPECT_EQ(found.texts(field), wanted.texts(field));
    }
    for (const char* field :
         {"in_channels", "out_channels", "layers_per_block", "cross_attention_dim"}) {
      EXPECT_EQ(found.integer(field), wanted.integer(field)) << field;
    }
    EXPECT_EQ(found.integer_or("projection_class_embeddings_input_dim", 0),
              wanted.integer_or("projection_class_embeddings_input_dim", 0));
  }

  void expect_same(float tolerance = kImageTolerance) {
    const models::ImageModel model = load();
    expect_text(model, *golden_, tolerance);
    expect_denoiser(model, *golden_, tolerance);
    expect_vae(*model.vae, *golden_, tolerance);
  }

  std::unique_ptr<ImageFolder> folder_;
  std::unique_ptr<ImageGolden> golden_;
  std::vector<MadeTensor> tensors_;
  models::ImageFamily family_{};
  bool gguf_ = false;
};

TEST_F(SingleFileTest, StableDiffusion1) {
  add_sd1();
  tensors_.push_back({"alphas_cumprod", {4}, {1, 2, 3, 4}});
  expect_same();
  EXPECT_EQ(family_, models::ImageFamily::sd1);
}

TEST_F(SingleFileTest, StableDiffusion2DropsTheLastLayer) {
  open("sd2");
  add_unet(3, 1, {true, true, false});
  const std::string prefix = "cond_stage_model.model.";
  add_open_clip(prefix, "text_encoder", 2);
  // The file's own last layer, which the model does not use.
  const std::vector<MadeTensor> so_far = tensors_;
  for (MadeTensor tensor : so_far) {
    const size_t at = tensor.name.find("resblocks.1.");
    if (at == std::string::npos) continue;
    tensor.name.replace(at, 12, "resblocks.2.");
    for (float& value : tensor.values) value = 0.5f;
    tensors_.push_back(std::move(tensor));
  }
  expect_same();
  EXPECT_EQ(family_, models::ImageFamily::sd2);
}

// sgm puts one prefix before text encoders of every family (sd_turbo.safetensors).
TEST_F(SingleFileTest, StableDiffusion1And2UnderSgmsNames) {
  open("sd2");
  add_unet(3, 1, {true, true, false});
  add_open_clip("conditioner.embedders.0.model.", "text_encoder", 2);
  const std::vector<MadeTensor> so_far = tensors_;
  for (MadeTensor tensor : so_far) {
    const size_t at = tensor.name.find("resblocks.1.");
    if (at == std::string::npos) continue;
    tensor.name.replace(at, 12, "resblocks.2.");
    tensors_.push_back(std::move(tensor));
  }
  expect_same();
  EXPECT_EQ(family_, models::ImageFamily::sd2);
  for (const char* prefix :
       {"conditioner.embedders.0.transformer.text_model.", "cond_stage_model.transformer."}) {
    tensors_.clear();
    open("sd1");
    add_unet(3, 2, {true, true, false});
    add(prefix, "text_encoder", [](const std::string& name) { return name; });
    expect_same();
    EXPECT_EQ(family_, models::ImageFamily::sd1) << prefix;
  }
}

// InstructPix2Pix reads a second picture's latents.
TEST_F(SingleFileTest, DenoisersOfMoreInputsAreRefused) {
  add_sd1();
  MadeTensor first = take("model.diffusion_model.input_blocks.0.0.weight");
  const int64_t channels = first.shape[1];
  first.shape[1] *= 2;
  first.values.resize(2 * first.values.size());
  tensors_.push_back(first);
  const fs::path file = folder_->path() / "edits.safetensors";
  write_safetensors(file, tensors_);
  models::ModelFiles files = models::read_single_file(file);
  const models::ModelFiles wanted = models::read_diffusers_folder(folder_->path());
  for (models::ModelPart& part : files.parts) part.config = wanted.require(part.name).config;
  std::ifstream input(folder_->path() / "unet" / "config.json");
  const std::string text(std::istreambuf_iterator<char>(input), {});
  const auto field = [](int64_t count) { return cat("\"in_channels\": ", count); };
  const auto unet = std::ranges::find(files.parts, "unet", &models::ModelPart::name);
  unet->config =
      io::JsonConfig(replaced(text, {{field(channels), field(2 * channels)}}), "config.json");
  const auto model = load_image_model(std::move(files), {.device = &cpu_device()});
  expect_error(Code::unsupported, {cat("reads ", 2 * channels, " channels")},
               [&] { check_parts_fit(model); });
}

// If a file has no VAE, or only one of two text encoders, the others are given separately.
TEST_F(SingleFileTest, PartsGivenBesidesCompleteAFile) {
  add_sd1();
  std::erase_if(tensors_, [](const MadeTensor& t) { return t.name.starts_with("first_stage"); });
  const fs::path file = folder_->path() / "no_vae.safetensors";
  write_safetensors(file, tensors_);
  expect_error(Code::not_found, {"no_vae", "vae", "give a VAE besides"},
               [&] { models::load_image_model(file, {.device = &cpu_device()}); });
  const models::ModelFiles rest = models::read_single_file(file);
  EXPECT_EQ(rest.family, models::ImageFamily::sd1);
  EXPECT_NE(rest.find("text_encoder"), nullptr);
  EXPECT_EQ(rest.find("vae"), nullptr);

  tensors_.clear();
  add_sdxl();
  const std::string second = "conditioner.embedders.1.";
  std::erase_if(tensors_, [&](const MadeTensor& t) { return t.name.starts_with(second); });
  const fs::path half = folder_->path() / "half.gguf";
  write_comfy_gguf(half, tensors_, "sdxl");
  const models::ModelFiles files = models::read_single_file(half);
  EXPECT_EQ(files.family, models::ImageFamily::sdxl);
  EXPECT_NE(files.find("text_encoder"), nullptr);
  EXPECT_EQ(files.find("text_encoder_2"), nullptr);
}

TEST_F(SingleFileTest, StableDiffusionXl) {
  add_sdxl();
  expect_same();
  EXPECT_EQ(family_, models::ImageFamily::sdxl);
}

TEST_F(SingleFileTest, OneByteFloats) {
  for (const bool large : {false, true}) {
    for (const Fp8 kind : {Fp8::e4m3, Fp8::e5m2, Fp8::scaled, Fp8::described, Fp8::whole}) {
      SCOPED_TRACE(cat(large ? "sdxl " : "sd1 ", static_cast<int>(kind)));
      tensors_.clear();
      large ? add_sdxl() : add_sd1();
      round_vectors(tensors_);
      const fs::path narrow = folder_->path() / "fp8.safetensors";
      const fs::path wide = folder_->path() / "wide.safetensors";
      write_fp8(narrow, tensors_, kind);
      write_safetensors(wide, tensors_, DType::bf16);
      expect_alike(load(narrow), load(wide), *golden_);
    }
  }
}

// No tensor shows how many steps a model was made for.
TEST_F(SingleFileTest, ModelsOfFewStepsAreKnownByTheirNames) {
  open("sdxl");
  for (const char* part : {"unet", "vae"}) {
    add(cat(part, "."), part, [](const std::string& name) { return name; });
  }
  add("te.text_model.", "text_encoder", [](const std::string& name) { return name; });
  add("te.1.", "text_encoder_2", [](const std::string& name) { return name; });
  const auto scheduler = [&](const char* name) {
    const fs::path file = folder_->path() / name;
    write_safetensors(file, tensors_);
    const models::SchedulerSettings found = models::read_single_file(file).scheduler;
    return std::pair(found.class_name, found.timestep_spacing);
  };
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(scheduler("sd_xl_turbo_1.0_fp16.safetensors"),
            Pair("EulerAncestralDiscreteScheduler", "trailing"));
  EXPECT_EQ(scheduler("SDXL_Lightning_4step.safetensors"),
            Pair("EulerDiscreteScheduler", "trailing"));
  EXPECT_EQ(scheduler("sd_xl_base.safetensors"), Pair("EulerDiscreteScheduler", "leading"));
}

// stable-diffusion.cpp's converter puts a prefix before the names of a folder's files.
TEST_F(SingleFileTest, ConvertedDiffusersFolders) {
  const auto same = [](const std::string& name) { return name; };
  open("sd1");
  add("unet.", "unet", same);
  add("vae.", "vae", same);
  const std::vector<MadeTensor> without_text = tensors_;
  for (const char* prefix : {"te.text_model.", "te."}) {
    tensors_ = without_text;
    add(prefix, "text_encoder", same);
    expect_same();
    EXPECT_EQ(family_, models::ImageFamily::sd1) << prefix;
  }
  open("sdxl");
  tensors_.clear();
  add("unet.", "unet", same);
  add("vae.", "vae", same);
  add("te.text_model.", "text_encoder", same);
  add("te.1.", "text_encoder_2", same);
  expect_same();
  EXPECT_EQ(family_, models::ImageFamily::sdxl);
}

// The converter's names for models/tiny-emoji (tools/goldens/make_convert_golden.py).
TEST_F(SingleFileTest, NamesThatTheConverterWrites) {
  std::ifstream names(image_data("converted.txt"));
  std::string header = "{";
  int64_t end = 0;
  size_t count = 0;
  for (std::string line; std::getline(names, line); ++count) {
    std::istringstream words(line);
    std::string name, dims;
    words >> name;
    int64_t bytes = 2;
    for (int64_t dim = 0; words >> dim; bytes *= dim) dims += cat(dims.empty() ? "" : ",", dim);
    header += cat(count == 0 ? "" : ",", "\"", name, R"(":{"dtype":"F16","shape":[)", dims,
                  R"(],"data_offsets":[)", end, ",", end + bytes, "]}");
    end += bytes;
  }
  header += "}";
  const uint64_t length = header.size();
  const fs::path path = fs::path(testing::TempDir()) / "converted.safetensors";
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&length), sizeof length)
      << header;
  fs::resize_file(path, sizeof length + length + static_cast<uint64_t>(end));  // zeros
  const models::ModelFiles found = models::read_single_file(path);
  const models::ModelFiles wanted =
      models::read_diffusers_folder(image_data("../../../../models/tiny-emoji"));
  EXPECT_EQ(found.family, models::ImageFamily::sd1);
  size_t held = 0;
  for (const models::ModelPart& part : wanted.parts) {
    const models::ModelPart& other = found.require(part.name);
    EXPECT_EQ(other.weights.tensors().size(), part.weights.tensors().size()) << part.name;
    for (const io::TensorEntry& entry : part.weights.tensors()) {
      EXPECT_EQ(other.weights.require(entry.name).shape, entry.shape) << entry.name;
      ++held;
    }
  }
  EXPECT_EQ(held, count);
  expect_same_shape(found.require("unet").config, wanted.require("unet").config);
  EXPECT_EQ(found.require("vae").config.integers("block_out_channels"),
            wanted.require("vae").config.integers("block_out_channels"));
  fs::remove(path);
}

TEST_F(SingleFileTest, AConvertedStableDiffusion2IsKnownByItsEncodersWidth) {
  const auto same = [](const std::string& name) { return name; };
  open("sd1");
  add("unet.", "unet", same);
  add("vae.", "vae", same);
  add("te.text_model.", "text_encoder", same);
  const auto tokens = std::ranges::find(tensors_, "te.text_model.embeddings.token_embedding.weight",
                                        &MadeTensor::name);
  ASSERT_NE(tokens, tensors_.end());
  tokens->shape = {4, 1024};
  tokens->values.assign(4096, 0);
  const fs::path file = folder_->path() / "whole.safetensors";
  write_safetensors(file, tensors_);
  const models::ModelFiles files = models::read_single_file(file);
  EXPECT_EQ(files.family, models::ImageFamily::sd2);
  const models::ModelPart& text = files.require("text_encoder");
  EXPECT_EQ(text.config.text_or("hidden_act", ""), "gelu");
  EXPECT_THAT(text.tokenizer.tokenizer_config_json, testing::HasSubstr("\"!\""));
}

TEST_F(SingleFileTest, OpenClipInAFileOfItsOwn) {
  open("sdxl");
  add_open_clip("", "text_encoder_2", 3);
  turn_projection("text_projection");
  tensors_.push_back({"visual.conv1.weight", {1, 1}, {0}});
  tensors_.push_back({"logit_scale", {1}, {0}});
  const fs::path file = folder_->path() / "clip_g.safetensors";
  write_safetensors(file, tensors_);
  const models::ModelPart found =
      models::read_encoder(file, models::ImageFamily::sd3, models::EncoderRole::clip_g);
  EXPECT_EQ(found.class_name, "CLIPTextModelWithProjection");
  EXPECT_EQ(found.config.text_or("hidden_act", ""), "gelu");
  EXPECT_THAT(found.tokenizer.tokenizer_config_json, testing::HasSubstr("\"!\""));
  const std::vector<MadeTensor> wanted = made_part(folder_->path() / "text_encoder_2");
  EXPECT_EQ(found.weights.tensors().size(), wanted.size());
  for (const MadeTensor& tensor : wanted) {
    const std::string name = replaced(tensor.name, {{"text_model.", ""}});
    EXPECT_EQ(io::read_floats(found.weights.require(name)), tensor.values) << name;
  }
}

TEST_F(SingleFileTest, QuantisedGguf) {
  add_sd1();
  gguf_ = true;
  expect_same(0.1f);
}

// A UNet in ComfyUI-GGUF's form; text encoders and VAE come from elsewhere.
TEST_F(SingleFileTest, UnetsAlone) {
  open("sdxl");
  const std::string behind = "model.diffusion_model.";
  add_unet(2, 1, {false, true});
  std::erase_if(tensors_, [&](const MadeTensor& t) { return !t.name.starts_with(behind); });
  for (MadeTensor& tensor : tensors_) tensor.name.erase(0, behind.size());
  const fs::path file = folder_->path() / "unet.gguf";
  write_comfy_gguf(file, tensors_, "sdxl");

  models::ModelFiles files = models::read_single_file(file);
  EXPECT_EQ(files.family, models::ImageFamily::sdxl);
  ASSERT_EQ(files.parts.size(), 1u);
  const models::ModelFiles wanted = models::read_diffusers_folder(folder_->path());
  expect_same_shape(files.parts[0].config, wanted.require("unet").config);
  files.parts[0].config = wanted.require("unet").config;
  const fs::path folder = folder_->path();
  models::ImageLoadOptions others{.device = &cpu_device(),
                                  .vae = folder / "vae",
                                  .clip_l = folder / "text_encoder",
                                  .clip_g = folder / "text_encoder_2"};
  int64_t cut = 0;
  for (const io::TensorEntry& entry : files.parts[0].weights.tensors()) {
    const models::ModelPart& unet = wanted.require("unet");
    EXPECT_EQ(entry.shape, unet.weights.require(entry.name).shape) << entry.name;
    if (entry.dtype == DType::q8_0 && entry.shape[entry.shape.rank() - 1] % 32 != 0) ++cut;
  }
  EXPECT_GT(cut, 10);
  for (const auto& [role, path] : {std::pair{models::EncoderRole::clip_l, others.clip_l},
                                   {models::EncoderRole::clip_g, others.clip_g}}) {
    files.parts.push_back(models::read_encoder(path, files.family, role));
  }
  files.parts.push_back(models::read_part_folder(others.vae, "AutoencoderKL"));
  const models::ImageModel model = load_image_model(std::move(files), {.device = &cpu_device()});
  expect_text(model, *golden_);
  expect_denoiser(model, *golden_, 0.1f);
  expect_vae(*model.vae, *golden_);

  others.clip_g.clear();
  expect_error(Code::not_found, {"text_encoder_2", "clip_g"},
               [&] { models::load_image_model(file, others); });
  others.clip_g = folder / "text_encoder_2";
  others.t5xxl = folder / "text_encoder";
  expect_error(Code::invalid_argument, {"t5xxl", "sdxl"},
               [&] { models::load_image_model(file, others); });
}

TEST_F(SingleFileTest, UnetsAloneUnderDiffusersNames) {
  open("sdxl");
  add("", "unet", [](const std::string& name) { return name; });
  const fs::path file = folder_->path() / "unet.gguf";
  write_comfy_gguf(file, tensors_, "sdxl");
  const models::ModelFiles files = models::read_single_file(file);
  EXPECT_EQ(files.family, models::ImageFamily::sdxl);
  ASSERT_EQ(files.parts.size(), 1u);
  EXPECT_EQ(files.parts[0].weights.tensors().size(), tensors_.size());
  const models::ModelFiles wanted = models::read_diffusers_folder(folder_->path());
  expect_same_shape(files.parts[0].config, wanted.require("unet").config);
}

TEST_F(SingleFileTest, PartsThatAreMissingAreNamed) {
  open("sd1");
  add_unet(3, 2, {true, true, false});
  expect_error(Code::unsupported, {"whole.safetensors", "denoiser alone", "states of 32"},
               [&] { load(); });
  tensors_.resize(1);
  tensors_.front().name = "x.weight";
  expect_error(Code::unsupported, {"whole.safetensors", "known are"}, [&] { load(); });
  expect_error(Code::unsupported, {"v1.ckpt", "pickled"}, [&] {
    std::filesystem::copy(folder_->path() / "model_index.json", folder_->path() / "v1.ckpt");
    load_on_cpu(folder_->path() / "v1.ckpt");
  });
}

TEST_F(SingleFileTest, VaesInFilesOfTheirOwn) {
  open("sd1");
  for (const char* prefix : {"", "first_stage_model.", "vae."}) {
    const bool converted = std::string_view(prefix) == "vae.";
    tensors_.clear();
    add(prefix, "vae",
        [&](const std::string& name) { return converted ? name : original_vae(name, 3); });
    const fs::path file = folder_->path() / "vae.safetensors";
    write_safetensors(file, tensors_);
    const models::ModelPart part = models::read_vae_file(file, models::ImageFamily::sdxl);
    EXPECT_EQ(part.config.integers("block_out_channels"), (std::vector<int64_t>{8, 12, 16}));
    EXPECT_EQ(part.config.integer("layers_per_block"), 1);
    EXPECT_EQ(part.config.number_or("scaling_factor", 0), 0.13025);
    EXPECT_NE(part.weights.find("decoder.up_blocks.0.resnets.0.conv1.weight"), nullptr);
    EXPECT_EQ(part.weights.tensors().size(), tensors_.size());
  }
}

// The authors' name for a tiny autoencoder's layer; their decoder has one layer more.
std::string original_tiny(const std::string& name, const char* encoder, const char* decoder) {
  constexpr const char* kNumbered = "coder.layers.";
  const size_t number = name.find(kNumbered) + std::string_view(kNumbered).size();
  const size_t dot = name.find('.', number);
  const int layer = std::stoi(name.substr(number, dot - number));
  const bool decodes = name.starts_with("decoder");
  return cat(decodes ? decoder : encoder, decodes ? layer + 1 : layer, name.substr(dot));
}

TEST_F(SingleFileTest, TinyAutoencodersUnderEveryName) {
  open("taesd");
  const fs::path file = folder_->path() / "alone" / "taesd.safetensors";
  fs::create_directories(file.parent_path());
  const ImageFolder model("sd1");
  const auto add_named = [&](const char* encoder, const char* decoder) {
    tensors_.clear();
    add("", "", [&](const std::string& name) { return original_tiny(name, encoder, decoder); });
  };
  for (const auto& [encoder, decoder] :
       {std::pair{"encoder.", "decoder."}, std::pair{"taesd_encoder.", "taesd_decoder."}}) {
    add_named(encoder, decoder);
    write_safetensors(file, tensors_);
    expect_vae(*load_on_cpu(model.path(), {.vae = file}).vae, *golden_);
  }
  add_named("e.", "d.");
  std::map<char, std::vector<MadeTensor>> halves;
  for (const MadeTensor& tensor : tensors_) {
    halves[tensor.name.front()].push_back({tensor.name.substr(2), tensor.shape, tensor.values});
  }
  const fs::path decoder = file.parent_path() / "taesd_decoder.safetensors";
  const fs::path encoder = file.parent_path() / "taesd_encoder.safetensors";
  write_safetensors(encoder, halves['e']);
  expect_error(Code::not_found, {"taesd_encoder", "no decoder"},
               [&] { load_on_cpu(model.path(), {.vae = encoder}); });
  write_safetensors(decoder, halves['d']);
  expect_vae(*load_on_cpu(model.path(), {.vae = decoder}).vae, *golden_);
  fs::remove(encoder);
  const models::ImageModel loaded = load_on_cpu(model.path());
  const auto alone = models::load_tiny_autoencoder(decoder, loaded);
  expect_close(alone->decode(golden_->tensor("vae.latent"), {}), golden_->tensor("vae.decoded"),
               kImageTolerance, "decoded by a file's half");
  write_safetensors(file, {{"encoder.conv_in.weight", {1}, {0}}});
  expect_error(Code::unsupported, {"taesd.safetensors", "tiny"},
               [&] { models::load_tiny_autoencoder(file, loaded); });
}

}  // namespace
}  // namespace rbee::test
