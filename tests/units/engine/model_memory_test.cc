// A language model's memory, estimated from its headers and measured after loading.
#include "rbee/engine/text/model_memory.h"

#include <gtest/gtest.h>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/core/error.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/models/language_model.h"
#include "tests/support/data_folder.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kContext = 96;
constexpr int64_t kRoom = int64_t{512} << 20;

fs::path data() {
  return fs::path(test::data_folder()) / "models";
}

// Files, keys and values of kContext tokens in 16 bits, and states of 32 sequences.
int64_t taken_by(const fs::path& path) {
  register_backend(cpu::cpu_backend());
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const auto model = models::load_language_model(
      checkpoint, {.device = &get_device({DeviceKind::cpu, 0}), .context = kContext});
  const nn::KvCacheOptions cache{.layers = model->cache_shape().layers};
  return checkpoint.file_bytes() + kContext * cache_token_bytes(*model, DType::f16).all() +
         32 * nn::KvCache::state_bytes(cache, 0, std::ssize(cache.layers));
}

TEST(ModelMemory, IsThatOfFilesAndContextInEveryFamily) {
  int count = 0;
  for (const auto& family : fs::directory_iterator(data() / "language/data")) {
    for (const char* file : {"hf/model.safetensors", "model.gguf"}) {
      const fs::path stored = family.path() / file;
      if (!fs::exists(stored)) continue;
      ++count;
      const fs::path path = stored.extension() == ".gguf" ? stored : stored.parent_path();
      EXPECT_EQ(text_model_memory(path, {.context = kContext}) - kRoom, taken_by(path)) << path;
    }
  }
  EXPECT_GT(count, 50);
}

TEST(ModelMemory, CountsTheContextThatAWorkerWouldTake) {
  const fs::path path = data() / "language/data/smollm/hf";
  const int64_t none = text_model_memory(path, {.context = 1});
  const int64_t token = text_model_memory(path, {.context = 2}) - none;
  EXPECT_GT(token, 0);
  // The model's own context; its config.json says 64.
  EXPECT_EQ(text_model_memory(path, {}), none + 63 * token);
}

// From the last layer on, by the bytes of each and of its cache.
TEST(ModelMemory, AFewLayersFitIntoLess) {
  for (const char* family :
       {"smollm", "llama", "qwen2", "gpt_oss", "deepseek_v2", "gemma3", "qwen3_next"}) {
    for (const char* file : {"hf", "model.gguf"}) {
      const fs::path path = data() / "language/data" / family / file;
      const TextModelOptions options{.context = kContext};
      const int64_t whole = text_model_memory(path, options);
      const FittingLayers all = fitting_gpu_layers(path, options, whole);
      EXPECT_EQ(all.count, all.all) << path;
      EXPECT_EQ(fitting_gpu_layers(path, options, 0).count, 0) << path;
      EXPECT_EQ(fitting_gpu_layers(path, options, kRoom).count, 0) << path;
      int64_t last = 0;
      for (int64_t free = kRoom; free < whole; free += (whole - kRoom) / 64) {
        const FittingLayers fits = fitting_gpu_layers(path, options, free);
        EXPECT_EQ(fits.all, all.all);
        EXPECT_GE(fits.count, last) << path;
        EXPECT_LE(fits.count, fits.all) << path;
        last = fits.count;
      }
      EXPECT_GE(last, all.all - 1) << path << ": all but the token table fit";
    }
  }
}

// What the estimate promises is what loading takes.
TEST(ModelMemory, OfFewLayersIsWhatTheyTake) {
  const fs::path path = data() / "language/data/llama/model.gguf";
  FarDevice device;
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  int64_t layers = 0;
  for (int64_t count = 1; layers == 0 || count <= layers; ++count) {
    const size_t before = device.in_use();
    const auto model = models::load_language_model(
        checkpoint, {.device = &device, .context = kContext, .gpu_layers = count, .host = &cpu()});
    layers = model->config().layers;
    const auto weights = static_cast<int64_t>(device.in_use() - before);
    const int64_t cache = kContext * cache_token_bytes(*model, DType::f16).device;
    EXPECT_LT(fitting_gpu_layers(path, {.context = kContext}, kRoom + (weights + cache) / 2).count,
              count);
    // Rotary tables and alignment come on top.
    EXPECT_GE(
        fitting_gpu_layers(path, {.context = kContext}, kRoom + (weights + cache) * 3 / 2).count,
        count);
  }
}

// Bytes of a file's experts in one layer.
int64_t experts_of(const fs::path& path, const std::string& layer) {
  int64_t bytes = 0;
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    const bool here = tensor.name.find(layer) != std::string::npos;
    const bool expert = tensor.name.find("exps.") != std::string::npos ||
                        tensor.name.find(".experts.") != std::string::npos;
    if (here && expert) bytes += static_cast<int64_t>(tensor.data.size());
  }
  return bytes;
}

TEST(ModelMemory, IsLessByTheExpertsOnTheHost) {
  for (const char* family : {"mixtral", "qwen3_moe", "gpt_oss", "deepseek_v3"}) {
    for (const auto& [file, prefix] : {std::pair{"hf", "layers."}, {"model.gguf", "blk."}}) {
      const fs::path path = data() / "language/data" / family / file;
      const int64_t whole = text_model_memory(path, {.context = kContext});
      int64_t gone = 0;
      for (int64_t count = 1; count <= 2; ++count) {
        gone += experts_of(path, cat(prefix, count - 1, "."));
        EXPECT_EQ(text_model_memory(path, {.context = kContext, .cpu_moe_layers = count}),
                  whole - gone)
            << path;
      }
      EXPECT_GT(gone, 0) << path;
      // Experts that come for large steps take the room of one layer's.
      const TextModelOptions visits{
          .context = kContext, .cpu_moe_layers = 2, .op_offload_min_batch = 1};
      EXPECT_EQ(text_model_memory(path, visits), whole - gone +
                                                     std::max(experts_of(path, cat(prefix, "0.")),
                                                              experts_of(path, cat(prefix, "1."))))
          << path;
      EXPECT_EQ(text_model_memory(path, {.context = kContext, .op_offload_min_batch = 1}), whole);
      EXPECT_LT(text_model_memory(path, {.context = kContext, .cpu_moe_layers = INT64_MAX}), whole);
    }
  }
}

// Experts leave first, of as few layers as needed; only then whole layers.
TEST(ModelMemory, ExpertsLeaveBeforeLayers) {
  const fs::path path = data() / "language/data/mixtral/model.gguf";
  const TextModelOptions options{.context = kContext};
  const int64_t whole = text_model_memory(path, options);
  const FittingLayers all = fitting_gpu_layers(path, options, whole, CpuMoe::as_needed);
  EXPECT_EQ(all.count, all.all);
  EXPECT_EQ(all.cpu_moe_layers, 0);
  int64_t experts = all.all, layers = 0;
  for (int64_t free = kRoom; free < whole; free += (whole - kRoom) / 128) {
    const FittingLayers fits = fitting_gpu_layers(path, options, free, CpuMoe::as_needed);
    if (fits.count < fits.all) {
      EXPECT_EQ(fits.cpu_moe_layers, fits.all - 1);
    }
    EXPECT_LE(fits.cpu_moe_layers, experts);
    EXPECT_GE(fits.count, layers);
    EXPECT_GE(fits.count, fitting_gpu_layers(path, options, free).count);
    experts = fits.cpu_moe_layers;
    layers = fits.count;
  }
  EXPECT_EQ(layers, all.all);
  EXPECT_LE(experts, 1);
  // Those that were asked for stay there, whatever fits.
  const TextModelOptions one{.context = kContext, .cpu_moe_layers = 1};
  EXPECT_EQ(fitting_gpu_layers(path, one, whole).cpu_moe_layers, 1);
  EXPECT_EQ(fitting_gpu_layers(path, one, whole).count, all.all);
}

TEST(ModelMemory, SaysThatThereIsNoFile) {
  try {
    text_model_memory("/nowhere/model.gguf", {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
  }
}

}  // namespace
}  // namespace rbee::engine
