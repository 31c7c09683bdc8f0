#include "rbee/text/turn_ends.h"

#include <array>
#include <initializer_list>
#include <string>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"

namespace rbee::text {
namespace {

constexpr std::array<std::string_view, 35> kTexts{
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>",
    "<turn|>",           // Gemma 4
    "<|tool_response>",  // Gemma 4, after a call
    "<|end|>",
    "<|return|>",  // GPT-OSS
    "<|call|>",    // GPT-OSS
    "<|calls|>",   // Solar Open
    "<|flush|>",   // Solar Open
    "<|endoftext|>", "<|end_of_text|>", "<|end_of_turn|>", "<|eot|>", "<|END_OF_TURN_TOKEN|>",
    "<EOT>", "_<EOT>", "\xE2\x96\x81<EOT>", "[EOT]", "[EOS]", "<|EOT|>", "<end_of_utterance>",
    "[e~[",  // MiniMax
    "</s>", "<eos>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",  // DeepSeek
    // Models that fill gaps in code write these after the gap: padding, or the next file.
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|repo_name|>", "<|fim_repo|>", "<fim-repo>",
    "<reponame>", "<|file_sep|>"};

bool has_all(const Vocab& vocab, std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) {
    if (!vocab.find(text)) return false;
  }
  return true;
}

}  // namespace

std::vector<TokenId> find_turn_ends(const Vocab& vocab,
                                    const std::function<bool(TokenId)>& is_special) {
  const bool several_messages =
      has_all(vocab, {"<|call|>", "<|return|>"}) || has_all(vocab, {"<|calls|>", "<|flush|>"});
  const auto begin = vocab.find("<s>");
  const bool knows_html = !begin || !is_special(*begin);
  std::vector<TokenId> ids;
  for (const std::string_view text : kTexts) {
    if (text == "<|end|>" && several_messages) continue;
    const auto id = vocab.find(text);
    if (!id || (text == "</s>" && knows_html && !is_special(*id))) continue;
    ids.push_back(*id);
  }
  return ids;
}

void warn_of_plain_turn_end(std::string_view text, TokenId id) {
  log(LogLevel::warn, "a token that ends a turn is no special token in the file; taken for one",
      {{"token", std::string(text)}, {"id", cat(id)}});
}

}  // namespace rbee::text
