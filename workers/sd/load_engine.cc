#include "workers/sd/load_engine.h"

#include "backends/cpu/control_groups.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/core/log.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/engine/image/engine.h"
#include "rbee/engine/image/model_memory.h"
#include "workers/common/threads.h"

namespace rbee::workers {
namespace {

// needed: as for engine::choose_device().
Device& open_device(const BackendInfo& backend, const SdFlags& flags,
                    const std::function<int64_t()>& needed) {
  cpu::set_thread_count(thread_count(flags.threads, processors(cpu::ControlGroups().processors())));
  register_backend(cpu::cpu_backend());
  register_backend(backend);
  if (flags.any_device) return engine::open_chosen_device(needed);
  // There is one CPU, whatever number a hive gives it.
  return get_device({backend.kind, backend.kind == DeviceKind::cpu ? 0 : flags.device});
}

// The architecture for a hive's model version; empty: any.
std::string_view expected_architecture(std::string_view version) {
  if (version.starts_with("flux")) return "flux";
  if (version.starts_with("3")) return "sd3";
  if (version.starts_with("xl") || version == "turbo") return "sdxl";
  if (version.find('2') != std::string_view::npos) return "sd2";
  return version.empty() ? "" : "sd1";
}

engine::ImageSourceOptions source_options(const SdFlags& flags, Device* device) {
  const models::ImageArithmetic arithmetic = models::image_arithmetic(flags.dtype);
  engine::ImageSourceOptions options{
      .device = device,
      .model_id = flags.model_ref,
      .activations = arithmetic.activations,
      .int8 = arithmetic.int8,
      .offload = models::offloaded_parts(flags.offload),
      .tiled_vae = flags.vae_tiling,
      .control_nets = {flags.control_nets.begin(), flags.control_nets.end()},
      .upscale_models = {flags.upscale_models.begin(), flags.upscale_models.end()},
      .vae = flags.vae,
      .taesd = flags.taesd,
      .clip_l = flags.clip_l,
      .clip_g = flags.clip_g,
      .t5xxl = flags.t5xxl,
      .lora_folder = flags.loras,
      .embeddings = flags.embeddings,
      .prediction_type = std::nullopt,
      .progress = {}};
  if (flags.prediction != "auto") options.prediction_type = flags.prediction;
  return options;
}

engine::ImageSource load_source(const SdFlags& flags, Device& device) {
  log(LogLevel::info, "loading the model",
      {{"model", flags.model},
       {"device", device.description()},
       {"captured_steps", device.supports_capture() ? "yes" : "no"}});
  engine::ImageSource source =
      engine::load_image_source(flags.model, source_options(flags, &device));
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
                                                       const SdFlags& flags) {
  Device& device = open_device(backend, flags, [&] {
    return engine::image_model_memory(flags.model, source_options(flags, nullptr));
  });
  try {
    return engine::make_image_engine(load_source(flags, device));
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(Code::out_of_memory, "load", error.what(),
         "; --offload all, --dtype f16 or bf16, or a smaller quantization of the model takes less");
  }
}

}  // namespace rbee::workers
