#pragma once
// A language model with its tokenizer, chat template and other data that a conversation needs.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/device.h"
#include "rbee/engine/api/text.h"
#include "rbee/engine/text/prompt/pan_and_scan.h"
#include "rbee/engine/text/prompt/tool_prompt.h"
#include "rbee/group/share.h"
#include "rbee/models/language_model.h"
#include "rbee/text/output/output_format.h"
#include "rbee/text/template/chat_template.h"
#include "rbee/text/tokenizer.h"

namespace rbee::io {
class Checkpoint;
}

namespace rbee::engine {

class TextGroup;

struct TextModelOptions {
  Device* device = nullptr;
  std::filesystem::path mmproj;  // the vision tower of a GGUF model; empty = none
  int64_t context = 0;           // tokens; 0 = the model's own, at most 4096
  // Layers on the device, as models::LoadOptions::gpu_layers; the CPU computes the others. 1 or
  // more; not used if the device is the CPU.
  int64_t gpu_layers = models::kAllLayers;
  // Layers whose experts the CPU computes, as models::LoadOptions::cpu_moe_layers; not used if the
  // device is the CPU.
  int64_t cpu_moe_layers = 0;
  // Tokens from which on a step takes the CPU's weights to the device, as
  // models::LoadOptions::op_offload_min_batch.
  int64_t op_offload_min_batch = 0;
  // The group that holds the model, of which this process is the leader; null: none.
  std::shared_ptr<TextGroup> group = {};
  // The part of the model that this rank holds; its view must outlive the model.
  group::Membership membership = {};
  std::string model_id;  // reported name; empty = from the checkpoint
  // What layers compute in. Absent: f32 where the host computes; else f16 for f16 weights, f32 for
  // f32 weights, bf16 for all others.
  std::optional<DType> activations;
  std::optional<bool> pan_and_scan;  // absent: as the checkpoint's files say
  // Jinja source that replaces the checkpoint's template; empty: keep that. One that cannot be used
  // is an error.
  std::string chat_template;
  bool sampling_defaults = true;  // use those of the checkpoint
  bool expert_parallel = false;   // as models::LoadOptions::expert_parallel
  // How the model writes calls and reasoning; absent: as its chat template does.
  std::optional<text::ToolFormat> tools;
  std::optional<text::ReasoningFormat> reasoning;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of weights loaded
};

struct TextModel {
  Device* device = nullptr;
  std::shared_ptr<TextGroup> group;  // before the model, which talks through it; null: none
  std::unique_ptr<models::LanguageModel> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::ChatTemplate> chat_template;  // null: the checkpoint has none
  bool given_template = false;  // it replaces the checkpoint's: perhaps written for llama-server
  std::unique_ptr<text::ChatTemplate> tool_template;  // for chats with tools; null: the same
  std::vector<text::TokenId> end_tokens;              // any of them ends a turn
  text::OutputFormat format;                          // of its calls and reasoning
  ToolPromptPlace tool_prompt_place = ToolPromptPlace::chat_template;  // in chats with tools
  ModelInfo info;                                                      // kv_cache_bytes left at 0
  text::TokenId picture_token = 0;  // stands for each of a picture's tokens
  PanAndScan pan_and_scan;          // how pictures are also shown in parts

  // The text of a request's prompt: its messages through the chat template, or its raw prompt.
  // Throws invalid_argument.
  std::string prompt_of(const TextRequest& request) const;
  // Token ids of that text, or the request's own. The template writes special tokens itself; a raw
  // prompt gets those that the model wants at its ends. Throws invalid_argument for unknown ids,
  // and if the text has too few or too many places for the request's pictures.
  struct Encoded {
    std::vector<text::TokenId> tokens;
    std::vector<int64_t> pictures;  // the first of the info.picture_tokens tokens of each square
  };
  // pictures: read_pictures() of the request; may be left out if none has parts.
  Encoded encode(const TextRequest& request, std::string_view prompt,
                 std::span<const PictureSquares> pictures = {}) const;
  std::string render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const;
};

// path: a .gguf file, a .safetensors file with its config.json, or a Hugging Face folder. Throws
// not_found, io, unsupported or invalid_argument naming the file and field.
TextModel load_text_model(const std::filesystem::path& path, const TextModelOptions& options);

// The weights alone, for a rank that is no leader. Throws as load_text_model().
std::unique_ptr<models::LanguageModel> load_rank_model(const std::filesystem::path& path,
                                                       const TextModelOptions& options);

// The default of TextModelOptions::activations.
DType default_activations(const io::Checkpoint& checkpoint, const Device& device);

// Only the chat template of a checkpoint; null: it has none, or none that can be used.
std::unique_ptr<text::ChatTemplate> load_chat_template(const io::Checkpoint& checkpoint);

// Only the tokenizer of a checkpoint. Sets `kind` to "gguf-bpe", "gguf-spm", "gguf-unigram",
// "gguf-wordpiece" or "hf-json".
std::unique_ptr<text::Tokenizer> load_tokenizer(const io::Checkpoint& checkpoint,
                                                std::string* kind = nullptr);

}  // namespace rbee::engine
