#include "cli/speculative_options.h"

namespace rbee::tools {

std::unique_ptr<engine::TextEngine> make_engine(const ModelOptions& model,
                                                const workers::SpeculativeFlags& flags,
                                                engine::LlmOptions options) {
  workers::check_speculative_flags(flags);
  engine::TextModel text = load(model);
  std::optional<engine::TextModel> draft;
  if (!flags.draft_model.empty()) {
    ModelOptions smaller = model;
    smaller.model = flags.draft_model;
    smaller.device = cat(text.device->id());  // both on one
    smaller.mmproj.clear();                   // draft tokens are texts
    smaller.pan_and_scan = "auto";
    smaller.context = text.info.context_length;
    draft = load(smaller);
  }
  options.speculative = flags.on();
  options.draft_tokens = flags.tokens;
  options.draft_min_p = flags.min_p;
  return engine::make_llm_engine(std::move(text), options, std::move(draft));
}

}  // namespace rbee::tools
