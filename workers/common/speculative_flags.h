#pragma once
// Command-line flags for draft tokens (speculative decoding).

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace rbee::workers {

struct SpeculativeFlags {
  std::string kind;         // off, ngram or draft; empty: draft if there is a draft model, else off
  std::string draft_model;  // file or folder; empty: none
  int32_t tokens = 8;       // most draft tokens of a step
  float min_p = 0;          // see engine::LlmOptions::draft_min_p

  // For requests that do not say.
  bool on() const { return kind.empty() ? !draft_model.empty() : kind != "off"; }
};

void add_speculative_flags(CLI::App& app, SpeculativeFlags& flags);
// Throws CLI::ValidationError if they contradict one another.
void check_speculative_flags(const SpeculativeFlags& flags);

}  // namespace rbee::workers
