#pragma once
// One request for text, from the queue to its last event.

#include <atomic>
#include <chrono>
#include <memory>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/draft/ngram_draft.h"
#include "rbee/engine/text/form/constraint.h"
#include "rbee/engine/text/form/reasoning.h"
#include "rbee/engine/text/form/stop_matcher.h"
#include "rbee/engine/text/lora_cache.h"
#include "rbee/engine/text/prompt/request_pictures.h"
#include "rbee/engine/text/sampling/logprobs.h"
#include "rbee/engine/text/sampling/sampler.h"
#include "rbee/engine/text/sampling/token_choice.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/engine/text/waiting_queue.h"
#include "rbee/text/output/output_parser.h"

namespace rbee::engine {

struct LlmJobOptions {
  std::shared_ptr<const grammar::CompiledGrammar> grammar;  // null: no constraint
  int64_t draft_tokens = 0;                                 // most draft tokens of a step; 0: none
  std::vector<TakenLora> lora;                              // adapters of the request
  std::string prompt;                                       // TextModel::prompt_of() the request
  std::vector<PictureSquares> pictures = {};                // read_pictures() of the request
};

class LlmJob final : public Ticket {
 public:
  // Tokenises the prompt, and draws a seed if the request has none. `model` must outlive the job.
  // Throws PromptTooLong, unsupported as ConstrainedText does, and invalid_argument as
  // TextModel::encode().
  LlmJob(TextRequest request, std::shared_ptr<EventSink> sink, KvBlockPool& pool,
         const TextModel& model, LlmJobOptions options = {});

  const TextRequest& request() const { return request_; }
  EventSink& sink() const { return *sink_; }
  TokenSampler& sampler() { return sampler_; }
  const TokenSampler& sampler() const { return sampler_; }
  std::atomic<bool> cancelled{false};

  // The rest is for the engine's thread only.

  // Looks up the request's pictures in the cache, once.
  void find_pictures(PictureCache& pictures);
  // Takes the figures of the next prompt token that the request wants scored.
  void score(const RankedToken& token);
  // The token that score() takes next.
  int32_t next_scored() const { return sequence.tokens[static_cast<size_t>(sequence.scored) + 1]; }
  // The request got a place. The first call sends Started.
  void start();
  bool drafts_ahead() const { return draft_length_.most() > 0; }
  // Whether a token may follow the next one.
  bool may_go_on() const;
  // How many tokens may be drafted for the next step, at most `most`. Call it once a step.
  int64_t draft_room(int64_t most);
  // Appends draft tokens to the sequence: at most `most` tokens that its text repeats ...
  void draft_from_text(int64_t most);
  // ... or those of a draft model, drawn one by one with this sampler. It copies the state of the
  // request's own sampler but has its own random numbers.
  TokenSampler& begin_drafts();
  // False if nothing can follow this draft token.
  bool add_draft(DraftToken draft);
  int64_t drafted() const { return std::ssize(drafts_); }
  // Removes the draft tokens from the sequence.
  std::vector<DraftToken> drop_drafts();
  // No drafts for some tokens, as after rejected ones.
  void pause_drafts() { draft_length_.learn(1, 0); }
  // After a step with `drafted` draft tokens: the first `accepted` of them, and one token more,
  // have been taken. Later steps overwrite the cache behind them.
  void settle_drafts(int64_t drafted, int64_t accepted);
  bool is_end(int32_t id) const;
  // The token that must come next whatever the logits say: part of the mark that ends the reasoning
  // when its budget is spent.
  std::optional<int32_t> forced() const;
  // Takes the next token; send() sends its text. Returns the reason if it was the last one. scored:
  // the token's figures, if the request asks for them. Under a constraint the job is held until
  // find_mask() is done. Throws unsupported if the answer can no longer follow the constraint.
  std::optional<StopReason> take(int32_t id, const RowLogprobs* scored = nullptr);
  // Finds the tokens that the constraint allows next; work: as in TokenMasks::add(). When it is
  // done, the job is no longer held. Throws unsupported as ConstrainedText::find_mask().
  void find_mask(int64_t& work);
  // Sends the new text that is not held back. last: also sends figures of tokens that have no text.
  void send(bool last = false);
  // Whether the prompt has been evaluated.
  bool prompt_evaluated() const { return prompt_ms_ > 0; }
  // Sends the rest of the text. The caller sends the event.
  Finished finish(StopReason reason);
  // How many prompt tokens up to sequence.cached were not counted before.
  int64_t count_prompt_tokens(int64_t first);

 private:
  using Clock = std::chrono::steady_clock;

  void encode(std::string_view prompt);
  void allow_listed();
  void keep_some(std::vector<int32_t>& tokens) const;
  RowLogprobs drawn(int32_t id) const;
  void report_progress() const;
  void find_first_mask();
  TokenRules token_rules() const;
  double since_start() const;
  ScoredToken name(const Logprob& token) const;
  ScoredChoice name(const RowLogprobs& row) const;
  void report_prompt();
  std::string text_of(int32_t id);
  std::string passed(std::string_view text);
  std::vector<ScoredChoice> take_scored();
  void add_text(std::string text);
  void add(std::vector<text::OutputDelta> deltas);
  void send_piece(text::OutputDelta delta);

  const TextModel& model_;
  const TextRequest request_;
  const std::shared_ptr<EventSink> sink_;
  const uint64_t seed_;
  const std::vector<TakenLora> lora_;
  TokenSampler sampler_;
  std::optional<ConstrainedText> constrained_;
  std::vector<uint64_t> allowed_;  // bits of TextRequest::allowed_ids
  text::DecodeStream detokenizer_;
  StopMatcher stops_;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;  // of these, found in the cache when the request got its place
  int64_t prompt_counted_ = 0;
  int32_t tokens_out_ = 0;
  std::optional<int32_t> end_id_;  // the token that ended the answer
  int32_t pieces_out_ = 0;
  DraftLength draft_length_;
  std::vector<DraftToken> drafts_;        // at the end of the sequence
  TokenSampler draft_sampler_;            // draws a draft model's tokens
  std::optional<ConstrainedText> ahead_;  // the constraint's state after the draft tokens
  int64_t draft_work_ = 0;                // work left for masks after draft tokens
  // Since the last piece; each with the number of answer bytes before it.
  std::vector<std::pair<int64_t, ScoredChoice>> scored_;
  int64_t text_bytes_ = 0;                    // bytes of the answer
  int64_t passed_bytes_ = 0;                  // of these, bytes that no stop text holds back
  std::vector<PromptToken> prompt_scores_;    // not sent yet
  std::vector<PictureSquares> pictures_;      // not looked up yet
  std::vector<int64_t> picture_places_;       // first token of each square
  std::optional<text::OutputParser> parser_;  // if the request wants reasoning and calls split off
  std::optional<Reasoning> reasoning_;        // and if the model has a form of reasoning
  std::vector<text::OutputDelta> unsent_;
  std::optional<Clock::time_point> start_;
  double prompt_ms_ = 0;
};

}  // namespace rbee::engine
