#include "rbee/engine/text/llm_job.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <utility>

#include "rbee/engine/text/prompt/chat_prompt.h"

namespace rbee::engine {
namespace {

// Below 2^53, so that a JavaScript client can send it back.
uint64_t fresh_seed() {
  std::random_device device;
  return ((uint64_t{device()} << 32) | device()) & ((uint64_t{1} << 53) - 1);
}

// Work limits for masks: of a request's first mask on its thread, of each slice of that, and of a
// step's draft tokens.
constexpr int64_t kFirstMaskWork = 50'000'000;
constexpr int64_t kSlice = 20'000;
constexpr int64_t kDraftWork = 20'000;

// Draft tokens are drawn independently of the numbers that accept or reject them.
constexpr uint64_t kDraftSeed = 0x9e3779b97f4a7c15;

constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

// Mistral's templates accept only nine letters and digits.
std::string fresh_call_id(text::ToolFormat format) {
  const bool mistral =
      format == text::ToolFormat::mistral || format == text::ToolFormat::mistral_named;
  std::string out = mistral ? "" : "call_";
  std::random_device device;
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  for (int i = 0; i < (mistral ? 9 : 24); ++i) out += kLetters[letter(device)];
  return out;
}

// Kimi's templates show a result under its call's id, which names the function and counts the
// conversation's calls.
std::string kimi_call_id(const TextRequest& request, std::string_view name, int32_t call) {
  size_t before = 0;
  for (const ChatMessage& message : request.messages) before += message.tool_calls.size();
  return cat("functions.", name, ":", before + static_cast<size_t>(call));
}

// A leading space belongs to a text that continues another one, and to a grammar's text.
text::DecodeStream::LeadingSpaces spaces_of(const TextRequest& request, bool constrained) {
  using Spaces = text::DecodeStream::LeadingSpaces;
  const bool new_turn = !request.messages.empty() && !request.chat.continue_last;
  return new_turn && !constrained ? Spaces::dropped : Spaces::kept;
}

text::OutputParserOptions parser_options(const ChatOptions& chat, text::OutputFormat format,
                                         std::string_view prompt) {
  if (!chat.calls()) format.tools = text::ToolFormat::none;
  text::OutputParserOptions out{
      .format = format,
      .reasoning_open = end_of(prompt, format.reasoning) == PromptEnd::inside_reasoning,
      .functions = {}};
  out.calls_only = chat.tool_choice == ToolChoice::required;
  out.one_call = chat.one_call();
  for (const Tool& tool : chat.tools) out.functions.push_back({tool.name, tool.parameters});
  return out;
}

}  // namespace

LlmJob::LlmJob(TextRequest request, std::shared_ptr<EventSink> sink, KvBlockPool& pool,
               const TextModel& model, LlmJobOptions options)
    : Ticket(pool, request.client, request.user, request.priority),
      model_(model),
      request_(std::move(request)),
      sink_(std::move(sink)),
      seed_(request_.sampling.seed ? *request_.sampling.seed : fresh_seed()),
      lora_(std::move(options.lora)),
      sampler_(request_.sampling, seed_),
      detokenizer_(*model.tokenizer, spaces_of(request_, options.grammar != nullptr)),
      stops_(request_.stop),
      draft_length_(options.draft_tokens),
      draft_sampler_(request_.sampling, seed_ ^ kDraftSeed),
      pictures_(std::move(options.pictures)) {
  draft_sampler_.keep_distribution();
  if (request_.drawn_logprobs) sampler_.keep_distribution();
  allow_listed();
  for (const TakenLora& taken : lora_) sequence.lora.push_back({taken.adapter->slot, taken.scale});
  sequence.kv.set_mark(cache_mark(lora_, request_.cache_salt));
  sequence.kv.set_scope({.lora = names_of(lora_), .salt = request_.cache_salt});
  if (options.grammar) {
    constrained_.emplace(std::move(options.grammar));
    held = true;
    find_first_mask();
  }
  encode(options.prompt);
}

void LlmJob::allow_listed() {
  if (request_.allowed_ids.empty()) return;
  allowed_.resize(static_cast<size_t>(model_.info.vocab_size + 63) / 64);
  int64_t count = 0;
  for (const int32_t id : request_.allowed_ids) {
    check(id >= 0 && id < model_.info.vocab_size, "allowed_token_ids", "token ", id,
          " is outside of the ", model_.info.vocab_size, " known ones");
    uint64_t& word = allowed_[static_cast<size_t>(id) / 64];
    const uint64_t bit = uint64_t{1} << (static_cast<size_t>(id) % 64);
    count += (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  sampler_.allow({.bits = allowed_, .count = count});
  draft_sampler_.allow({.bits = allowed_, .count = count});
}

// On the caller's thread, in slices: other requests use the grammar, too.
void LlmJob::find_first_mask() {
  for (int64_t spent = 0; held && spent < kFirstMaskWork; spent += kSlice) {
    int64_t work = kSlice;
    find_mask(work);
  }
  if (held) {
    fail(
        Code::unsupported, "grammar",
        "finding the tokens that may come first takes too much work: fewer alternatives and nested "
        "rules are needed");
  }
}

void LlmJob::find_mask(int64_t& work) {
  if (!held || !constrained_->find_mask(work)) return;
  sampler_.allow(constrained_->mask());
  held = false;
}

void LlmJob::encode(std::string_view prompt) {
  TextModel::Encoded encoded = model_.encode(request_, prompt, pictures_);
  keep_some(encoded.tokens);
  const int64_t length = std::ssize(encoded.tokens);
  check(length > 0, "prompt", "it has no tokens");
  if (length >= model_.info.context_length) {
    throw PromptTooLong(length, model_.info.context_length);
  }
  picture_places_ = std::move(encoded.pictures);
  sequence.tokens = std::move(encoded.tokens);
  prompt_tokens_ = length;
  if (request_.prompt_logprobs) {
    sequence.score_end = length - 1;
    prompt_scores_.push_back(
        {.scored = {.chosen = name({.id = sequence.tokens[0], .logprob = 0}), .top = {}}});
  }
  sampler_.set_rules(token_rules());
  if (request_.chat.split && !request_.messages.empty()) {
    const auto options = parser_options(request_.chat, model_.format, prompt);
    parser_.emplace(options);
    if (model_.format.reasoning != text::ReasoningFormat::none) {
      reasoning_.emplace(*model_.tokenizer, options, request_.chat.reasoning_budget);
    }
  }
}

void LlmJob::keep_some(std::vector<int32_t>& tokens) const {
  if (!request_.kept_tokens) return;
  check(pictures_.empty(), "truncate_prompt_tokens", "cannot be asked for of a chat with pictures");
  const int64_t context = model_.info.context_length;
  const int64_t fits = std::max<int64_t>(context - request_.max_tokens, context / 2);
  const int64_t kept = *request_.kept_tokens < 0 ? fits : *request_.kept_tokens;
  const int64_t left_out = std::ssize(tokens) - kept;
  if (left_out <= 0) return;
  if (request_.keeps_first) return tokens.resize(static_cast<size_t>(kept));
  tokens.erase(tokens.begin(), tokens.begin() + left_out);
}

void LlmJob::find_pictures(PictureCache& pictures) {
  size_t place = 0;
  for (const PictureSquares& squares : std::exchange(pictures_, {})) {
    for (const auto& square : squares) {
      sequence.pictures.push_back({.first = picture_places_[place++],
                                   .count = model_.info.picture_tokens,
                                   .picture = pictures.find(square)});
    }
  }
}

TokenRules LlmJob::token_rules() const {
  const SamplingParams& sampling = request_.sampling;
  TokenRules out{.biases = {},
                 .end_tokens = model_.end_tokens,
                 .stop_tokens = request_.stop_ids,
                 .bad_words = {},
                 .prompt_tokens = prompt_tokens_,
                 .piece = [this](int32_t id) { return model_.tokenizer->piece(id); }};
  const auto tokens = [&](const std::string& text) {
    return model_.tokenizer->encode(text, {.add_special = false});
  };
  for (const LogitBias& entry : sampling.logit_bias) {
    if (entry.id >= 0) {
      check(entry.id < model_.info.vocab_size, "logit_bias", "token ", entry.id,
            " is outside of the ", model_.info.vocab_size, " known ones");
      out.biases.emplace_back(entry.id, entry.bias);
    } else {
      for (const int32_t id : tokens(entry.text)) out.biases.emplace_back(id, entry.bias);
    }
  }
  const auto check_known = [&](const char* field, const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      check(id >= 0 && id < model_.info.vocab_size, field, "token ", id, " is outside of the ",
            model_.info.vocab_size, " known ones");
    }
  };
  check_known("stop_token_ids", request_.stop_ids);
  check_known("logprob_token_ids", request_.logprob_ids);
  // A word within a text begins with its space.
  for (const std::string& word : sampling.bad_words) {
    for (const std::string& form : {word, " " + word}) {
      std::vector<int32_t> ids = tokens(form);
      if (!ids.empty()) out.bad_words.push_back(std::move(ids));
    }
  }
  return out;
}

void LlmJob::start() {
  if (start_) return;
  start_ = Clock::now();
  cached_tokens_ = std::min(sequence.cached, prompt_tokens_);
  Started event{model_.info.id, seed_, static_cast<int32_t>(prompt_tokens_),
                static_cast<int32_t>(cached_tokens_)};
  if (request_.return_prompt_ids) {
    event.prompt_ids.assign(sequence.tokens.begin(), sequence.tokens.begin() + prompt_tokens_);
  }
  sink_->on_started(event);
  prompt_counted_ = cached_tokens_;
  report_progress();
}

void LlmJob::report_progress() const {
  if (!request_.progress) return;
  const bool begun = prompt_counted_ > cached_tokens_;
  sink_->on_progress({.prompt_tokens = static_cast<int32_t>(prompt_tokens_),
                      .cached_tokens = static_cast<int32_t>(cached_tokens_),
                      .evaluated = static_cast<int32_t>(prompt_counted_),
                      .ms = begun ? since_start() : 0});
}

bool LlmJob::may_go_on() const {
  return request_.max_tokens - tokens_out_ > 1 &&
         model_.info.context_length - sequence.length() > 1;
}

int64_t LlmJob::draft_room(int64_t most) {
  // The step's own token comes in addition to the draft tokens.
  const int64_t room = std::min<int64_t>(request_.max_tokens - tokens_out_,
                                         model_.info.context_length - sequence.length());
  return std::max<int64_t>(std::min({most, room - 1, draft_length_.next()}), 0);
}

void LlmJob::draft_from_text(int64_t most) {
  ahead_ = constrained_;
  draft_work_ = kDraftWork;
  for (const int32_t id : ngram_draft(sequence.tokens, most)) {
    if (ahead_ && !ahead_->mask().has(id)) break;
    if (!add_draft({id})) break;
  }
}

TokenSampler& LlmJob::begin_drafts() {
  ahead_ = constrained_;
  draft_work_ = kDraftWork;
  draft_sampler_.follow(sampler_);
  if (ahead_) draft_sampler_.allow(ahead_->mask());
  return draft_sampler_;
}

bool LlmJob::add_draft(DraftToken draft) {
  const int32_t id = draft.id;
  sequence.tokens.push_back(id);
  drafts_.push_back(std::move(draft));
  if (is_end(id)) return false;
  if (!ahead_) return true;
  try {
    ahead_->accept(id);
    if (!ahead_->find_mask(draft_work_)) return false;
  } catch (const Error&) {
    return false;  // the request fails when it reaches this draft token
  }
  draft_sampler_.allow(ahead_->mask());
  return ahead_->can_go_on();
}

std::vector<DraftToken> LlmJob::drop_drafts() {
  sequence.tokens.resize(sequence.tokens.size() - drafts_.size());
  return std::exchange(drafts_, {});
}

void LlmJob::settle_drafts(int64_t drafted, int64_t accepted) {
  if (drafted > 0) draft_length_.learn(drafted, accepted);
  sequence.cached -= drafted - accepted;
  sequence.draft_cached = std::min(sequence.draft_cached, sequence.length() - 1);
}

bool LlmJob::is_end(int32_t id) const {
  return std::ranges::binary_search(model_.end_tokens, id) ||
         std::ranges::find(request_.stop_ids, id) != request_.stop_ids.end();
}

std::optional<int32_t> LlmJob::forced() const {
  const std::optional<int32_t> id = reasoning_ ? reasoning_->forced() : std::nullopt;
  return id && constrained_ && !constrained_->mask().has(*id) ? std::nullopt : id;
}

ScoredToken LlmJob::name(const Logprob& token) const {
  return {token.id, model_.tokenizer->piece(token.id, true), token.logprob};
}

ScoredChoice LlmJob::name(const RowLogprobs& row) const {
  ScoredChoice out{.chosen = name(row.chosen), .top = {}};
  for (const Logprob& token : row.top) out.top.push_back(name(token));
  return out;
}

void LlmJob::score(const RankedToken& token) {
  prompt_scores_.push_back({.scored = name(token.scored), .rank = token.rank});
  ++sequence.scored;
}

void LlmJob::report_prompt() {
  if (prompt_scores_.empty() || sequence.scores()) return;
  sink_->on_prompt(std::exchange(prompt_scores_, {}));
}

std::optional<StopReason> LlmJob::take(int32_t id, const RowLogprobs* scored) {
  if (tokens_out_ == 0) prompt_ms_ = since_start();
  report_prompt();
  if (is_end(id)) {
    end_id_ = id;
    return StopReason::eos;
  }
  sequence.tokens.push_back(id);
  ++tokens_out_;
  if (reasoning_) reasoning_->take(id);
  if (request_.drawn_logprobs) {
    scored_.emplace_back(text_bytes_, name(drawn(id)));
  } else if (scored != nullptr) {
    scored_.emplace_back(text_bytes_, name(*scored));
  } else if (request_.token_ids) {
    scored_.emplace_back(text_bytes_,
                         ScoredChoice{.chosen = name({.id = id, .logprob = 0}), .top = {}});
  }
  if (constrained_) {
    constrained_->accept(id);
    held = true;
  }
  add_text(passed(text_of(id)));
  if (!stops_.matched().empty()) return StopReason::stop_sequence;
  if (request_.chat.one_call() && parser_ && parser_->whole_calls() > 0) return StopReason::eos;
  // Nothing can follow: do not ask the model for an end token.
  if (constrained_ && !constrained_->can_go_on()) return StopReason::eos;
  if (tokens_out_ >= request_.max_tokens) return StopReason::max_tokens;
  if (sequence.length() >= model_.info.context_length) return StopReason::context_full;
  return std::nullopt;
}

Finished LlmJob::finish(StopReason reason) {
  if (!start_) return {.reason = reason};
  report_prompt();
  if (stops_.matched().empty()) {
    add_text(passed(detokenizer_.flush()));
    if (stops_.matched().empty()) {
      add_text(stops_.flush());
      passed_bytes_ = std::numeric_limits<int64_t>::max();  // tokens without text included
    } else {
      reason = StopReason::stop_sequence;
    }
  }
  if (parser_) add(parser_->finish());
  send(true);
  const double total = since_start();
  const double prompt = prompt_ms_ > 0 ? prompt_ms_ : total;
  return {.reason = reason,
          .stop_sequence = stops_.matched(),
          .prompt_tokens = static_cast<int32_t>(prompt_tokens_),
          .cached_tokens = static_cast<int32_t>(cached_tokens_),
          .tokens_out = tokens_out_,
          .reasoning_tokens = reasoning_ ? reasoning_->tokens() : 0,
          .prompt_ms = prompt,
          .decode_ms = total - prompt,
          .complete = constrained_ ? std::optional(constrained_->complete()) : std::nullopt,
          .end_id = end_id_};
}

int64_t LlmJob::count_prompt_tokens(int64_t first) {
  const int64_t end = std::min(sequence.cached, prompt_tokens_);
  const int64_t count = std::max<int64_t>(end - std::max(first, prompt_counted_), 0);
  prompt_counted_ = std::max(prompt_counted_, end);
  if (count > 0) report_progress();
  return count;
}

// A token that was not drawn, because it was the only one allowed, has probability 1.
RowLogprobs LlmJob::drawn(int32_t id) const {
  RowLogprobs out{.chosen = {id, 0}, .top = {}};
  std::vector<TokenProbability> among = sampler_.drawn_among();
  const auto chosen = std::ranges::find(among, id, &TokenProbability::id);
  if (chosen == among.end()) {
    among = {{.id = id, .probability = 1}};
  } else {
    out.chosen.logprob = std::log(chosen->probability);
  }
  std::erase_if(among, [](const TokenProbability& token) { return token.probability <= 0; });
  const auto most = std::min(static_cast<size_t>(*request_.drawn_logprobs), among.size());
  std::ranges::partial_sort(among, among.begin() + static_cast<ptrdiff_t>(most),
                            std::ranges::greater{}, &TokenProbability::probability);
  for (size_t i = 0; i < most; ++i) {
    out.top.push_back({among[i].id, std::log(among[i].probability)});
  }
  return out;
}

double LlmJob::since_start() const {
  return std::chrono::duration<double, std::milli>(Clock::now() - *start_).count();
}

// The parser needs the marks of the model's form; other special tokens are not text.
std::string LlmJob::text_of(int32_t id) {
  const text::Tokenizer& tokenizer = *model_.tokenizer;
  const bool mark = parser_ && tokenizer.is_special(id) &&
                    text::is_output_mark(model_.format, tokenizer.piece(id, true));
  return mark ? detokenizer_.push_special(id) : detokenizer_.push(id);
}

// The text that no stop text holds back. As in vLLM, stop texts count only after min_tokens.
std::string LlmJob::passed(std::string_view text) {
  text_bytes_ += std::ssize(text);
  const bool may_stop = tokens_out_ > request_.sampling.min_tokens;
  std::string out = may_stop ? stops_.push(text) : stops_.pass(text);
  passed_bytes_ += std::ssize(out);
  return out;
}

// Tokens whose text was sent at least in part; a stop text cuts off the others.
std::vector<ScoredChoice> LlmJob::take_scored() {
  std::vector<ScoredChoice> out;
  const auto end = std::ranges::find_if(
      scored_, [&](const auto& token) { return token.first >= passed_bytes_; });
  for (auto token = scored_.begin(); token != end; ++token) out.push_back(std::move(token->second));
  scored_.erase(scored_.begin(), end);
  return out;
}

void LlmJob::add_text(std::string text) {
  if (text.empty()) return;
  if (parser_) return add(parser_->push(text));
  add({{.kind = text::OutputDelta::Kind::content, .text = std::move(text)}});
}

void LlmJob::add(std::vector<text::OutputDelta> deltas) {
  using Kind = text::OutputDelta::Kind;
  for (text::OutputDelta& delta : deltas) {
    const bool joins = !unsent_.empty() && delta.kind != Kind::call_begin &&
                       unsent_.back().kind == delta.kind && unsent_.back().call == delta.call;
    if (joins) {
      unsent_.back().text += delta.text;
    } else {
      unsent_.push_back(std::move(delta));
    }
  }
}

void LlmJob::send(bool last) {
  for (text::OutputDelta& delta : std::exchange(unsent_, {})) send_piece(std::move(delta));
  const bool more = !scored_.empty() && scored_.front().first < passed_bytes_;
  if (last && more) send_piece({});
}

void LlmJob::send_piece(text::OutputDelta delta) {
  using Kind = text::OutputDelta::Kind;
  TokenText piece{.text = std::move(delta.text),
                  .index = pieces_out_++,
                  .tokens = take_scored(),
                  .call = delta.call};
  if (delta.kind == Kind::reasoning) piece.kind = TextKind::reasoning;
  if (delta.call >= 0) piece.kind = TextKind::call;
  if (delta.kind == Kind::call_begin) {
    const text::ToolFormat format = model_.format.tools;
    std::string id = format == text::ToolFormat::kimi_k2
                         ? kimi_call_id(request_, piece.text, delta.call)
                         : fresh_call_id(format);
    piece.call_begin = {std::move(id), std::exchange(piece.text, {})};
  }
  sink_->on_token(piece);
}

}  // namespace rbee::engine
