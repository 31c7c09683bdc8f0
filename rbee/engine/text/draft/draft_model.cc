#include "rbee/engine/text/draft/draft_model.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::engine {

DraftModel::DraftModel(TextModel model, KvBlockPool& pool, const DraftModelOptions& options)
    : model_(std::move(model)),
      options_(options),
      stepper_(*model_.model, *model_.device, {.kv_dtype = options.kv_dtype, .pool = &pool}) {}

void DraftModel::draft(std::span<const Place> places) {
  Round round = first_round(places);
  while (!round.work.empty()) {
    evaluate(round);
    round = next_round(std::move(round.drafting));
  }
}

// Draft tokens first, those that know all but one token in front: see PagedBatch::single_queries.
DraftModel::Round DraftModel::first_round(std::span<const Place> places) const {
  struct Part {
    const Place* place;
    int64_t count;
  };
  std::vector<Part> parts;
  for (const Place& place : places) {
    const int64_t count = place.length - place.job->sequence.draft_cached;
    if (count > 0) parts.push_back({&place, count});
  }
  std::ranges::stable_sort(
      parts, {}, [](const Part& part) { return std::pair(part.place->drafts == 0, part.count); });
  Round out;
  int64_t tokens = 0;
  for (const Part& part : parts) {
    const int64_t count = std::min(part.count, options_.step_tokens - tokens);
    if (count == 0) break;
    LlmJob& job = *part.place->job;
    out.work.push_back({&job.sequence, count});
    tokens += count;
    if (part.place->drafts == 0 || count < part.count) continue;
    out.rows.push_back(static_cast<int32_t>(tokens - 1));
    out.drafting.push_back({&job, &job.begin_drafts(), part.place->drafts});
  }
  return out;
}

DraftModel::Round DraftModel::next_round(std::vector<Drafting> drafting) {
  Round out;
  for (const Drafting& one : drafting) {
    out.rows.push_back(static_cast<int32_t>(std::ssize(out.rows)));
    out.work.push_back({&one.job->sequence, 1});
  }
  out.drafting = std::move(drafting);
  return out;
}

// Keeps those that go on in round.drafting.
void DraftModel::evaluate(Round& round) {
  RowsWanted gathered(options_.vocab);
  for (const Drafting& one : round.drafting) gathered.add(*one.sampler, std::nullopt, 1);
  const TopLogitsWanted wanted = gathered.top_logits();
  TopLogitRows found;
  if (wanted.count > 0) {
    found = stepper_.step(round.work, round.rows, wanted);
  } else {
    stepper_.run(round.work, round.rows);
  }
  int64_t row = 0;
  std::erase_if(round.drafting,
                [&](Drafting& one) { return !add_draft(one, {stepper_, found, wanted}, row++); });
}

// False: the last one. Whether there is a draft token must not depend on which token is drawn, or
// what comes would no longer follow the model's distribution.
bool DraftModel::add_draft(Drafting& drafting, const StepLogits& logits, int64_t row) const {
  LlmJob& job = *drafting.job;
  TokenSampler& sampler = *drafting.sampler;
  const LogitRow place{.index = row, .history = job.sequence.tokens};
  const int32_t id = choose_token(sampler, std::nullopt, logits, place).id;
  if (sampler.confidence() < options_.min_p) return false;
  return job.add_draft({id, sampler.drawn_among()}) && --drafting.left > 0;
}

void check_draft(const TextModel& draft, const TextModel& target) {
  constexpr const char* kField = "draft model";
  check(draft.device == target.device, kField, "it is on ", draft.info.device,
        ", the model that it drafts for on ", target.info.device);
  if (draft.model->cache_shape().has_states() || target.model->cache_shape().has_states()) {
    fail(Code::unsupported, kField, "layers with states (gated delta net) take back no draft ",
         "tokens, and ", target.model->cache_shape().has_states() ? "the model" : "it",
         " has such layers");
  }
  const text::Tokenizer& own = *draft.tokenizer;
  const text::Tokenizer& other = *target.tokenizer;
  check(draft.info.vocab_size == target.info.vocab_size && own.vocab_size() == other.vocab_size(),
        kField, "its ", draft.info.vocab_size, " logits of ", own.vocab_size(),
        " tokens are not the ", target.info.vocab_size, " of ", other.vocab_size(),
        " that the model has");
  for (text::TokenId id = 0; id < static_cast<text::TokenId>(own.vocab_size()); ++id) {
    const bool same =
        own.is_special(id) == other.is_special(id) && own.piece(id, true) == other.piece(id, true);
    check(same, kField, "its vocabulary differs from the model's at token ", id, ": '",
          own.piece(id, true), "' is '", other.piece(id, true), "' there");
  }
  check(draft.info.context_length >= target.info.context_length, kField, "its context of ",
        draft.info.context_length, " tokens is shorter than the model's ",
        target.info.context_length);
}

}  // namespace rbee::engine
