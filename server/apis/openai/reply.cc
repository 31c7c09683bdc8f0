#include "server/apis/openai/reply.h"

#include <algorithm>
#include <utility>

namespace rbee::server {
namespace {

// A prompt counts once, whatever its number of choices.
void add(OpenAiChoices& choices, int32_t index, const EndEvent& end) {
  if (choices.leads(index)) {
    choices.usage.prompt_tokens += end.prompt_tokens;
    choices.usage.cached_tokens += end.cached_tokens;
  }
  choices.usage.completion_tokens += end.tokens_out;
  choices.usage.reasoning_tokens += end.reasoning_tokens;
}

double mean_logprob(const OpenAiChoice& choice) {
  double sum = 0;
  for (const TokenLogprobs& scored : choice.logprobs.tokens) sum += scored.chosen.logprob;
  return sum / static_cast<double>(std::max<size_t>(choice.logprobs.tokens.size(), 1));
}

bool better(const OpenAiChoice& a, const OpenAiChoice& b) {
  return mean_logprob(a) > mean_logprob(b);
}

// The best choices of each prompt, numbered in order; all of them if n equals best_of.
std::vector<OpenAiChoice> best_of(OpenAiChoices& choices) {
  std::vector<OpenAiChoice> all = std::move(choices.done), out;
  std::ranges::sort(all, {}, &OpenAiChoice::index);
  for (auto first = all.begin(); first != all.end(); first += choices.each) {
    const auto end = first + choices.each;
    if (choices.wanted < choices.each) std::stable_sort(first, end, better);
    for (auto choice = first; choice != first + choices.wanted; ++choice) {
      choice->prompt = &choices.prompts[choices.prompt_of(choice->index)];
      choice->index = static_cast<int32_t>(std::ssize(out));
      out.push_back(std::move(*choice));
    }
  }
  return out;
}

// Only the first failed choice of an answer reports its error, which ends the others.
bool fails_first(OpenAiChoices& choices) {
  const std::lock_guard lock(choices.mutex);
  return !std::exchange(choices.failed, true);
}

}  // namespace

void OpenAiStream::started(const StartedEvent& event) {
  const OpenAiAnswer& answer = choices_->answer;
  tokens_.prompt_ids = event.prompt_ids;
  tokens_.so_far = {.prompt_tokens = event.prompt_tokens, .cached_tokens = event.cached_tokens};
  if (answer.chat) return push(openai_role_json(answer, index_, tokens_));
  // With log probabilities, the leading choice echoes once its prompt has been scored.
  if (!answer.logprobs || !choices_->leads(index_)) push_echo();
}

void OpenAiStream::progress(const ProgressEvent& progress) {
  if (!choices_->leads(index_)) return;  // the other choices share its prompt
  queue_->push_data(openai_progress_json(choices_->answer, index_, progress));
}

void OpenAiStream::prompt(std::vector<TokenLogprobs> tokens) {
  {
    const std::lock_guard lock(choices_->mutex);
    choices_->prompts[choices_->prompt_of(index_)].scored = std::move(tokens);
  }
  push_echo();
}

void OpenAiStream::push_echo() {
  if (choices_->answer.chat || !choices_->answer.echo) return;
  const std::lock_guard lock(choices_->mutex);
  const OpenAiPrompt& prompt = choices_->prompts[choices_->prompt_of(index_)];
  queue_->push_data(openai_echo_json(choices_->answer, index_, prompt, tokens_));
  tokens_.prompt_ids.clear();
  tokens_.offset = character_count(prompt.text);
}

void OpenAiStream::scored(std::vector<TokenLogprobs> tokens) {
  tokens_.tokens = std::move(tokens);
}

void OpenAiStream::token(std::string_view text, int32_t) {
  end_custom();
  push(openai_piece_json(choices_->answer, index_, text, tokens_));
}

void OpenAiStream::reasoning(std::string_view text) {
  end_custom();
  if (!choices_->answer.include_reasoning) return skip();
  push(openai_reasoning_json(choices_->answer, index_, text, tokens_));
}

void OpenAiStream::call(int32_t call, const engine::CallBegin& begin) {
  end_custom();
  const bool custom = choices_->answer.is_custom(begin.name);
  if (custom) custom_call_ = call;
  push(openai_call_json(
      choices_->answer, index_,
      {.call = call, .id = begin.id, .name = begin.name, .arguments = "", .custom = custom},
      tokens_));
}

void OpenAiStream::end_custom() {
  if (!custom_call_) return;
  push(openai_call_json(
      choices_->answer, index_,
      {.call = *custom_call_, .arguments = std::exchange(custom_arguments_, {}), .custom = true},
      tokens_));
  custom_call_.reset();
}

void OpenAiStream::arguments(int32_t call, std::string_view json) {
  if (custom_call_) {
    custom_arguments_ += json;
    return;
  }
  push(openai_call_json(choices_->answer, index_, {.call = call, .arguments = json}, tokens_));
}

// Log probabilities go with the next chunk, whatever its kind.
void OpenAiStream::push(std::string json) {
  queue_->push_data(std::move(json));
  skip();
}

void OpenAiStream::skip() {
  tokens_.offset += character_count(tokens_.tokens);
  tokens_.tokens.clear();
  tokens_.prompt_ids.clear();
}

void OpenAiStream::end(const EndEvent& event, const MetricsEvent&, double) {
  end_custom();
  queue_->push_data(openai_finish_json(choices_->answer, index_, event));
  const std::lock_guard lock(choices_->mutex);
  add(*choices_, index_, event);
  if (--choices_->left > 0 || choices_->failed) return;
  if (choices_->answer.include_usage) {
    queue_->push_data(
        openai_usage_json(choices_->answer, choices_->usage, choices_->alone() ? &event : nullptr));
  }
  finish_stream(*queue_);
}

void OpenAiStream::error(const WireError& error, std::string_view message) {
  if (!fails_first(*choices_)) return;
  queue_->push_data(openai_error_json(error.status, error.code, message));
  finish_stream(*queue_);
  choices_->cancel();
}

void OpenAiText::started(const StartedEvent& event) {
  if (event.prompt_ids.empty()) return;
  const std::lock_guard lock(choices_->mutex);
  choices_->prompts[choices_->prompt_of(choice_.index)].ids = event.prompt_ids;
}

void OpenAiText::prompt(std::vector<TokenLogprobs> tokens) {
  const std::lock_guard lock(choices_->mutex);
  choices_->prompts[choices_->prompt_of(choice_.index)].scored = std::move(tokens);
}

void OpenAiText::scored(std::vector<TokenLogprobs> tokens) {
  std::ranges::move(tokens, std::back_inserter(choice_.logprobs.tokens));
}

void OpenAiText::token(std::string_view text, int32_t) {
  choice_.text += text;
  counted_tokens_ = choice_.logprobs.tokens.size();
}

void OpenAiText::reasoning(std::string_view text) {
  if (!choices_->answer.include_reasoning) return choice_.logprobs.tokens.resize(counted_tokens_);
  choice_.reasoning += text;
  counted_tokens_ = choice_.logprobs.tokens.size();
}

void OpenAiText::call(int32_t, const engine::CallBegin& begin) {
  choice_.calls.push_back({.id = begin.id, .name = begin.name, .arguments = ""});
  counted_tokens_ = choice_.logprobs.tokens.size();
}

void OpenAiText::arguments(int32_t, std::string_view json) {
  choice_.calls.back().arguments += json;
  counted_tokens_ = choice_.logprobs.tokens.size();
}

void OpenAiText::end(const EndEvent& event, const MetricsEvent&, double) {
  choice_.end = event;
  const std::lock_guard lock(choices_->mutex);
  add(*choices_, choice_.index, event);
  choices_->done.push_back(std::move(choice_));
  if (--choices_->left > 0 || choices_->failed) return;
  const std::vector<OpenAiChoice> shown = best_of(*choices_);
  response_->set(json_response(200, openai_text_json(choices_->answer, shown, choices_->usage)));
}

void OpenAiText::error(const WireError& error, std::string_view message) {
  if (!fails_first(*choices_)) return;
  response_->set(json_response(error.status, openai_error_json(error.status, error.code, message)));
  choices_->cancel();
}

}  // namespace rbee::server
