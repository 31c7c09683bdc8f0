#include "workers/sd/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "rbee/core/cat.h"
#include "workers/common/flags.h"
#include "workers/common/model_paths.h"

namespace rbee::workers {
namespace {

// Flags that hives pass and this worker has no use for.
struct Tolerated {
  std::string callback_url;
  bool flash_attention = false;
  bool f16 = false;
  bool offload_all = false;
};

void add_memory_flags(CLI::App& app, SdFlags& flags, Tolerated& tolerated) {
  app.add_option("--offload", flags.offload,
                 "Parts that leave the device between their uses, for less memory: text, denoiser, "
                 "vae (separated by commas), or all")
      ->delimiter(',')
      ->check(CLI::IsMember({"text", "denoiser", "vae", "all"}));
  app.add_flag("--offload-to-cpu", tolerated.offload_all, "As --offload all");
  app.add_flag(
      "--vae-tiling", flags.vae_tiling,
      "Decode every picture in tiles; else only if a request asks for it, or memory runs out");
}

void add_flags(CLI::App& app, SdFlags& flags, Tolerated& tolerated) {
  app.add_option(
         "--model-path,--model", flags.model,
         "Folder in diffusers' layout, a single .safetensors or .gguf file, hf:org/repo, or "
         "a name of --sd-version; absent: --model-ref, if it begins with hf:, or "
         "--sd-version")
      ->envname("MODEL_PATH");
  app.add_option(
         "--sd-version", flags.version,
         "A short name of the model, which the hive sets. The worker reads the kind from the "
         "files, and logs it if the name says another")
      ->envname("SD_VERSION")
      ->check(CLI::IsMember(hub::short_names()));
  app.add_option("--model-ref", flags.model_ref, "Name reported for the model");
  add_common_flags(app, flags);
  app.get_option("--worker-id")->envname("WORKER_ID");
  app.get_option("--port")->envname("PORT");
  app.add_option("--callback-url", tolerated.callback_url, "Where heartbeats go without --hive-url")
      ->envname("CALLBACK_URL");
  app.add_option("--vae", flags.vae, "Another VAE, folder or file");
  app.add_option("--clip-l,--clip_l", flags.clip_l,
                 "CLIP-L of Stable Diffusion 1, XL, 3 or FLUX, folder or file");
  app.add_option("--clip-g,--clip_g", flags.clip_g, "CLIP-G of Stable Diffusion XL or 3");
  app.add_option("--t5xxl", flags.t5xxl, "T5 of Stable Diffusion 3 or FLUX");
  app.add_option("--llm", flags.llm, "Language model that encodes Z-Image's text, folder or file");
  app.add_option("--taesd", flags.taesd,
                 "Tiny autoencoder for previews, folder or file beside its config.json");
  app.add_option("--loras", flags.loras, "Folder of LoRAs that requests may name")
      ->default_str("<model>/loras");
  app.add_option("--embeddings", flags.embeddings,
                 "Textual inversions that prompts may use: a folder, or one file")
      ->default_str("<model>/embeddings");
  app.add_option("--control-net", flags.control_nets,
                 "ControlNet that requests may name, folder or file; may be given several times");
  app.add_option("--upscale-model", flags.upscale_models,
                 "ESRGAN or Real-ESRGAN file that requests may name; may be given several times");
  app.add_option("--prediction", flags.prediction,
                 "What the denoiser predicts; auto = as the files say, or what the family uses")
      ->check(CLI::IsMember({"auto", "epsilon", "v_prediction"}))
      ->capture_default_str();
  app.add_option("--dtype", flags.dtype,
                 "What layers compute in; auto = f32 on a CPU, f16 else; int8 is for CPUs")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "int8"}))
      ->capture_default_str();
  add_memory_flags(app, flags, tolerated);
  app.add_flag("--use-f16", tolerated.f16, "As --dtype f16")->envname("USE_F16");
  app.add_flag("--use-flash-attn", tolerated.flash_attention, "Always so; not used")
      ->envname("USE_FLASH_ATTN");
}

// CLI11 reads one variable for an option; here each kind of device has its own.
void device_from_environment(const CLI::App& app, SdFlags& flags) {
  if (app.count("--cuda-device") > 0 || !flags.device_text.empty()) return;
  std::string name(rbee::name(flags.kind));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  name += "_DEVICE";
  const char* text = std::getenv(name.c_str());
  if (text == nullptr) return;
  if (!CLI::detail::lexical_cast(text, flags.device) || flags.device < 0 || flags.device > 1023) {
    throw CLI::ValidationError(name, cat("\"", text, "\" is not a number from 0 to 1023"));
  }
}

// Throws CLI::RequiredError.
void find_model(SdFlags& flags) {
  if (flags.model.empty() && hub::is_hub_name(flags.model_ref)) flags.model = flags.model_ref;
  if (flags.model.empty() && !flags.version.empty()) {
    flags.model = hub::model_of_short_name(flags.version).value();
  }
  if (flags.model.empty()) throw CLI::RequiredError("--model-path");
}

void apply(const Tolerated& tolerated, const CLI::App& app, SdFlags& flags) {
  if (flags.model_ref.empty() && hub::is_hub_name(flags.model)) flags.model_ref = flags.model;
  if (flags.hive_url.empty()) flags.hive_url = tolerated.callback_url;
  if (tolerated.offload_all) flags.offload.emplace_back("all");
  if (tolerated.f16 && app.count("--dtype") == 0) flags.dtype = "f16";
}

}  // namespace

std::variant<SdFlags, int> parse_sd_flags(int argc, const char* const* argv,
                                          const Program& program) {
  CLI::App app("Serves an image model over HTTP.", program.name);
  SdFlags flags;
  flags.kind = program.kind;
  flags.port = 8081;
  Tolerated tolerated;
  add_flags(app, flags, tolerated);
  const auto status = parse_command_line(app, argc, argv, "sd-worker", flags, [&] {
    find_model(flags);
    device_from_environment(app, flags);
  });
  if (status) return *status;
  apply(tolerated, app, flags);
  return flags;
}

}  // namespace rbee::workers
