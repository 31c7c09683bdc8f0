#include "workers/common/speculative_flags.h"

#include <CLI/CLI.hpp>

namespace rbee::workers {

void add_speculative_flags(CLI::App& app, SpeculativeFlags& flags) {
  app.add_option("--speculative", flags.kind,
                 "Source of draft tokens unless a request says otherwise: the text (ngram) or a "
                 "smaller model (draft); default: draft with --draft-model, else off")
      ->check(CLI::IsMember({"off", "ngram", "draft"}));
  app.add_option("--draft-model", flags.draft_model,
                 "A smaller model with the same vocabulary that drafts tokens ahead");
  app.add_option("--draft-tokens", flags.tokens, "Most draft tokens of a step")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--draft-min-p", flags.min_p,
                 "A draft model stops drafting if no token is at least this probable")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

void check_speculative_flags(const SpeculativeFlags& flags) {
  if (flags.kind == "draft" && flags.draft_model.empty()) {
    throw CLI::ValidationError("--speculative", "draft needs a --draft-model");
  }
  if (flags.kind == "ngram" && !flags.draft_model.empty()) {
    throw CLI::ValidationError("--speculative", "ngram has no use for a --draft-model");
  }
}

}  // namespace rbee::workers
