// Tiny Stable Diffusion 3 and FLUX models in their authors' layouts, whole or in parts, give the
// same pictures.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "rbee/core/half.h"
#include "rbee/models/image/encoder_file.h"
#include "rbee/models/image/model_files.h"
#include "rbee/models/image/scaled_file.h"
#include "rbee/models/image/single_file.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"
#include "tests/models/image/original_layout.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::EncoderRole;

// An original layer, and the diffusers layers that it contains from top to bottom.
using Layers = std::vector<std::pair<std::string, std::vector<std::string>>>;

void add_vector_layers(const std::string& from, const std::string& to, const char* first,
                       const char* second, Layers& out) {
  const std::string head = cat("time_text_embed.", to, "_embedder.");
  out.push_back({from + first, {head + "linear_1"}});
  out.push_back({from + second, {head + "linear_2"}});
}

Layers flux_layers() {
  Layers out = {{"img_in", {"x_embedder"}},
                {"txt_in", {"context_embedder"}},
                {"final_layer.linear", {"proj_out"}}};
  add_vector_layers("time_in", "timestep", ".in_layer", ".out_layer", out);
  add_vector_layers("vector_in", "text", ".in_layer", ".out_layer", out);
  add_vector_layers("guidance_in", "guidance", ".in_layer", ".out_layer", out);
  for (int i = 0; i < 2; ++i) {
    const std::string a = cat("double_blocks.", i, "."), b = cat("transformer_blocks.", i, ".");
    out.push_back({a + "img_mod.lin", {b + "norm1.linear"}});
    out.push_back({a + "txt_mod.lin", {b + "norm1_context.linear"}});
    out.push_back({a + "img_attn.qkv", {b + "attn.to_q", b + "attn.to_k", b + "attn.to_v"}});
    out.push_back({a + "txt_attn.qkv",
                   {b + "attn.add_q_proj", b + "attn.add_k_proj", b + "attn.add_v_proj"}});
    out.push_back({a + "img_attn.norm.query_norm", {b + "attn.norm_q"}});
    out.push_back({a + "img_attn.norm.key_norm", {b + "attn.norm_k"}});
    out.push_back({a + "txt_attn.norm.query_norm", {b + "attn.norm_added_q"}});
    out.push_back({a + "txt_attn.norm.key_norm", {b + "attn.norm_added_k"}});
    out.push_back({a + "img_attn.proj", {b + "attn.to_out.0"}});
    out.push_back({a + "txt_attn.proj", {b + "attn.to_add_out"}});
    out.push_back({a + "img_mlp.0", {b + "ff.net.0.proj"}});
    out.push_back({a + "img_mlp.2", {b + "ff.net.2"}});
    out.push_back({a + "txt_mlp.0", {b + "ff_context.net.0.proj"}});
    out.push_back({a + "txt_mlp.2", {b + "ff_context.net.2"}});
    const std::string c = cat("single_blocks.", i, ".");
    const std::string d = cat("single_transformer_blocks.", i, ".");
    out.push_back({c + "modulation.lin", {d + "norm.linear"}});
    out.push_back(
        {c + "linear1", {d + "attn.to_q", d + "attn.to_k", d + "attn.to_v", d + "proj_mlp"}});
    out.push_back({c + "linear2", {d + "proj_out"}});
    out.push_back({c + "norm.query_norm", {d + "attn.norm_q"}});
    out.push_back({c + "norm.key_norm", {d + "attn.norm_k"}});
  }
  return out;
}

Layers sd3_layers() {
  Layers out = {{"x_embedder.proj", {"pos_embed.proj"}},
                {"context_embedder", {"context_embedder"}},
                {"final_layer.linear", {"proj_out"}}};
  add_vector_layers("t_embedder", "timestep", ".mlp.0", ".mlp.2", out);
  add_vector_layers("y_embedder", "text", ".mlp.0", ".mlp.2", out);
  for (int i = 0; i < 3; ++i) {
    const std::string a = cat("joint_blocks.", i, ".x_block.");
    const std::string c = cat("joint_blocks.", i, ".context_block.");
    const std::string b = cat("transformer_blocks.", i, ".");
    for (const std::string attn : {"attn", "attn2"}) {
      const std::string to = b + attn;
      out.push_back({a + attn + ".qkv", {to + ".to_q", to + ".to_k", to + ".to_v"}});
      out.push_back({a + attn + ".proj", {to + ".to_out.0"}});
      out.push_back({a + attn + ".ln_q", {to + ".norm_q"}});
      out.push_back({a + attn + ".ln_k", {to + ".norm_k"}});
    }
    out.push_back(
        {c + "attn.qkv", {b + "attn.add_q_proj", b + "attn.add_k_proj", b + "attn.add_v_proj"}});
    out.push_back({c + "attn.proj", {b + "attn.to_add_out"}});
    out.push_back({c + "attn.ln_q", {b + "attn.norm_added_q"}});
    out.push_back({c + "attn.ln_k", {b + "attn.norm_added_k"}});
    out.push_back({a + "adaLN_modulation.1", {b + "norm1.linear"}});
    out.push_back({c + "adaLN_modulation.1", {b + "norm1_context.linear"}});
    out.push_back({a + "mlp.fc1", {b + "ff.net.0.proj"}});
    out.push_back({a + "mlp.fc2", {b + "ff.net.2"}});
    out.push_back({c + "mlp.fc1", {b + "ff_context.net.0.proj"}});
    out.push_back({c + "mlp.fc2", {b + "ff_context.net.2"}});
  }
  return out;
}

void swap_halves(MadeTensor& tensor) {
  const auto half = static_cast<std::ptrdiff_t>(tensor.values.size() / 2);
  std::ranges::rotate(tensor.values, tensor.values.begin() + half);
}

class TransformerFileTest : public testing::Test {
 protected:
  void open(const std::string& name) {
    folder_ = std::make_unique<ImageFolder>(name);
    golden_ = std::make_unique<ImageGolden>(name);
  }

  // Stacks the layers; skips layers that the model does not have.
  void add_transformer(const std::string& prefix, const Layers& layers) {
    std::map<std::string, MadeTensor> made;
    for (MadeTensor& tensor : made_part(folder_->path() / "transformer")) {
      made[tensor.name] = std::move(tensor);
    }
    for (const auto& [name, parts] : layers) {
      for (const std::string leaf : {"weight", "bias"}) {
        if (!made.contains(cat(parts.front(), ".", leaf))) continue;
        const bool norm = name.ends_with("_norm");
        MadeTensor whole{cat(prefix, name, norm ? ".scale" : "." + leaf), {}, {}};
        for (const std::string& part : parts) append(made.at(cat(part, ".", leaf)), whole);
        const bool last = name == "joint_blocks.2.context_block.adaLN_modulation.1";
        if (last) swap_halves(whole);
        tensors_.push_back(std::move(whole));
      }
    }
    for (const char* leaf : {"weight", "bias"}) {
      MadeTensor norm = made.at(cat("norm_out.linear.", leaf));
      norm.name = cat(prefix, "final_layer.adaLN_modulation.1.", leaf);
      swap_halves(norm);
      tensors_.push_back(std::move(norm));
    }
    if (const auto places = made.find("pos_embed.pos_embed"); places != made.end()) {
      tensors_.push_back(places->second);
      tensors_.back().name = prefix + "pos_embed";
    }
  }

  static void append(const MadeTensor& part, MadeTensor& whole) {
    const int64_t rows = whole.values.empty() ? 0 : whole.shape[0];
    whole.shape = part.shape;
    whole.shape[0] += rows;
    whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
  }

  void add(const std::string& prefix, const std::string& part, const auto& rename) {
    for (MadeTensor& tensor : made_part(folder_->path() / part)) {
      tensor.name = prefix + rename(tensor.name);
      tensors_.push_back(std::move(tensor));
    }
  }
  void add_clip(const std::string& role, const std::string& part) {
    add(cat("text_encoders.", role, ".transformer."), part, [](const std::string& name) {
      const bool plain = name.starts_with("text_");
      return plain ? name : "text_model." + name;
    });
  }
  void add_t5(const std::string& part) {
    add("text_encoders.t5xxl.transformer.", part, [](const std::string& name) { return name; });
  }
  void add_vae(const std::string& prefix) {
    add(prefix, "vae", [](const std::string& name) { return original_vae(name, 3); });
  }

  fs::path file(const char* name) const { return folder_->path() / name; }

  models::ImageModel load_whole() {
    write_safetensors(file("whole.safetensors"), tensors_);
    return load_whole("whole.safetensors");
  }
  // Takes the settings that no tensor shows from the folder.
  models::ImageModel load_whole(const char* name) {
    models::ModelFiles files = models::read_single_file(file(name));
    const models::ModelFiles wanted = models::read_diffusers_folder(folder_->path());
    EXPECT_EQ(files.family, wanted.family);
    EXPECT_EQ(files.parts.size(), wanted.parts.size());
    for (models::ModelPart& part : files.parts) {
      const models::ModelPart& other = wanted.require(part.name);
      EXPECT_EQ(part.class_name, other.class_name);
      part.config = other.config;
    }
    return load_image_model(std::move(files), {.device = &cpu_device()});
  }

  void expect_same(const models::ImageModel& model, float tolerance = kImageTolerance) {
    expect_text(model, *golden_, tolerance);
    expect_denoiser(model, *golden_, tolerance);
    expect_vae(*model.vae, *golden_, tolerance);
  }

  models::ImageLoadOptions folders_for_flux() const {
    return {.vae = file("vae"), .clip_l = file("text_encoder"), .t5xxl = file("text_encoder_2")};
  }

  std::unique_ptr<ImageFolder> folder_;
  std::unique_ptr<ImageGolden> golden_;
  std::vector<MadeTensor> tensors_;
};

TEST_F(TransformerFileTest, FluxAloneWithPartsBesides) {
  open("flux");
  add_transformer("", flux_layers());
  write_safetensors(file("flux1.safetensors"), tensors_);
  const models::ImageModel model = load_on_cpu(file("flux1.safetensors"), folders_for_flux());
  expect_same(model);
  EXPECT_EQ(model.model_name, "flux1");
  EXPECT_TRUE(model.scheduler.use_dynamic_shifting);
  EXPECT_EQ(model.scheduler.prediction_type, "flow_prediction");
  EXPECT_EQ(model.text[1].encoder->max_tokens(), 512);
}

TEST_F(TransformerFileTest, SchnellIsToldByItsTensors) {
  open("schnell");
  add_transformer("model.diffusion_model.", flux_layers());
  write_safetensors(file("s.safetensors"), tensors_);
  const models::ImageModel model = load_on_cpu(file("s.safetensors"), folders_for_flux());
  expect_same(model);
  EXPECT_FALSE(model.scheduler.use_dynamic_shifting);
  EXPECT_EQ(model.scheduler.shift, 1);
  EXPECT_EQ(model.text[1].encoder->max_tokens(), 256);
}

TEST_F(TransformerFileTest, QuantisedFlux) {
  open("flux");
  add_transformer("", flux_layers());
  write_gguf(file("flux1.gguf"), tensors_);
  const models::ImageModel model = load_on_cpu(file("flux1.gguf"), folders_for_flux());
  expect_denoiser(model, *golden_, 0.1f);
}

void expect_values(const models::ModelPart& found, const models::ModelPart& wanted) {
  ASSERT_EQ(found.weights.tensors().size(), wanted.weights.tensors().size());
  for (const io::TensorEntry& entry : wanted.weights.tensors()) {
    EXPECT_EQ(io::read_floats(found.weights.require(entry.name)), io::read_floats(entry))
        << entry.name;
  }
}

TEST_F(TransformerFileTest, FluxOfOneByteFloats) {
  open("flux");
  for (const Fp8 kind : {Fp8::e4m3, Fp8::e5m2, Fp8::scaled, Fp8::described}) {
    tensors_.clear();
    add_transformer("", flux_layers());
    round_vectors(tensors_);
    write_fp8(file("fp8.safetensors"), tensors_, kind);
    write_safetensors(file("wide.safetensors"), tensors_, DType::bf16);
    expect_values(models::read_single_file(file("fp8.safetensors")).require("transformer"),
                  models::read_single_file(file("wide.safetensors")).require("transformer"));
    const models::ImageModel model = load_on_cpu(file("fp8.safetensors"), folders_for_flux());
    const models::ImageModel wide = load_on_cpu(file("wide.safetensors"), folders_for_flux());
    expect_close(denoised(model, *golden_), denoised(wide, *golden_), kImageTolerance, "flux");
  }
}

TEST_F(TransformerFileTest, T5OfOneByteFloats) {
  open("flux");
  for (const Fp8 kind : {Fp8::e4m3, Fp8::scaled, Fp8::described}) {
    tensors_.clear();
    add("", "text_encoder_2", [](const std::string& name) { return name; });
    round_vectors(tensors_);
    write_fp8(file("t5.safetensors"), tensors_, kind);
    write_safetensors(file("wide.safetensors"), tensors_, DType::bf16);
    const models::ImageModel model =
        load_on_cpu(folder_->path(), {.t5xxl = file("t5.safetensors")});
    const models::ImageModel wide =
        load_on_cpu(folder_->path(), {.t5xxl = file("wide.safetensors")});
    expect_close(text_states(model, 1, *golden_), text_states(wide, 1, *golden_),
                 10 * kImageTolerance, "t5");
    const auto family = models::ImageFamily::flux;
    expect_values(models::read_encoder(file("t5.safetensors"), family, EncoderRole::t5xxl),
                  models::read_encoder(file("wide.safetensors"), family, EncoderRole::t5xxl));
  }
}

TEST_F(TransformerFileTest, ScalesAreOneNumberOfABytesMatrix) {
  const fs::path path = fs::path(testing::TempDir()) / "scales.safetensors";
  const std::vector<float> one = {0.5f}, two = {0.5f, 0.25f};
  write_safetensors(path, {{"a.weight", {1, 1}, one}, {"a.scale_weight", {2}, two}});
  expect_error(Code::invalid_argument, {"a.weight", "f16"}, [&] { models::open_scaled(path); });
  write_safetensors(path, {{"a.weight", {1, 1}, one}, {"a.weight_scale", {1}, one}});
  expect_error(Code::invalid_argument, {"a.weight", "f16"}, [&] { models::open_scaled(path); });
  for (const char* name : {"a.weight_scale_2", "a.pre_quant_scale"}) {
    write_safetensors(path, {{"a.weight", {1, 1}, one}, {name, {1}, one}});
    expect_error(Code::unsupported, {name, "16 bits"}, [&] { models::open_scaled(path); });
  }
  fs::remove(path);
}

// A matrix of ones and twos, (4, 6), with scales of a shape.
TEST_F(TransformerFileTest, ScalesOfRowsAndBlocks) {
  const fs::path path = fs::path(testing::TempDir()) / "blocks.safetensors";
  const auto open = [&](const Shape& shape, std::string_view format = "float8_e4m3fn") {
    const auto count = static_cast<size_t>(numel(shape));
    const std::string words = cat(R"({"format":")", format, "\"}");
    std::string dims;
    for (const int64_t dim : shape) dims += cat(dims.empty() ? "" : ",", dim);
    const size_t end = 24 + count * sizeof(float);
    const std::string header =
        cat(R"({"a.weight":{"dtype":"F8_E4M3","shape":[4,6],"data_offsets":[0,24]},)",
            R"("a.weight_scale":{"dtype":"F32","shape":[)", dims, R"(],"data_offsets":[24,)", end,
            R"(]},"a.comfy_quant":{"dtype":"U8","shape":[)", words.size(), R"(],"data_offsets":[)",
            end, ",", end + words.size(), "]}}");
    const uint64_t length = header.size();
    std::vector<float> scales(count);
    for (size_t i = 0; i < count; ++i) scales[i] = std::ldexp(1.0f, static_cast<int>(i));
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
    for (int i = 0; i < 12; ++i) file << "\x38\x40";  // 1, 2
    file.write(reinterpret_cast<const char*>(scales.data()),
               static_cast<std::streamsize>(count * sizeof(float)))
        << words;
    file.close();
    const io::TensorEntry entry = models::open_scaled(path).require("a.weight");
    const std::vector<float> values = io::read_floats(entry);
    const io::TensorEntry wide = io::widened(entry, DType::bf16);
    EXPECT_EQ(io::read_floats(wide), values);
    return values;
  };
  const auto wanted = [](int64_t rows, int64_t columns) {
    std::vector<float> out;
    const int64_t across = 6 / columns;
    for (int64_t row = 0; row < 4; ++row) {
      for (int64_t column = 0; column < 6; ++column) {
        const auto block = static_cast<int>(row / rows * across + column / columns);
        out.push_back(std::ldexp(column % 2 == 0 ? 1.0f : 2.0f, block));
      }
    }
    return out;
  };
  EXPECT_EQ(open({4}, "float8_e4m3fn_rowwise"), wanted(1, 6));
  EXPECT_EQ(open({4, 1}), wanted(1, 6));
  EXPECT_EQ(open({2, 3}, "float8_e4m3fn_blockwise"), wanted(2, 2));
  EXPECT_EQ(open({4, 3, 1}, "float8_e4m3fn_block3d"), wanted(1, 2));
  for (const Shape& shape : {Shape{6}, Shape{2}, Shape{3, 3}, Shape{4, 4}, Shape{2, 3, 2}}) {
    expect_error(Code::unsupported, {"a.weight_scale", "a.weight of (4, 6)", "row or block"},
                 [&] { open(shape); });
  }
  expect_error(Code::unsupported, {"a.comfy_quant", "float8_e4m3fn_columnwise"},
               [&] { open({4}, "float8_e4m3fn_columnwise"); });
  fs::remove(path);
}

// Quanto's weights in a part of a diffusers folder, and an unsupported method.
TEST_F(TransformerFileTest, QuantisedPartsOfFolders) {
  const fs::path folder = fs::path(testing::TempDir()) / "quantised_part";
  fs::create_directories(folder);
  const auto config = [&](std::string_view method) {
    std::ofstream(folder / "config.json")
        << R"({"quantization_config":{"quant_method":")" << method << "\"}}";
  };
  const std::string header =
      R"({"a.weight._data":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},)"
      R"("a.weight._scale":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
      R"("a.input_scale":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
      R"("a.output_scale":{"dtype":"F32","shape":[],"data_offsets":[16,20]}})";
  const uint64_t length = header.size();
  const std::vector<float> scales = {0.5f, 4, 1, 1};
  std::ofstream file(folder / "diffusion_pytorch_model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length) << header << "\x38\x40\x38\x38";
  file.write(reinterpret_cast<const char*>(scales.data()), 16);
  file.close();
  config("quanto");
  const models::ModelPart part = models::read_part_folder(folder, "Any");
  EXPECT_EQ(part.weights.tensors().size(), 1u);
  EXPECT_EQ(io::read_floats(part.weights.require("a.weight")), (std::vector<float>{0.5f, 1, 4, 4}));
  config("torchao");
  expect_error(Code::unsupported, {"config.json", "quant_method", "torchao"},
               [&] { models::read_part_folder(folder, "Any"); });
  fs::remove_all(folder);
}

// Unsupported byte formats, and descriptions without content.
TEST_F(TransformerFileTest, DescriptionsOfBytes) {
  const fs::path path = fs::path(testing::TempDir()) / "described.safetensors";
  const auto open = [&](std::string_view words) {
    const std::string header =
        cat(R"({"a.weight":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]},)",
            R"("a.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[2,6]},)",
            R"("a.comfy_quant":{"dtype":"U8","shape":[)", words.size(), R"(],"data_offsets":[6,)",
            6 + words.size(), "]}}");
    const uint64_t length = header.size();
    const float scale = 0.5f;
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length) << header << "\x38\x3c";
    file.write(reinterpret_cast<const char*>(&scale), sizeof scale) << words;
    file.close();
    return models::open_scaled(path);
  };
  EXPECT_EQ(io::read_floats(open(R"({"format":"float8_e4m3fn"})").require("a.weight")),
            (std::vector<float>{0.5f, 0.75f}));
  EXPECT_EQ(io::read_floats(open(R"({"format":"float8_e5m2"})").require("a.weight")),
            (std::vector<float>{0.25f, 0.5f}));
  for (const char* format : {"int8_tensorwise", "nvfp4", "mxfp8"}) {
    expect_error(Code::unsupported, {"described.safetensors", "a.comfy_quant", format},
                 [&] { open(cat(R"({"format":")", format, "\"}")); });
  }
  expect_error(Code::not_found, {"a.comfy_quant", "format"}, [&] { open("{}"); });
  expect_error(Code::invalid_argument, {"a.comfy_quant"}, [&] { open("e4m3"); });
  fs::remove(path);
}

TEST_F(TransformerFileTest, WholeFlux) {
  open("flux");
  add_transformer("model.diffusion_model.", flux_layers());
  add_clip("clip_l", "text_encoder");
  add_t5("text_encoder_2");
  add_vae("vae.");
  expect_same(load_whole());
}

TEST_F(TransformerFileTest, WholeStableDiffusion3) {
  open("sd3");
  add_transformer("model.diffusion_model.", sd3_layers());
  add_clip("clip_l", "text_encoder");
  add_clip("clip_g", "text_encoder_2");
  add_t5("text_encoder_3");
  add_vae("first_stage_model.");
  expect_same(load_whole());
}

TEST_F(TransformerFileTest, StableDiffusion3OfOneByteFloats) {
  open("sd3");
  for (const Fp8 kind : {Fp8::e4m3, Fp8::scaled, Fp8::described, Fp8::whole}) {
    SCOPED_TRACE(static_cast<int>(kind));
    tensors_.clear();
    add_transformer("model.diffusion_model.", sd3_layers());
    add_clip("clip_l", "text_encoder");
    add_clip("clip_g", "text_encoder_2");
    add_t5("text_encoder_3");
    add_vae("first_stage_model.");
    round_vectors(tensors_);
    write_fp8(file("fp8.safetensors"), tensors_, kind);
    write_safetensors(file("wide.safetensors"), tensors_, DType::bf16);
    expect_alike(load_whole("fp8.safetensors"), load_whole("wide.safetensors"), *golden_);
  }
}

TEST_F(TransformerFileTest, StableDiffusion35WithoutT5) {
  open("sd35");
  add_transformer("model.diffusion_model.", sd3_layers());
  add_clip("clip_l", "text_encoder");
  add_clip("clip_g", "text_encoder_2");
  add_vae("first_stage_model.");
  expect_same(load_whole());
  const models::ModelFiles files = models::read_single_file(file("whole.safetensors"));
  EXPECT_EQ(files.scheduler.shift, 3);
  const models::ModelPart& found = files.require("transformer");
  const models::ModelFiles folder = models::read_diffusers_folder(folder_->path());
  const io::JsonConfig& wanted = folder.require("transformer").config;
  for (const char* field : {"num_layers", "attention_head_dim", "num_attention_heads",
                            "joint_attention_dim", "pooled_projection_dim", "pos_embed_max_size"}) {
    EXPECT_EQ(found.config.integer(field), wanted.integer(field)) << field;
  }
  EXPECT_EQ(found.config.integers("dual_attention_layers", {0, 2}), (std::vector<int64_t>{0, 1}));
}

// llama.cpp's names of T5's encoder.
std::string gguf_t5(const std::string& name) {
  return replaced(replaced(name, {{"shared.", "token_embd."},
                                  {"encoder.final_layer_norm", "enc.output_norm"},
                                  {"encoder.block.", "enc.blk."}}),
                  {{"layer.0.SelfAttention.relative_attention_bias", "attn_rel_b"},
                   {"layer.0.SelfAttention.", "attn_"},
                   {"layer.0.layer_norm", "attn_norm"},
                   {"layer.1.layer_norm", "ffn_norm"},
                   {"layer.1.DenseReluDense.wi_0", "ffn_gate"},
                   {"layer.1.DenseReluDense.wi_1", "ffn_up"},
                   {"layer.1.DenseReluDense.wo", "ffn_down"}});
}

TEST_F(TransformerFileTest, T5OfLlamaCpp) {
  open("flux");
  add("", "text_encoder_2", gguf_t5);
  write_gguf(file("t5.gguf"), tensors_, {"<pad>", "</s>", "<unk>"});
  models::ModelPart part =
      models::read_encoder(file("t5.gguf"), models::ImageFamily::flux, EncoderRole::t5xxl);
  EXPECT_EQ(part.tokenizer.gguf, file("t5.gguf"));
  EXPECT_EQ(part.name, "text_encoder_2");
  models::ModelFiles files = models::read_diffusers_folder(folder_->path());
  for (models::ModelPart& old : files.parts) {
    if (old.name != part.name) continue;
    for (const char* field : {"vocab_size", "d_model", "d_kv", "num_heads", "d_ff", "num_layers",
                              "relative_attention_num_buckets"}) {
      EXPECT_EQ(part.config.integer(field), old.config.integer(field)) << field;
    }
    old.weights = std::move(part.weights);
  }
  expect_text(load_image_model(std::move(files), {.device = &cpu_device()}), *golden_, 0.1f);
}

TEST_F(TransformerFileTest, AbsentProjectionsAreTheIdentity) {
  open("sd3");
  add_clip("clip_l", "text_encoder");
  std::erase_if(tensors_, [](const MadeTensor& tensor) {
    return tensor.name.find("text_projection") != std::string::npos;
  });
  write_safetensors(file("clip_l.safetensors"), tensors_);
  const models::ImageModel model =
      load_on_cpu(folder_->path(), {.clip_l = file("clip_l.safetensors")});
  EXPECT_EQ(model.text[0].encoder->pooled_width(), 32);
}

TEST_F(TransformerFileTest, PartsThatAreMissingAreNamed) {
  open("flux");
  add_transformer("", flux_layers());
  const fs::path flux = file("flux1.safetensors");
  write_safetensors(flux, tensors_);
  expect_error(Code::not_found, {"flux1", "text_encoder", "clip_l"}, [&] { load_on_cpu(flux); });
  models::ImageLoadOptions options = folders_for_flux();
  options.t5xxl.clear();
  expect_error(Code::not_found, {"text_encoder_2", "t5xxl"}, [&] { load_on_cpu(flux, options); });
  options = folders_for_flux();
  options.vae.clear();
  expect_error(Code::not_found, {"VAE"}, [&] { load_on_cpu(flux, options); });
  options = folders_for_flux();
  options.clip_g = options.clip_l;
  expect_error(Code::invalid_argument, {"clip_g", "flux"}, [&] { load_on_cpu(flux, options); });
  options = folders_for_flux();
  options.clip_l = flux;
  expect_error(Code::unsupported, {"flux1", "clip_l"}, [&] { load_on_cpu(flux, options); });
}

}  // namespace
}  // namespace rbee::test
