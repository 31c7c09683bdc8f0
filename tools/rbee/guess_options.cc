#include "tools/rbee/guess_options.h"

namespace rbee::tools {

std::unique_ptr<engine::Engine> make_engine(const ModelOptions& model,
                                            const workers::GuessFlags& guess,
                                            engine::LlmOptions options) {
  workers::check_guess_flags(guess);
  engine::TextModel text = load(model);
  std::optional<engine::TextModel> draft;
  if (!guess.draft_model.empty()) {
    ModelOptions smaller = model;
    smaller.model = guess.draft_model;
    smaller.mmproj.clear();  // guesses are texts
    smaller.pan_and_scan = "auto";
    smaller.context = text.info.context_length;
    draft = load(smaller);
  }
  options.speculative = guess.on();
  options.draft_tokens = guess.tokens;
  options.draft_min_p = guess.min_p;
  return engine::make_llm_engine(std::move(text), options, std::move(draft));
}

}  // namespace rbee::tools
