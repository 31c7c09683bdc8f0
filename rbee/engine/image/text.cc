#include "rbee/engine/image/text.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "rbee/engine/image/textual_inversion.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::engine {
namespace {

using diffusion::PromptChunk;
using models::TextEncoding;
using models::TextStates;

diffusion::PromptSyntax syntax_of(PromptRule rule) {
  switch (rule) {
    case PromptRule::a1111:
      return diffusion::PromptSyntax::a1111;
    case PromptRule::comfy:
      return diffusion::PromptSyntax::comfy;
    case PromptRule::none:
      return diffusion::PromptSyntax::none;
  }
  return diffusion::PromptSyntax::none;
}

// ComfyUI cuts words of this many tokens.
constexpr size_t kLongWord = 8;

// Texts that are weighed together, and chunks of one call of an encoder; more take no less time for
// each, but more memory.
constexpr size_t kTextsTogether = 4;
constexpr size_t kChunksTogether = 8;
// Of a request, in all its texts.
constexpr size_t kMaxChunks = 512;

// Along the first axis; all are undefined, or none is.
Tensor joined_parts(const std::vector<Tensor>& parts) {
  return parts.size() == 1 || !parts.front().defined() ? parts.front() : concat(parts, Axis{0});
}

class PromptEncoder {
 public:
  PromptEncoder(const ImageSource& source, const ImageRequest& request, size_t index,
                const models::Between& between)
      : source_(source),
        request_(request),
        between_(between),
        tokens_(source.tokenizers.at(index)),
        encoder_(*source.model.text.at(index).encoder) {
    options_.length = static_cast<int32_t>(encoder_.max_tokens());
    options_.start = tokens_.start;
    options_.end = tokens_.end;
    options_.pad = tokens_.pad;
    options_.single = tokens_.single;
    words_ = EmbeddedWords(source.embeddings, index, static_cast<int32_t>(encoder_.vocab_size()));
    if (request.prompt_rule == PromptRule::a1111) {
      options_.comma = tokens_.tokenizer->find(",</w>");
    }
  }

  std::vector<PromptChunk> chunks(const std::string& prompt) const;

  // One encoding of each text, whose chunks are given; each is filled up with empty chunks to
  // `count`, where there may be several.
  std::vector<TextEncoding> encode(std::span<const std::vector<PromptChunk>> texts,
                                   size_t count) const {
    std::vector<TextEncoding> out;
    while (!texts.empty()) {
      const size_t most = is_language() ? 1 : kTextsTogether;  // of any length
      const auto together = texts.first(std::min(texts.size(), most));
      append_encodings(together, options_.single ? 1 : count, out);
      texts = texts.subspan(together.size());
    }
    return out;
  }

 private:
  void append_encodings(std::span<const std::vector<PromptChunk>> texts, size_t count,
                        std::vector<TextEncoding>& out) const {
    const PromptChunk empty = chunks("").front();
    std::vector<PromptChunk> all;
    for (const std::vector<PromptChunk>& text : texts) {
      all.insert(all.end(), text.begin(), text.end());
      all.resize(all.size() + count - text.size(), empty);
    }
    // ComfyUI weighs no states of a language model.
    const bool a1111 = request_.prompt_rule == PromptRule::a1111;
    const bool ignored = a1111 ? request_.emphasis == Emphasis::ignore : is_language();
    const bool weighted = !ignored && std::ranges::any_of(all, &PromptChunk::weighted);
    const bool against_empty = weighted && request_.prompt_rule == PromptRule::comfy;
    const auto rows = static_cast<int64_t>(all.size()), share = static_cast<int64_t>(count);
    if (against_empty) all.push_back(empty);
    TextEncoding states = run(all);
    if (weighted) states.hidden = weighed(states.hidden, all, rows, against_empty);
    for (int64_t first = 0; first < rows; first += share) out.push_back(part(states, first, share));
  }

  bool is_language() const { return !tokens_.closes.empty(); }
  PromptChunk turn(const std::vector<diffusion::PromptPart>& parts,
                   const diffusion::Encode& encode) const;

  TextEncoding run(std::span<const PromptChunk> all) const {
    std::vector<Tensor> hidden, pooled;
    while (!all.empty()) {
      const auto together = all.first(std::min(all.size(), kChunksTogether));
      TextEncoding states = run_together(together);
      hidden.push_back(std::move(states.hidden));
      pooled.push_back(std::move(states.pooled));
      all = all.subspan(together.size());
    }
    return {joined_parts(hidden), joined_parts(pooled)};
  }

  TextEncoding run_together(std::span<const PromptChunk> all) const {
    if (between_) between_();
    std::vector<int32_t> ids;
    for (const PromptChunk& chunk : all) ids.insert(ids.end(), chunk.ids.begin(), chunk.ids.end());
    const std::vector<models::TokenVector> vectors = words_.take(ids, tokens_.pad);
    return encoder_({.ids = ids,
                     .batch = static_cast<int64_t>(all.size()),
                     .clip_skip = request_.clip_skip > 1 ? request_.clip_skip : 0,
                     .vectors = vectors});
  }

  Tensor weighed(const Tensor& hidden, const std::vector<PromptChunk>& all, int64_t rows,
                 bool against_empty) const {
    std::vector<float> values = hidden.to_host<float>();
    const size_t size = values.size() / all.size();
    const std::span<float> states(values);
    for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
      const std::span<float> chunk = states.subspan(i * size, size);
      if (against_empty) {
        weigh_states(chunk, all[i].weights, states.last(size));
      } else if (all[i].weighted()) {
        weigh_states(chunk, all[i].weights, request_.emphasis);
      }
    }
    return from_host<float>(values, hidden.shape(), *source_.device);
  }

  // Chunks `first` on of one prompt as one row: their states one after another, the first one's
  // pooled vector.
  static TextEncoding part(const TextEncoding& states, int64_t first, int64_t count) {
    const int64_t tokens = states.hidden.dim(1);
    const int64_t width = states.hidden.dim(2);
    TextEncoding out;
    out.hidden = states.hidden.slice(Axis{0}, first, count).reshape({1, count * tokens, width});
    if (states.pooled.defined()) out.pooled = states.pooled.slice(Axis{0}, first, 1);
    return out;
  }

  const ImageSource& source_;
  const ImageRequest& request_;
  const models::Between& between_;
  const PromptTokenizer& tokens_;
  const models::TextEncoder& encoder_;
  diffusion::ChunkOptions options_;
  EmbeddedWords words_;
};

std::vector<PromptChunk> PromptEncoder::chunks(const std::string& prompt) const {
  const auto plain = [&](std::string_view text) {
    return tokens_.tokenizer->encode(text, {.add_special = false, .parse_special = false});
  };
  const auto encode = [&](std::string_view text) { return words_.encode(text, plain); };
  const auto parts = diffusion::parse_prompt(prompt, syntax_of(request_.prompt_rule));
  diffusion::ChunkOptions options = options_;
  if (is_language()) return {turn(parts, encode)};
  const bool comfy = request_.prompt_rule == PromptRule::comfy;
  options.together = [&, comfy](int32_t id) -> size_t {
    const size_t vectors = words_.vectors_from(id);
    return comfy && vectors >= kLongWord ? 1 : vectors;
  };
  return diffusion::chunk_prompt(parts, encode, options);
}

// The prompt as a turn of a chat, cut off at the encoder's length. BREAK has no meaning there.
PromptChunk PromptEncoder::turn(const std::vector<diffusion::PromptPart>& parts,
                                const diffusion::Encode& encode) const {
  PromptChunk out;
  const auto append = [&](const std::vector<int32_t>& ids, float weight) {
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.weights.resize(out.ids.size(), weight);
  };
  if (tokens_.start) append({*tokens_.start}, 1);
  // Tokens may reach from the turn's opening into the prompt.
  std::string before = tokens_.opens;
  for (const diffusion::PromptPart& part : parts) {
    if (part.weight != 1 && !before.empty()) append(encode(std::exchange(before, {})), 1);
    append(encode(std::exchange(before, {}) + part.text), part.weight);
  }
  append(tokens_.closes, 1);
  const size_t most = std::min(out.ids.size(), static_cast<size_t>(encoder_.max_tokens()));
  out.ids.resize(most);
  out.weights.resize(most);
  return out;
}

Tensor zero_like(const Tensor& x) {
  return x.defined() ? zeros(x.shape(), x.dtype(), x.device()) : x;
}

// Contexts of one length, which is the longest one's, and the tokens of each row: of language
// models, whose texts have lengths of their own.
std::vector<TextStates> aligned(std::vector<TextStates> states) {
  const auto length = [](const TextStates& each) { return each.context.dim(1); };
  const int64_t most = std::ranges::max(states | std::views::transform(length));
  if (std::ranges::all_of(states, [&](const auto& each) { return length(each) == most; })) {
    return states;
  }
  for (TextStates& each : states) {
    const auto [rows, own, width] = each.context.dims<3>();
    if (each.tokens.empty()) each.tokens.assign(static_cast<size_t>(rows), own);
    if (own == most) continue;
    const Tensor& x = each.context;
    each.context = concat({x, zeros({rows, most - own, width}, x.dtype(), x.device())}, Axis{1});
  }
  return states;
}

Tensor joined_rows(const std::vector<TextStates>& states, Tensor TextStates::* member) {
  std::vector<Tensor> rows;
  rows.reserve(states.size());
  for (const TextStates& each : states) rows.push_back(each.*member);
  return joined_parts(rows);
}

double mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

PromptStates encode_prompts(const ImageSource& source, const ImageRequest& request,
                            const PromptTexts& texts, const models::Between& between) {
  std::vector<std::string> all = texts.positive;
  all.insert(all.end(), texts.negative.begin(), texts.negative.end());
  std::vector<PromptEncoder> encoders;
  std::vector<std::vector<std::vector<PromptChunk>>> chunks;  // of each encoder's texts
  size_t count = 1;
  for (size_t i = 0; i < source.model.text.size(); ++i) {
    encoders.emplace_back(source, request, i, between);
    auto& own = chunks.emplace_back();
    for (const std::string& text : all) {
      own.push_back(encoders.back().chunks(text));
      count = std::max(count, own.back().size());
      // Before further texts of that length are read.
      check(all.size() * count <= kMaxChunks, "prompt", all.size(), " texts of ", count,
            " chunks each are more than ", kMaxChunks,
            " chunks; make it shorter, or change it less");
    }
  }
  std::vector<std::vector<TextEncoding>> encodings(all.size());  // of each text
  for (size_t i = 0; i < encoders.size(); ++i) {
    const std::vector<TextEncoding> encoded = encoders[i].encode(chunks[i], count);
    for (size_t j = 0; j < encoded.size(); ++j) encodings[j].push_back(encoded[j]);
  }
  PromptStates out;
  const size_t positive = texts.positive.size();
  for (size_t i = 0; i < all.size(); ++i) {
    TextStates states = models::join_text(source.model, encodings[i]);
    if (i >= positive && source.model.zeros_for_empty_negative && all[i].empty()) {
      states.context = zero_like(states.context);
      states.pooled = zero_like(states.pooled);
    }
    (i < positive ? out.positive : out.negative).push_back(std::move(states));
  }
  if (out.negative.empty()) out.negative = out.positive;
  return out;
}

Tensor repeated_rows(const Tensor& x, int64_t count) {
  if (!x.defined() || count == 1) return x;
  const std::vector<Tensor> rows(static_cast<size_t>(count), x);
  return concat(rows, Axis{0});
}

TextStates repeated(const TextStates& states, int64_t count) {
  return {repeated_rows(states.context, count), repeated_rows(states.pooled, count),
          repeated_rows(states.size_ids, count), repeated_rows(states.guidance, count)};
}

TextStates joined(const std::vector<TextStates>& all) {
  const std::vector<TextStates> states = aligned(all);
  TextStates out{
      joined_rows(states, &TextStates::context), joined_rows(states, &TextStates::pooled),
      joined_rows(states, &TextStates::size_ids), joined_rows(states, &TextStates::guidance)};
  for (const TextStates& each : states) {
    out.tokens.insert(out.tokens.end(), each.tokens.begin(), each.tokens.end());
  }
  return out;
}

void weigh_states(std::span<float> hidden, std::span<const float> weights, Emphasis emphasis) {
  const double before = mean(hidden);
  const size_t width = hidden.size() / weights.size();
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] *= weights[i / width];
  if (emphasis == Emphasis::no_norm) return;
  const double after = mean(hidden);
  if (after == 0) return;
  for (float& value : hidden) value *= static_cast<float>(before / after);
}

void weigh_states(std::span<float> hidden, std::span<const float> weights,
                  std::span<const float> empty) {
  const size_t width = hidden.size() / weights.size();
  for (size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = empty[i] + weights[i / width] * (hidden[i] - empty[i]);
  }
}

}  // namespace rbee::engine
