#include "rbee/text/pipeline.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "rbee/core/error.h"
#include "rbee/text/turn_ends.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;  // places in a word are 32 bits
constexpr size_t kCachedText = 2048;          // a shorter text hardly repeats its words

}  // namespace

// State of one encode().
struct PipelineTokenizer::Run {
  EncodeOptions options;
  TokenizeScratch scratch;
  std::deque<std::string> rewritten;  // texts that words and the word cache point into
  std::vector<TokenId> ids;
};

PipelineTokenizer::PipelineTokenizer(PipelineParts parts) : parts_(std::move(parts)) {
  special_.resize(static_cast<size_t>(parts_.vocab->size()));
  std::vector<AddedTokenFinder::Key> raw, normalized;
  for (const AddedToken& token : parts_.added) {
    if (token.special) special_[static_cast<size_t>(token.id)] = true;
    std::string text = token.content;
    if (token.normalized && parts_.normalizer) parts_.normalizer->apply(text);
    if (!text.empty()) (token.normalized ? normalized : raw).push_back({std::move(text), &token});
  }
  raw_finder_ = AddedTokenFinder(std::move(raw));
  normalized_finder_ = AddedTokenFinder(std::move(normalized));
  bos_ = parts_.bos;
  eos_ = parts_.eos;
  find_end_tokens();
}

void PipelineTokenizer::find_end_tokens() {
  end_tokens_ = parts_.end_tokens;
  if (eos_) end_tokens_.push_back(*eos_);
  const auto is_special = [this](TokenId id) { return this->is_special(id); };
  std::ranges::copy_if(find_turn_ends(*parts_.vocab, is_special), std::back_inserter(end_tokens_),
                       is_special);
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
}

std::vector<TokenId> PipelineTokenizer::encode(std::string_view text, EncodeOptions options) const {
  check(text.size() <= kMaxText, "tokenizer", "a text of ", text.size(), " bytes is too long");
  Run run;
  run.options = options;
  run.scratch.use_cache = text.size() > kCachedText;
  if (!utf8_valid(text)) text = run.rewritten.emplace_back(utf8_repaired(text));
  run.ids.reserve(text.size() / 4 + parts_.prefix.size() + parts_.suffix.size() + 4);
  if (options.add_special) run.ids = parts_.prefix;
  std::vector<Section> sections;
  raw_finder_.find(text, options.parse_special, sections);
  TokenId before = -1;
  for (const Section& section : sections) {
    if (section.id >= 0) {
      run.ids.push_back(section.id);
    } else {
      encode_text(section.text, section.text.data() == text.data(),
                  before < 0 || is_special(before), run);
    }
    before = section.id;
  }
  if (options.add_special) {
    run.ids.insert(run.ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  }
  return std::move(run.ids);
}

void PipelineTokenizer::encode_text(std::string_view text, bool at_start, bool prefixed,
                                    Run& run) const {
  if (parts_.normalizer) {
    std::string& normalized = run.rewritten.emplace_back(text);
    parts_.normalizer->apply(normalized);
    if (prefixed && !normalized.empty()) normalized.insert(0, parts_.section_prefix);
    text = normalized;
  }
  std::vector<Section> sections;
  normalized_finder_.find(text, run.options.parse_special, sections);
  for (const Section& section : sections) {
    if (section.id >= 0) {
      run.ids.push_back(section.id);
      continue;
    }
    Words words{{section.text}, at_start && section.text.data() == text.data(), &run.rewritten};
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(words);
    for (const std::string_view word : words.items) {
      if (!word.empty()) parts_.model->tokenize(word, run.scratch, run.ids);
    }
  }
}

std::string PipelineTokenizer::piece(TokenId id, bool special) const {
  if (!parts_.vocab->has(id) || (!special && is_special(id))) return {};
  return parts_.decoder.apply(std::string(parts_.vocab->text(id)));
}

std::optional<TokenId> PipelineTokenizer::find(std::string_view token) const {
  return parts_.vocab->find(token);
}

bool PipelineTokenizer::is_special(TokenId id) const {
  return id >= 0 && static_cast<size_t>(id) < special_.size() && special_[static_cast<size_t>(id)];
}

}  // namespace rbee::text
