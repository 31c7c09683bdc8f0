#include "rbee/engine/embedding/rerank_prompt.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

constexpr std::string_view kInstruction = "{instruction}", kQuery = "{query}",
                           kDocument = "{document}";
// Of Qwen3's rankers, where a request has none; files of llama.cpp's converter hold it as text.
constexpr std::string_view kUsual =
    "Given a web search query, retrieve relevant passages that answer the query";

}  // namespace

RerankPrompt::RerankPrompt(std::string_view form, const text::Tokenizer& tokenizer) {
  std::string all(form);
  const size_t usual = all.find(kUsual);
  if (all.find(kInstruction) == all.npos && usual != all.npos) {
    all.replace(usual, kUsual.size(), kInstruction);
  }
  const size_t query = all.find(kQuery), document = all.find(kDocument);
  const size_t instruction = all.find(kInstruction);
  takes_instruction_ = instruction != all.npos;
  if (query == all.npos || document == all.npos || query > document ||
      (takes_instruction_ && instruction > query)) {
    fail(Code::unsupported, "rerank", "the template of pairs is \"", form,
         "\", wanted {query} and then {document}");
  }
  const size_t line = all.rfind('\n', takes_instruction_ ? instruction : query);
  const size_t first = line == all.npos ? 0 : line + 1;
  const size_t end = document + kDocument.size();
  before_ = tokenizer.encode(all.substr(0, first), {.add_special = false});
  after_ = tokenizer.encode(all.substr(end), {.add_special = false});
  body_ = all.substr(first, end - first);
}

std::string RerankPrompt::fill(const TextPair& pair) const {
  const std::string& asked = pair.instruction.text();
  const std::string_view instruction = asked.empty() ? kUsual : asked;
  std::string out;
  for (size_t at = 0; at < body_.size();) {
    const std::string_view rest = std::string_view(body_).substr(at);
    if (rest.starts_with(kInstruction)) {
      out += instruction;
      at += kInstruction.size();
    } else if (rest.starts_with(kQuery)) {
      out += pair.query.text();
      at += kQuery.size();
    } else if (rest.starts_with(kDocument)) {
      out += pair.document;
      at += kDocument.size();
    } else {
      out += body_[at++];
    }
  }
  return out;
}

std::vector<int32_t> RerankPrompt::encode(const TextPair& pair, const text::Tokenizer& tokenizer,
                                          int64_t most) const {
  constexpr text::EncodeOptions kPlain{.add_special = false, .parse_special = false};
  std::vector<int32_t> body = tokenizer.encode(fill(pair), kPlain);
  const int64_t room = most - std::ssize(before_) - std::ssize(after_);
  if (std::ssize(body) > room) {
    const TextPair without{.query = pair.query, .document = {}, .instruction = pair.instruction};
    const int64_t kept = std::ssize(tokenizer.encode(fill(without), kPlain));
    check(kept <= room, "truncate_prompt_tokens", "a query takes ", most - room + kept,
          " tokens without its document; ", most, " are kept");
    body.resize(static_cast<size_t>(room));
  }
  std::vector<int32_t> ids = before_;
  ids.insert(ids.end(), body.begin(), body.end());
  ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

}  // namespace rbee::engine
