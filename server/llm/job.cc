#include "server/llm/job.h"

#include "server/http/clock.h"

namespace rbee::server {
namespace {

Outcome outcome_of(JobState state) {
  if (state == JobState::completed) return Outcome::completed;
  return state == JobState::cancelled ? Outcome::cancelled : Outcome::failed;
}

TokenLogprob to_wire(const engine::ScoredToken& token) {
  return {.bytes = token.text, .logprob = token.logprob, .id = token.id};
}

TokenLogprobs to_wire(const engine::ScoredChoice& choice) {
  TokenLogprobs out{.chosen = to_wire(choice.chosen)};
  for (const engine::ScoredToken& token : choice.top) out.top.push_back(to_wire(token));
  return out;
}

std::vector<TokenLogprobs> to_wire(const std::vector<engine::ScoredChoice>& choices) {
  std::vector<TokenLogprobs> out;
  for (const engine::ScoredChoice& choice : choices) out.push_back(to_wire(choice));
  return out;
}

std::vector<TokenLogprobs> to_wire(const std::vector<engine::PromptToken>& tokens) {
  std::vector<TokenLogprobs> out;
  for (const engine::PromptToken& token : tokens) {
    out.push_back(to_wire(token.scored));
    out.back().known = token.rank > 0;
    if (out.back().known) out.back().rank = token.rank;
  }
  return out;
}

}  // namespace

TextJob::TextJob(std::string id, std::unique_ptr<Reply> reply, std::shared_ptr<EventQueue> events,
                 int64_t memory_bytes, std::shared_ptr<Metrics> metrics)
    : Job(std::move(id), std::move(events)),
      memory_bytes_(memory_bytes),
      metrics_(std::move(metrics)),
      reply_(std::move(reply)) {}

void TextJob::describe(const engine::TextRequest& request, const std::string& model) {
  if (!trace_.on()) return;
  const char* operation = request.messages.empty() ? "text_completion" : "chat";
  operation_ = cat(operation, " ", model);
  trace_.set("gen_ai.operation.name", operation);
  trace_.set("gen_ai.request.model", model);
  trace_.set("gen_ai.response.id", id());
  trace_.set("gen_ai.request.max_tokens", int64_t{request.max_tokens});
  trace_.set("gen_ai.request.temperature", double{request.sampling.temperature});
  trace_.set("gen_ai.request.top_k", int64_t{request.sampling.top_k});
  trace_.set("gen_ai.request.top_p", double{request.sampling.top_p});
  if (!request.stop.empty()) trace_.set("gen_ai.request.stop_sequences", request.stop);
}

void TextJob::on_started(const engine::Started& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  start();
  begun_ = seconds_since_arrival();
  metrics_->begin(event.prompt_tokens);
  seed_ = event.seed;
  so_far_ = {.prompt_tokens = event.prompt_tokens,
             .cached_tokens = event.cached_tokens,
             .evaluated = event.prompt_tokens};
  quietly([&] {
    trace_.stage("prompt");
    trace_.set("gen_ai.response.model", event.model);
    trace_.set("gen_ai.request.seed", static_cast<int64_t>(event.seed));
    trace_.set("gen_ai.usage.input_tokens", int64_t{event.prompt_tokens});
    reply_->started({.job_id = id(),
                     .model = event.model,
                     .started_at = iso8601(std::chrono::system_clock::now()),
                     .seed = event.seed,
                     .prompt_tokens = event.prompt_tokens,
                     .cached_tokens = event.cached_tokens,
                     .prompt_ids = event.prompt_ids});
  });
}

void TextJob::on_progress(const engine::Progress& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    reply_->progress({.prompt_tokens = event.prompt_tokens,
                      .cached_tokens = event.cached_tokens,
                      .evaluated = event.evaluated,
                      .prompt_ms = event.ms});
  });
}

void TextJob::on_prompt(const std::vector<engine::PromptToken>& tokens) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] { reply_->prompt(to_wire(tokens)); });
}

void TextJob::on_token(const engine::TokenText& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  const double now = seconds_since_arrival();
  if (first_token_ < 0) first_token_ = now;
  if (last_token_ >= 0) metrics_->add_piece(now - last_token_);
  last_token_ = now;
  so_far_.prompt_ms = (first_token_ - begun_) * 1000;
  so_far_.decode_ms = (now - first_token_) * 1000;
  so_far_.tokens_out += static_cast<int32_t>(event.tokens.size());
  quietly([&] {
    trace_.stage("generation");
    reply_->timed(so_far_);
    if (!event.tokens.empty()) reply_->scored(to_wire(event.tokens));
    report(event);
  });
}

void TextJob::report(const engine::TokenText& event) {
  switch (event.kind) {
    case engine::TextKind::content:
      return reply_->token(event.text, event.index);
    case engine::TextKind::reasoning:
      return reply_->reasoning(event.text);
    case engine::TextKind::call:
      called_ = true;
      if (event.call_begin) return reply_->call(event.call, *event.call_begin);
      return reply_->arguments(event.call, event.text);
  }
}

void TextJob::on_finished(const engine::Finished& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    if (event.reason == engine::StopReason::cancelled) {
      return fail(Code::cancelled, "the job was cancelled");
    }
    const double speed = event.tokens_out > 1 && event.decode_ms > 0
                             ? (event.tokens_out - 1) * 1000 / event.decode_ms
                             : 0;
    finish(JobState::completed, &event, {});
    reply_->end({.tokens_out = event.tokens_out,
                 .reasoning_tokens = event.reasoning_tokens,
                 .decode_ms = event.decode_ms,
                 .prompt_tokens = event.prompt_tokens,
                 .cached_tokens = event.cached_tokens,
                 .prompt_ms = event.prompt_ms,
                 .stop_reason = std::string(engine::wire_name(event.reason)),
                 .stop_sequence = event.stop_sequence,
                 .seed = seed_,
                 .complete = event.complete,
                 .called = called_,
                 .end_id = event.end_id,
                 .queue_ms = begun_ * 1000,
                 .first_token_ms = first_token_ < 0 ? 0 : (first_token_ - begun_) * 1000,
                 .generation_ms = (last_token_ - first_token_) * 1000},
                {.job_id = id(),
                 .tokens_out = event.tokens_out,
                 .decode_ms = event.decode_ms,
                 .tokens_per_second = speed,
                 .memory_bytes = memory_bytes_},
                seconds_since_arrival() * 1000);
    reply_.reset();
  });
}

void TextJob::on_failed(const engine::Failed& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] { fail(event.code, event.message); });
}

void TextJob::fail(JobState state, const WireError& error, std::string_view message) {
  finish(state, nullptr, error.code);
  reply_->error(error, message);
  reply_.reset();
}

void TextJob::trace_end(const engine::Finished* finished, std::string_view error) {
  if (finished != nullptr) {
    trace_.set("gen_ai.usage.output_tokens", int64_t{finished->tokens_out});
    trace_.set("gen_ai.response.finish_reasons",
               std::vector<std::string>{std::string(engine::wire_name(finished->reason))});
  }
  if (first_token_ >= 0) trace_.set("gen_ai.response.time_to_first_chunk", first_token_);
  trace_.finish(operation_, error);
}

// Counts before the client sees the end, because it may read the metrics at once.
void TextJob::finish(JobState state, const engine::Finished* finished, std::string_view error) {
  end(state);
  trace_end(finished, error);
  RequestTimes times{.first_token = first_token_, .total = seconds_since_arrival()};
  if (finished != nullptr) {
    times.reason = finished->reason;
    times.prompt_tokens = finished->prompt_tokens;
    times.tokens_out = finished->tokens_out;
    times.waited = begun_;
    if (first_token_ >= 0) {
      times.prefill = first_token_ - begun_;
      times.decode = last_token_ - first_token_;
    }
    times.generation = (finished->prompt_ms + finished->decode_ms) / 1000;
    if (finished->tokens_out > 1) {
      times.per_token = finished->decode_ms / 1000 / (finished->tokens_out - 1);
    }
  }
  metrics_->count(outcome_of(state), times);
}

}  // namespace rbee::server
