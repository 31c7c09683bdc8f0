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
  int64_t draft_tokens = 0;                                 // drafted ahead at most; 0: none
  std::vector<TakenLora> lora;                              // of the request
  std::string prompt;                                       // TextModel::prompt_of() the request
  std::vector<PictureSquares> pictures = {};                // read_pictures() of the request
};

class LlmJob final : public Ticket {
 public:
  // Makes tokens of the request. A fresh seed where it has none. `model` outlives the job. Throws
  // unsupported as ConstrainedText does, PromptTooLong, and invalid_argument as
  // TextModel::encode().
  LlmJob(TextRequest request, std::shared_ptr<EventSink> sink, KvBlockPool& pool,
         const TextModel& model, LlmJobOptions options = {});

  const TextRequest& request() const { return request_; }
  EventSink& sink() const { return *sink_; }
  Sampler& sampler() { return sampler_; }
  const Sampler& sampler() const { return sampler_; }
  std::atomic<bool> cancelled{false};

  // What follows is for the engine's thread.

  // Finds the request's pictures, once.
  void find_pictures(PictureCache& pictures);
  // The next of the prompt's tokens that the request wants figures of, in their order.
  void score(const RankedToken& token);
  // Whose figures come next.
  int32_t next_scored() const { return sequence.tokens[static_cast<size_t>(sequence.scored) + 1]; }
  // The request has a place; its first tells the client.
  void start();
  bool drafts_ahead() const { return draft_length_.most() > 0; }
  // Whether a token may follow the next one.
  bool may_go_on() const;
  // How many tokens may be drafted for the next step, `most` at most. Once a step.
  int64_t draft_room(int64_t most);
  // Draft tokens go to the end of the sequence: `most` tokens at most that its text repeats ...
  void draft_from_text(int64_t most);
  // ... or those of a draft model, drawn one by one with this sampler. It is where the request's
  // own is, with random numbers of its own.
  Sampler& begin_drafts();
  // False: nothing can follow this draft token.
  bool add_draft(DraftToken draft);
  int64_t drafted() const { return std::ssize(drafts_); }
  // The draft tokens leave the sequence.
  std::vector<DraftToken> drop_drafts();
  // None for some tokens, as after wrong ones.
  void pause_drafts() { draft_length_.learn(1, 0); }
  // After a step with so many draft tokens, of which the first `accepted` came and have been taken,
  // and one token more: places in the caches behind them are written again.
  void settle_drafts(int64_t drafted, int64_t accepted);
  bool is_end(int32_t id) const;
  // The token that comes next whatever the logits say: of the mark that ends the reasoning where
  // its budget is spent.
  std::optional<int32_t> forced() const;
  // Takes the next token; its text is for send(). The reason when it was the last one.
  // scored: of the token, where the request asks for it. Under a constraint the job is held until
  // find_mask() is done. Throws unsupported where the constraint cannot be followed any more.
  std::optional<StopReason> take(int32_t id, const RowLogprobs* scored = nullptr);
  // Finds the tokens that the constraint allows next; work: as TokenMasks::add() has it. The job is
  // held no more when all are found. Throws unsupported as ConstrainedText::find_mask().
  void find_mask(int64_t& work);
  // Sends the text that has come since and can be sent. last: and what is known of tokens without.
  void send(bool last = false);
  // Its prompt has been evaluated.
  bool prompt_evaluated() const { return prompt_ms_ > 0; }
  // Sends the rest of the text. The event is for the caller to send.
  Finished finish(StopReason reason);
  // Of the tokens evaluated up to sequence.cached: the prompt's that were not counted before.
  int64_t count_prompt_tokens(int64_t first);

 private:
  using Clock = std::chrono::steady_clock;

  void encode(std::string_view prompt);
  void allow_listed();
  void keep_some(std::vector<int32_t>& tokens) const;
  RowLogprobs drawn(int32_t id) const;
  void tell_progress() const;
  void find_first_mask();
  TokenRules token_rules() const;
  double since_start() const;
  ScoredToken name(const TokenLogprob& token) const;
  ScoredChoice name(const RowLogprobs& row) const;
  void tell_prompt();
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
  Sampler sampler_;
  std::optional<ConstrainedText> constrained_;
  std::vector<uint64_t> allowed_;  // bits of TextRequest::allowed_ids
  text::DecodeStream detokenizer_;
  StopMatcher stops_;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;  // of these, when the request got its place
  int64_t prompt_counted_ = 0;
  int32_t tokens_out_ = 0;
  std::optional<int32_t> end_id_;  // the token that ended the answer
  int32_t pieces_out_ = 0;
  DraftLength draft_length_;
  std::vector<DraftToken> drafts_;        // the last tokens of the sequence
  Sampler draft_sampler_;                 // that draws a draft model's tokens
  std::optional<ConstrainedText> ahead_;  // behind the draft tokens, where there is a constraint
  int64_t draft_work_ = 0;                // for masks behind draft tokens
  // Since the last piece, each with the bytes of the answer in front of it.
  std::vector<std::pair<int64_t, ScoredChoice>> scored_;
  int64_t text_bytes_ = 0;                    // of the answer
  int64_t passed_bytes_ = 0;                  // of these, those that no stop text holds back
  std::vector<PromptToken> prompt_scores_;    // of a prompt that was not told yet
  std::vector<PictureSquares> pictures_;      // that were not found yet
  std::vector<int64_t> picture_places_;       // the first token of each square
  std::optional<text::OutputParser> parser_;  // where the request wants its answer taken apart
  std::optional<Reasoning> reasoning_;        // and the model has a form of it
  std::vector<text::OutputDelta> unsent_;
  std::optional<Clock::time_point> start_;
  double prompt_ms_ = 0;
};

}  // namespace rbee::engine
