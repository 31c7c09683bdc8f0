#include "cli/speculative_options.h"

#include "cli/model_paths.h"

namespace rbee::tools {

std::unique_ptr<engine::TextEngine> make_engine(ModelOptions model,
                                                const workers::SpeculativeFlags& flags,
                                                engine::LlmOptions options) {
  workers::check_speculative_flags(flags);
  follow_if_rank(model);
  use_local_paths(model);
  engine::TextModel text = load(model);
  std::optional<engine::TextModel> draft;
  if (!flags.draft_model.empty()) {
    ModelOptions smaller = model;
    smaller.model = flags.draft_model;
    smaller.device = cat(text.device->id());  // both on one
    use_local_path(smaller.model, smaller.device);
    smaller.group = {};  // the leader alone drafts
    smaller.gpu_layers = {.layers = "all", .cpu_moe_layers = "0"};
    smaller.model_id.clear();
    smaller.mmproj.clear();  // draft tokens are texts
    smaller.pan_and_scan = "auto";
    smaller.context = text.info.context_length;
    draft = load(smaller);
  }
  for (engine::LoraInfo& lora : options.loras) use_local_path(lora.path, model.device);
  options.kv_offload = model.gpu_layers.kv_offload;
  options.speculative = flags.on();
  options.draft_tokens = flags.tokens;
  options.draft_min_p = flags.min_p;
  return engine::make_llm_engine(std::move(text), options, std::move(draft));
}

}  // namespace rbee::tools
