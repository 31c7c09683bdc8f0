// Parts that leave the device between uses: a part that comes back computes as before, memory is
// released, and a failure on the way loses nothing for good.

#include <gtest/gtest.h>

#include "backends/cpu/cpu_device.h"
#include "rbee/models/image/image_model.h"
#include "rbee/ops/trace.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/far_device.h"

namespace rbee::test {
namespace {

using engine::FarDevice;
using models::ImageModel;
using models::OffloadedParts;
using Values = std::vector<float>;

constexpr OffloadedParts kText{.text = true};
constexpr OffloadedParts kAll{.text = true, .denoiser = true, .vae = true};

Tensor ramp(const Shape& shape, Device& device) {
  Values values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return from_host<float>(values, shape, device);
}

// Uses each part once, in the order of a picture.
models::TextEncoding encode(const ImageModel& model, size_t encoder) {
  const std::vector<int32_t> ids = {1, 5, 9, 2};
  return (*model.text.at(encoder).encoder)({.ids = ids, .batch = 1});
}

models::TextStates states_of(const ImageModel& model) {
  std::vector<models::TextEncoding> encodings;
  for (size_t i = 0; i < model.text.size(); ++i) encodings.push_back(encode(model, i));
  models::TextStates states = join_text(model, encodings);
  const int64_t ids = model.denoiser->info().size_ids;
  if (ids > 0) states.size_ids = ramp({1, ids}, *model.device);
  return states;
}

Values denoise(const ImageModel& model, const models::TextStates& states) {
  const auto prompt = model.denoiser->prepare(states);
  const Tensor x = ramp({1, 8, 8, model.denoiser->info().in_channels}, *model.device);
  const Values step = {500};
  return (*model.denoiser)(x, from_host<float>(step, {1}, *model.device), *prompt).to_host<float>();
}

Values decode(const ImageModel& model) {
  return model.vae->decode(ramp({1, 4, 4, model.vae->info().latent_channels}, *model.device))
      .to_host<float>();
}

std::vector<Values> run(const ImageModel& model) {
  const models::TextStates states = states_of(model);
  return {states.context.to_host<float>(), denoise(model, states), decode(model)};
}

class OffloadTest : public testing::Test {
 protected:
  ImageModel load(const OffloadedParts& offload) {
    return load_image_model(folder_.path(), options(offload));
  }
  models::ImageLoadOptions options(const OffloadedParts& offload) {
    models::ImageLoadOptions out;
    out.device = &far_;
    out.activations = DType::f32;
    out.offload = offload;
    return out;
  }

  // An adapter of the first text encoder's first layer.
  models::LoraSource adapter() {
    const auto made = made_part(image_data("sdxl") / "model" / "text_encoder");
    const std::string wanted = "layers.0.self_attn.q_proj.weight";
    const auto at =
        std::ranges::find_if(made, [&](const auto& m) { return m.name.ends_with(wanted); });
    const std::string name = "lora_te1_text_model_encoder_layers_0_self_attn_q_proj";
    const Shape up{at->shape[0], 1}, down{1, at->shape[1]};
    const auto path = folder_.path() / "adapter.safetensors";
    write_safetensors(path, {{name + ".lora_up.weight", up, made_weights("up", up)},
                             {name + ".lora_down.weight", down, made_weights("down", down)}});
    return {path, 1};
  }

  ImageFolder folder_{"sdxl"};
  FarDevice far_;
};

TEST_F(OffloadTest, WhatComesBackComputesAsBefore) {
  const std::vector<Values> wanted = run(load({}));
  for (const OffloadedParts& offload : {kText, OffloadedParts{.vae = true}, kAll}) {
    const ImageModel model = load(offload);
    for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(run(model), wanted);
  }
}

TEST_F(OffloadTest, MemoryIsThatOfOnePart) {
  const size_t before = far_.in_use();
  size_t whole = 0;
  {
    const ImageModel model = load({});
    whole = far_.in_use() - before;
  }
  const ImageModel model = load(kAll);
  EXPECT_EQ(far_.in_use(), before);  // nothing is used yet
  models::TextStates states = states_of(model);
  const size_t text = far_.in_use() - before;
  denoise(model, states);
  states = {};
  const size_t denoiser = far_.in_use() - before;
  decode(model);
  const size_t vae = far_.in_use() - before;
  EXPECT_LT(text + denoiser + vae, whole + whole / 50);
  EXPECT_LT(text, denoiser);
  decode(model);
  EXPECT_EQ(far_.in_use() - before, vae);
}

TEST_F(OffloadTest, EncodersAreGoneOnceTheDenoiserIsAtWork) {
  const ImageModel model = load(kText);
  const size_t resident = far_.in_use();
  models::TextStates states = states_of(model);
  EXPECT_GT(far_.in_use(), resident + states.context.buffer()->bytes());
  denoise(model, states);
  states = {};
  EXPECT_EQ(far_.in_use(), resident);
}

TEST_F(OffloadTest, AdaptersChangeWhileAPartIsAway) {
  models::ImageLoadOptions with = options(kAll), without = options({});
  with.loras = without.loras = {adapter()};
  ImageModel model = load(kAll);
  const std::vector<Values> plain = run(model);
  change_loras(model, folder_.path(), with);
  const std::vector<Values> adapted = run(model);
  EXPECT_NE(adapted[0], plain[0]);
  EXPECT_EQ(adapted, run(load_image_model(folder_.path(), without)));
  EXPECT_EQ(run(model), adapted);  // also from the stash
  with.loras.clear();
  change_loras(model, folder_.path(), with);
  EXPECT_EQ(run(model), plain);
}

TEST_F(OffloadTest, NoRoomToReturnIsNoReasonToStayAway) {
  const ImageModel model = load(kAll);
  const std::vector<Values> wanted = run(model);
  const size_t before = far_.in_use();
  far_.fail_allocation(7);
  expect_error(Code::out_of_memory, {"bytes on far"}, [&] { encode(model, 0); });
  EXPECT_LE(far_.in_use(), before);  // nothing stays of the part that did not fit
  EXPECT_EQ(run(model), wanted);
}

TEST_F(OffloadTest, WithoutHostMemoryPartsAreReadFromTheirFiles) {
  const std::vector<Values> wanted = run(load({}));
  far_.fail_host_allocation();
  const ImageModel model = load(kText);
  EXPECT_EQ(run(model), wanted);
}

TEST_F(OffloadTest, AfterAFailedChangeOfAdaptersThereAreNone) {
  models::ImageLoadOptions with = options(kText);
  with.loras = {adapter()};
  ImageModel model = load(kText);
  const std::vector<Values> plain = run(model);
  far_.fail_allocation(9);
  expect_error(Code::out_of_memory, {"bytes on far"},
               [&] { change_loras(model, folder_.path(), with); });
  EXPECT_TRUE(model.adapted.empty());
  EXPECT_EQ(run(model), plain);
}

TEST(OffloadOnTheHost, PartsGiveTheirMemoryBack) {
  const ImageFolder folder("sdxl");
  const auto in_use = [] {
    return static_cast<cpu::CpuDevice&>(cpu_device()).allocator().stats().in_use;
  };
  const std::vector<Values> wanted = run(load_on_cpu(folder.path()));
  const size_t before = in_use();
  const ImageModel model = load_on_cpu(folder.path(), {.offload = kAll});
  EXPECT_EQ(in_use(), before);
  EXPECT_EQ(run(model), wanted);
  EXPECT_EQ(run(model), wanted);
}

// The type of a VAE's convolutions, in a model whose layers compute in f16.
DType type_of_vae(const char* folder_name, Device& device) {
  const ImageFolder folder(folder_name);
  models::ImageLoadOptions options;
  options.device = &device;
  options.activations = DType::f16;
  const ImageModel model = load_image_model(folder.path(), options);
  std::optional<DType> type;
  set_op_trace([&](const TracedOp& op) {
    if (std::string_view(op.op) != "image_conv") return;
    EXPECT_EQ(type.value_or(op.x->dtype), op.x->dtype);
    type = op.x->dtype;
  });
  decode(model);
  set_op_trace({});
  return type.value();
}

TEST(VaeActivations, OfXlKeepTheRangeOfF32) {
  FarDevice far;
  EXPECT_EQ(type_of_vae("sdxl", far), DType::bf16);
  EXPECT_EQ(type_of_vae("sdxl", cpu_device()), DType::f32);
  EXPECT_EQ(type_of_vae("sd1", far), DType::f16);
}

TEST(OffloadedParts, AreNamed) {
  const auto parts = [](std::vector<std::string> names) {
    const OffloadedParts out = models::offloaded_parts(names);
    return std::array{out.text, out.denoiser, out.vae};
  };
  EXPECT_EQ(parts({}), (std::array{false, false, false}));
  EXPECT_EQ(parts({"vae", "text"}), (std::array{true, false, true}));
  EXPECT_EQ(parts({"denoiser"}), (std::array{false, true, false}));
  EXPECT_EQ(parts({"all"}), (std::array{true, true, true}));
  harness::expect_error("offload", "\"unet\"", "denoiser", [&] { parts({"unet"}); });
}

TEST_F(OffloadTest, Int8IsForDevicesThatReadHostMemory) {
  models::ImageLoadOptions wanted = options({});
  wanted.int8 = true;
  expect_error(Code::unsupported, {"dtype is int8", "int8 arithmetic is for CPUs", "f16"},
               [&] { load_image_model(folder_.path(), wanted); });
}

}  // namespace
}  // namespace rbee::test
