#include "rbee/engine/image/prompts.h"

#include <algorithm>

#include "rbee/diffusion/prompt_schedule.h"
#include "rbee/engine/api/image_loras.h"

namespace rbee::engine {
namespace {

using diffusion::PromptAt;
using diffusion::PromptCalls;
using diffusion::PromptShare;

std::vector<PromptShare> shares_of(const ImageRequest& request) {
  std::string prompt = prompt_loras(request).prompt;
  if (request.prompt_rule == PromptRule::a1111) return diffusion::split_prompt(prompt);
  return {{.text = std::move(prompt)}};
}

std::vector<PromptAt> schedule_of(const std::string& prompt, PromptRule rule,
                                  const PromptCalls& calls) {
  if (rule == PromptRule::a1111) return diffusion::schedule_prompt(prompt, calls);
  return {{calls.calls, prompt}};
}

// A request's texts; each is encoded, and its states are kept for all steps.
constexpr size_t kMaxTexts = 128;

void check_texts(const PromptTexts& texts) {
  const bool fits = texts.positive.size() + texts.negative.size() <= kMaxTexts;
  check(fits, "prompt", "with negative_prompt it makes more than ", kMaxTexts,
        " texts; let it change less, or take fewer steps");
}

// Its index in the list; adds it if it is not there.
template <typename T>
size_t index_in(std::vector<T>& list, const T& value) {
  const auto found = std::ranges::find(list, value);
  const auto index = static_cast<size_t>(found - list.begin());
  if (found == list.end()) list.push_back(value);
  return index;
}

PassPrompts read_pass(const ImageRequest& request, const PromptCalls& calls, bool guided,
                      PromptTexts& texts) {
  PassPrompts out;
  out.weights.clear();
  std::vector<std::vector<PromptAt>> positive;
  for (const PromptShare& share : shares_of(request)) {
    out.weights.push_back(share.weight);
    positive.push_back(schedule_of(share.text, request.prompt_rule, calls));
  }
  std::vector<PromptAt> negative;
  if (guided) negative = schedule_of(request.negative_prompt, request.prompt_rule, calls);
  const auto index_at = [&](int32_t call) {
    CallTexts call_texts;
    for (const auto& part : positive) {
      call_texts.positive.push_back(index_in(texts.positive, prompt_at(part, call).text));
    }
    call_texts.negative = call_texts.positive.front();
    if (guided) call_texts.negative = index_in(texts.negative, prompt_at(negative, call).text);
    check_texts(texts);
    return index_in(out.calls, call_texts);
  };
  for (int32_t call = 0; call <= calls.calls; ++call) {
    const size_t index = index_at(call);
    const bool same = !out.turns.empty() && out.turns.back().index == index;
    if (same) {
      out.turns.back().last = call;
    } else {
      out.turns.push_back({call, index});
    }
  }
  return out;
}

}  // namespace

size_t PassPrompts::at(int32_t call) const {
  const auto found =
      std::ranges::find_if(turns, [&](const Turn& turn) { return call <= turn.last; });
  return found == turns.end() ? turns.back().index : found->index;
}

RequestPrompts read_prompts(const ImageRequest& request, const ImageSettings& settings,
                            bool guided) {
  RequestPrompts out;
  const int32_t each = diffusion::calls_per_step(settings.sampler);
  const PromptCalls first{.calls = settings.steps * each};
  out.first = read_pass(request, first, guided, out.texts);
  if (settings.has_hires) {
    const PromptCalls second{.calls = hires_steps(request, settings) * each, .before = first.calls};
    out.second = read_pass(request, second, guided, out.texts);
  }
  return out;
}

size_t prompt_parts(const ImageRequest& request) {
  return shares_of(request).size();
}

}  // namespace rbee::engine
