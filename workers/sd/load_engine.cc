#include "workers/sd/load_engine.h"

#include "rbee/core/log.h"
#include "rbee/engine/image/engine.h"
#include "rbee/engine/image/model_memory.h"
#include "workers/common/loading.h"
#include "workers/common/model_paths.h"
#include "workers/device/worker_device.h"

namespace rbee::workers {
namespace {

// Flags whose paths are local, and the control nets with their names.
struct Local {
  SdFlags flags;
  std::vector<engine::NetworkPath> control_nets;
};

Local with_local_paths(SdFlags flags, const WorkerDevice& device, server::LoadingState& loading) {
  ModelPaths paths([&] { return device.free_memory(); }, loading);
  for (std::string* path : {&flags.model, &flags.vae, &flags.taesd, &flags.clip_l, &flags.clip_g,
                            &flags.t5xxl, &flags.llm, &flags.embeddings}) {
    paths.use(*path);
  }
  for (std::string& path : flags.upscale_models) paths.use(path);
  std::vector<engine::NetworkPath> control_nets;
  for (std::string path : flags.control_nets) {
    std::string name = paths.use(path);
    control_nets.push_back({std::move(path), std::move(name)});
  }
  return {std::move(flags), std::move(control_nets)};
}

// The architecture for a hive's model version; empty: any.
std::string_view expected_architecture(std::string_view version) {
  if (version.starts_with("flux")) return "flux";
  if (version.starts_with("z-image")) return "z_image";
  if (version.starts_with("3")) return "sd3";
  if (version.starts_with("xl") || version == "turbo") return "sdxl";
  if (version.find('2') != std::string_view::npos) return "sd2";
  return version.empty() ? "" : "sd1";
}

engine::ImageSourceOptions source_options(const Local& local, Device* device) {
  const SdFlags& flags = local.flags;
  const models::ImageArithmetic arithmetic = models::image_arithmetic(flags.dtype);
  engine::ImageSourceOptions options{
      .device = device,
      .model_id = flags.model_ref,
      .activations = arithmetic.activations,
      .int8 = arithmetic.int8,
      .offload = models::offloaded_parts(flags.offload),
      .tiled_vae = flags.vae_tiling,
      .control_nets = local.control_nets,
      .upscale_models = {flags.upscale_models.begin(), flags.upscale_models.end()},
      .vae = flags.vae,
      .taesd = flags.taesd,
      .clip_l = flags.clip_l,
      .clip_g = flags.clip_g,
      .t5xxl = flags.t5xxl,
      .llm = flags.llm,
      .lora_folder = flags.loras,
      .embeddings = flags.embeddings,
      .prediction_type = std::nullopt,
      .progress = {}};
  if (flags.prediction != "auto") options.prediction_type = flags.prediction;
  return options;
}

engine::ImageSource load_source(const Local& local, Device& device, server::LoadingState& loading) {
  const SdFlags& flags = local.flags;
  log(LogLevel::info, "loading the model",
      {{"model", flags.model},
       {"device", device.description()},
       {"captured_steps", device.supports_capture() ? "yes" : "no"}});
  engine::ImageSourceOptions options = source_options(local, &device);
  options.progress = load_progress(loading);
  engine::ImageSource source = engine::load_image_source(flags.model, options);
  const std::string_view expected = expected_architecture(flags.version);
  if (!expected.empty() && expected != source.info.architecture) {
    log(LogLevel::warn, "the model is not what --sd-version says",
        {{"version", flags.version}, {"architecture", source.info.architecture}});
  }
  log(LogLevel::info, "the model is loaded",
      {{"id", source.info.id},
       {"architecture", source.info.architecture},
       {"dtype", source.info.dtype},
       {"parameters", cat(source.info.parameters)},
       {"bytes", cat(source.info.weight_bytes)}});
  return source;
}

}  // namespace

std::unique_ptr<engine::ImageEngine> load_image_engine(const BackendInfo& backend,
                                                       const SdFlags& given,
                                                       server::LoadingState& loading) {
  const WorkerDevice wanted(
      backend, {.threads = given.threads, .any = given.any_device, .device = given.device});
  const Local local = with_local_paths(given, wanted, loading);
  Device& device = wanted.open([&] {
    return engine::image_model_memory(local.flags.model, source_options(local, nullptr));
  });
  try {
    return engine::make_image_engine(load_source(local, device, loading));
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(Code::out_of_memory, "load", error.what(),
         "; --offload all, --dtype f16 or bf16, or a smaller quantization of the model takes less");
  }
}

}  // namespace rbee::workers
