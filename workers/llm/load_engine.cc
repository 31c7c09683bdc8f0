#include "workers/llm/load_engine.h"

#include "backends/cpu/cpu_backend.h"
#include "rbee/core/log.h"
#include "rbee/engine/llm_engine.h"

namespace rbee::workers {
namespace {

Device& open_device(const BackendInfo& backend, const Flags& flags) {
  cpu::set_thread_count(flags.threads);
  register_backend(cpu::cpu_backend());
  register_backend(backend);
  // There is one CPU, whatever number a hive gives it.
  return get_device({backend.kind, backend.kind == DeviceKind::cpu ? 0 : flags.device});
}

engine::TextModel load_model(const Flags& flags, Device& device) {
  log(LogLevel::info, "loading the model",
      {{"model", flags.model}, {"device", device.description()}});
  int64_t quarters = 0;
  const auto progress = [&quarters](int64_t done, int64_t total) {
    const int64_t now = total > 0 ? done * 4 / total : 4;
    if (now <= quarters) return;
    quarters = now;
    log(LogLevel::info, "loading", {{"percent", cat(now * 25)}});
  };
  engine::TextModelOptions options{
      .device = &device, .context = flags.context, .progress = progress};
  if (flags.dtype != "auto") options.activations = parse_dtype(flags.dtype);
  options.tools = text::parse_tool_format(flags.tool_parser);
  options.reasoning = text::parse_reasoning_format(flags.reasoning_parser);
  engine::TextModel model = engine::load_text_model(flags.model, options);
  log(LogLevel::info, "the model is loaded",
      {{"id", model.info.id},
       {"architecture", model.info.architecture},
       {"quantization", model.info.quantization},
       {"context", cat(model.info.context_length)},
       {"tool_parser", std::string(text::name_of(model.format.tools))},
       {"reasoning_parser", std::string(text::name_of(model.format.reasoning))},
       {"bytes", cat(model.info.weight_bytes)}});
  return model;
}

}  // namespace

std::unique_ptr<engine::Engine> load_engine(const BackendInfo& backend, const Flags& flags) {
  engine::LlmOptions options{.max_running = flags.max_running,
                             .max_waiting = flags.max_waiting,
                             .step_tokens = flags.step_tokens,
                             .cache_tokens = flags.cache_tokens,
                             .speculative = flags.speculative == "ngram",
                             .draft_tokens = flags.draft_tokens};
  if (flags.cache_type != "auto") options.kv_dtype = parse_dtype(flags.cache_type);
  Device& device = open_device(backend, flags);
  try {
    return engine::make_llm_engine(load_model(flags, device), options);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(Code::out_of_memory, "load", error.what(),
         "; a smaller --context or --cache-tokens, --cache-type q8_0 or f8e4m3, or a smaller "
         "quantization of the "
         "model takes less");
  }
}

}  // namespace rbee::workers
