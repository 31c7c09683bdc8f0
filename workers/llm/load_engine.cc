#include "workers/llm/load_engine.h"

#include <cmath>
#include <cstdlib>

#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/engine/embedding/engine.h"
#include "rbee/engine/text/llm_engine.h"
#include "rbee/engine/text/model_place.h"
#include "workers/common/group_flags.h"
#include "workers/common/loading.h"
#include "workers/common/model_paths.h"
#include "workers/common/stop_signals.h"
#include "workers/device/worker_device.h"
#include "workers/llm/group.h"
#include "workers/llm/rank_devices.h"

namespace rbee::workers {
namespace {

// The text of --chat-template; empty without one.
std::string template_source(const Flags& flags) {
  if (flags.chat_template.empty()) return {};
  std::string text = read_file(flags.chat_template);
  check(!text.empty(), "chat template", flags.chat_template, " is empty");
  return text;
}

engine::TextModelOptions text_options(const Flags& flags, Device* device) {
  engine::TextModelOptions options{.device = device,
                                   .mmproj = flags.mmproj,
                                   .context = flags.context,
                                   .op_offload_min_batch = flags.gpu_layers.op_offload_min_batch,
                                   .model_id = flags.model_ref};
  options.chat_template = template_source(flags);
  options.sampling_defaults = flags.generation == "auto";
  if (flags.pan_and_scan != "auto") options.pan_and_scan = flags.pan_and_scan == "on";
  if (flags.dtype != "auto") options.activations = parse_dtype(flags.dtype);
  options.tools = text::parse_tool_format(flags.tool_parser);
  options.reasoning = text::parse_reasoning_format(flags.reasoning_parser);
  return options;
}

// Where the model goes.
struct Place {
  Device& device;
  int64_t gpu_layers, cpu_moe_layers;
};

engine::TextModelOptions loading_options(const Flags& flags, const Place& place,
                                         server::LoadingState& loading) {
  engine::TextModelOptions options = text_options(flags, &place.device);
  options.gpu_layers = place.gpu_layers;
  options.cpu_moe_layers = place.cpu_moe_layers;
  options.progress = load_progress(loading);
  return options;
}

bool makes_embeddings(const Flags& flags) {
  return flags.pooling != "auto" || engine::is_for_embeddings(flags.model);
}

// The device of this process, if it is one of several ranks.
std::optional<DeviceId> rank_device(const Flags& flags) {
  const group::RankPlace place = group_place(flags.group);
  if (place.ranks == 1) {
    check(!flags.several_devices, "--device", "'", flags.device_text,
          "' is for several ranks, of --tensor-parallel-size");
    return std::nullopt;
  }
  std::string text = cat(DeviceId{flags.kind, flags.device});
  if (flags.any_device) text = "auto";
  if (flags.several_devices) {
    const bool number = flags.device_text.find_first_of("0123456789") == 0;
    text = cat(number ? cat(name(flags.kind), ":") : "", flags.device_text);
  }
  return rank_devices(backends(), text, place.local_ranks,
                      place.first_local)[static_cast<size_t>(place.local_rank)];
}

Place place_model(const Flags& flags, const WorkerDevice& wanted) {
  const std::optional<int64_t> layers = flags.gpu_layers.count();
  if (const auto own = rank_device(flags)) {
    return {get_device(*own), layers.value_or(models::kAllLayers), 0};
  }
  // A GPU that cannot be used is told before the files are read.
  if (const auto named = wanted.named(); named && layers != 0) (void)get_device(*named);
  const engine::TextModelOptions options = text_options(flags, nullptr);
  engine::PlaceWanted asked{.device = wanted.named(),
                            .gpu_layers = layers,
                            .cpu_moe_layers = flags.gpu_layers.experts(),
                            .one_device = makes_embeddings(flags)};
  const std::string& draft = flags.speculative.draft_model;
  if (!draft.empty()) {
    asked.beside = engine::text_model_memory(draft, {.context = options.context});
  }
  const engine::ModelPlace place =
      engine::place_text_model(backends(), asked, flags.model, options);
  if (!place.reason.empty()) {
    log(LogLevel::info, place.reason,
        {{"device", cat(place.device)},
         {"free_bytes", cat(place.free)},
         {"needed_bytes", cat(place.needed)},
         {"faults", place.faults}});
  }
  return {get_device(place.device), place.gpu_layers, place.cpu_moe_layers};
}

GroupTerms group_terms(const Flags& flags) {
  return {.program = RBEE_VERSION,
          .flags = cat("context ", flags.context, ", dtype ", flags.dtype)};
}

std::optional<DType> cache_type(const Flags& flags) {
  return flags.cache_type == "auto" ? std::nullopt : std::optional(parse_dtype(flags.cache_type));
}

// Of several ranks, starts the others.
void lead_group(const Flags& flags, engine::TextModelOptions& options) {
  const group::RankPlace place = group_place(flags.group);
  if (place.ranks == 1) return;
  GroupWishes wishes{
      .pictures = !flags.mmproj.empty(),
      .cpu_moe = flags.gpu_layers.cpu_moe || flags.gpu_layers.experts().value_or(0) > 0};
  if (flags.group.expert_parallel) wishes.expert_parallel = options.device->id().kind;
  check_group(place, wishes);
  // The engine's thread ends the worker as it does when a device is lost; this ends it if that
  // thread never comes to it, as while it loads.
  const auto on_lost = [](const std::string&) { end_within(kGroupEndTime, kGroupLost); };
  start_group(flags.group, flags.model, group_terms(flags), on_lost, options);
}

void log_loaded(const engine::ModelInfo& info) {
  log(LogLevel::info, "the model is loaded",
      {{"id", info.id},
       {"architecture", info.architecture},
       {"quantization", info.quantization},
       {"context", cat(info.context_length)},
       {"bytes", cat(info.weight_bytes)}});
}

std::unique_ptr<engine::EmbeddingEngine> load_embeddings(const Flags& flags, const Place& place,
                                                         server::LoadingState& loading) {
  if (!flags.loras.empty() || flags.lora_loading) {
    fail(Code::unsupported, "--lora", "adapters of models for embeddings are not implemented");
  }
  engine::EmbeddingSource source = engine::load_embedding_source(
      flags.model, loading_options(flags, place, loading), flags.pooling);
  log_loaded(source.info.model);
  log(LogLevel::info,
      source.info.ranks ? "the model ranks documents" : "the model makes embeddings",
      {{"pooling", source.info.pooling}, {"dimensions", cat(source.info.dimensions)}});
  engine::EmbeddingOptions options{.max_waiting = flags.max_waiting};
  if (flags.step_tokens > 0) options.pass_tokens = flags.step_tokens;
  return engine::make_embedding_engine(std::move(source), options);
}

std::optional<engine::TextModel> load_draft(const Flags& flags, const Place& place,
                                            const engine::ModelInfo& target,
                                            server::LoadingState& loading) {
  if (flags.speculative.draft_model.empty()) return std::nullopt;
  engine::TextModelOptions options = loading_options(flags, place, loading);
  options.gpu_layers = models::kAllLayers;
  options.cpu_moe_layers = 0;
  options.context = target.context_length;
  options.mmproj.clear();  // draft tokens are texts
  options.chat_template.clear();
  options.model_id.clear();
  options.pan_and_scan.reset();
  engine::TextModel out = engine::load_text_model(flags.speculative.draft_model, options);
  log(LogLevel::info, "the draft model is loaded",
      {{"id", out.info.id},
       {"quantization", out.info.quantization},
       {"bytes", cat(out.info.weight_bytes)}});
  return out;
}

// vLLM's variable. There it is random without it; here it is 0, so that restarts change no hash.
std::string hash_seed() {
  const char* const seed = std::getenv("PYTHONHASHSEED");
  return seed == nullptr ? "0" : seed;
}

std::unique_ptr<engine::TextEngine> load_chat(const Flags& flags, const Place& place,
                                              server::LoadingState& loading) {
  engine::LlmOptions options{
      .max_running = flags.max_running,
      .max_waiting = flags.max_waiting,
      .priorities = flags.scheduling == "priority",
      .step_tokens = flags.step_tokens,
      .cache_tokens = flags.cache_tokens,
      .loras = flags.loras,
      .speculative = flags.speculative.on(),
      .draft_tokens = flags.speculative.tokens,
      .max_pictures = flags.max_pictures,
      .picture_cache_bytes = flags.picture_cache_mib << 20,
      .grammar_cache_bytes = flags.grammar_cache_mib << 20,
      .draft_min_p = flags.speculative.min_p,
      .kv_dtype = cache_type(flags),
      .kv_offload = flags.gpu_layers.kv_offload,
      .host_cache_bytes = std::llround(flags.host_cache_gib * 0x1p30),
      .kv_event_batches = flags.kv_events.enabled ? flags.kv_events.buffer_steps : 0,
      .kv_event_seed = hash_seed()};
  engine::TextModelOptions loading_with = loading_options(flags, place, loading);
  lead_group(flags, loading_with);
  engine::TextModel model = engine::load_text_model(flags.model, loading_with);
  log_loaded(model.info);
  log(LogLevel::info, "how answers are read",
      {{"tool_parser", std::string(text::name_of(model.format.tools))},
       {"reasoning_parser", std::string(text::name_of(model.format.reasoning))}});
  if (model.tool_prompt_place != engine::ToolPromptPlace::chat_template) {
    const bool asked = flags.tool_parser != "auto";
    log(asked ? LogLevel::warn : LogLevel::info,
        "the chat template does not show tools; the system message tells of them instead",
        {{"tool_parser", std::string(text::name_of(model.format.tools))}});
  }
  std::optional<engine::TextModel> draft = load_draft(flags, place, model.info, loading);
  return engine::make_llm_engine(std::move(model), options, std::move(draft));
}

void use_local_paths(Flags& flags, const WorkerDevice& device, server::LoadingState& loading) {
  ModelPaths paths([&] { return device.free_memory(); }, loading);
  paths.use(flags.model, flags.mmproj);
  paths.use(flags.speculative.draft_model);
  for (engine::LoraInfo& lora : flags.loras) paths.use(lora.path);
}

WorkerDevice worker_device(const BackendInfo& backend, const Flags& flags) {
  return {backend,
          {.threads = threads_of_rank(group_place(flags.group), flags.threads),
           .any = flags.any_device,
           .device = flags.device}};
}

}  // namespace

int follow_leader(const BackendInfo& backend, const Flags& flags) {
  worker_device(backend, flags);  // registers the CPU, and sets its number of threads
  engine::TextModelOptions options = text_options(flags, &get_device(rank_device(flags).value()));
  return run_rank(flags.group, group_terms(flags), options, cache_type(flags));
}

LoadedEngine load_engine(const BackendInfo& backend, Flags& flags, server::LoadingState& loading) {
  const WorkerDevice wanted = worker_device(backend, flags);
  use_local_paths(flags, wanted, loading);
  const Place place = place_model(flags, wanted);
  log(LogLevel::info, "loading the model",
      {{"model", flags.model},
       {"device", place.device.description()},
       {"captured_steps", place.device.supports_capture() ? "yes" : "no"}});
  try {
    if (makes_embeddings(flags)) {
      check_group(group_place(flags.group), {.embeddings = true});
      return load_embeddings(flags, place, loading);
    }
    return load_chat(flags, place, loading);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(
        Code::out_of_memory, "load", error.what(),
        "; fewer --gpu-layers, a smaller --context or --cache-tokens, --cache-type q8_0 or f8e4m3, "
        "or a smaller quantization of the model takes less");
  }
}

}  // namespace rbee::workers
