#pragma once
// A decoder-only language model as a text encoder: its hidden states behind chosen layers.

#include <memory>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/models/image/parts.h"
#include "rbee/models/language_model.h"

namespace rbee::models {

struct LanguageTextUse {
  // Layers whose states are read, the first is 1; rising. Later layers are not loaded.
  std::vector<int64_t> behind;
  int64_t max_tokens = 512;  // of a prompt
};

// The layers of the model in a checkpoint.
int64_t language_layers(const io::Checkpoint& checkpoint);

// A token sees itself and those before it. Has no pooled states and no clip_skip.
class LanguageTextEncoder final : public TextEncoder {
 public:
  // Loads the token table and the layers, not the output matrix. `options`: device, activations,
  // pack_weights, stash and progress are read. Throws as load_language_model(), and
  // invalid_argument for a layer that the model does not have.
  LanguageTextEncoder(const io::Checkpoint& checkpoint, const LoadOptions& options,
                      LanguageTextUse use);

  // Hidden states before the final norm, those of several layers side by side.
  TextEncoding operator()(const TextInput& input) const override;

  int64_t width() const override;
  int64_t pooled_width() const override { return 0; }
  int64_t max_tokens() const override { return use_.max_tokens; }
  int64_t vocab_size() const override { return model_->config().vocab_size; }
  int64_t layers() const override { return model_->config().layers; }
  int64_t weight_bytes() const { return model_->weight_bytes(); }
  int64_t parameters() const { return model_->parameters(); }

 private:
  void check_input(const TextInput& input) const;

  Device* device_;
  LanguageTextUse use_;
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace rbee::models
