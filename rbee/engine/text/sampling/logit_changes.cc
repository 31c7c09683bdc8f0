#include "rbee/engine/text/sampling/logit_changes.h"

#include <algorithm>
#include <cmath>

namespace rbee::engine {
namespace {

// Most changed tokens that LogitChanges::expected() makes room for.
constexpr int64_t kChangedRoom = 128;
// Least repetition penalty; a smaller one counts as this, so that logits stay finite.
constexpr float kLeastPenalty = 1e-6f;

bool names(const SamplingParams& params, SamplerKind kind) {
  return std::ranges::count(params.samplers, kind) > 0;
}

}  // namespace

LogitChanges::LogitChanges(const SamplingParams& params)
    : params_(params),
      dry_(params),
      penalties_on_(names(params, SamplerKind::penalties)),
      dry_on_(names(params, SamplerKind::dry) && dry_.on()) {}

void LogitChanges::set_rules(TokenRules rules) {
  rules_ = std::move(rules);
  std::ranges::sort(rules_.end_tokens);
  rules_.end_tokens.erase(std::unique(rules_.end_tokens.begin(), rules_.end_tokens.end()),
                          rules_.end_tokens.end());
  dry_.set_piece(rules_.piece);
}

bool LogitChanges::has_penalties() const {
  return penalties_on_ && (params_.repetition_penalty != 1.0f || params_.frequency_penalty != 0 ||
                           params_.presence_penalty != 0);
}

int64_t LogitChanges::expected() const {
  int64_t out = std::ssize(rules_.biases) + std::ssize(rules_.bad_words);
  if (params_.ignore_eos || params_.min_tokens > 0) out += std::ssize(rules_.end_tokens);
  if (params_.min_tokens > 0) out += std::ssize(rules_.stop_tokens);
  if (has_penalties()) out += params_.repeat_last_n > 0 ? params_.repeat_last_n : kChangedRoom;
  if (dry_on_) out += 1;
  return std::min(out, kChangedRoom);
}

std::span<const int32_t> LogitChanges::lasting_bans() const {
  return params_.ignore_eos ? std::span<const int32_t>(rules_.end_tokens)
                            : std::span<const int32_t>();
}

bool LogitChanges::are_lasting_bans() const {
  const std::span<const int32_t> bans = lasting_bans();
  return std::ranges::all_of(changes_, [&](const Change& change) {
    return change.bias == -INFINITY && std::ranges::find(bans, change.id) != bans.end();
  });
}

bool LogitChanges::only_lowers() const {
  return !has_penalties() && !dry_on_ &&
         std::ranges::none_of(rules_.biases, [](const auto& bias) { return bias.second > 0; });
}

float LogitChanges::apply(float logit, const Change& change) const {
  logit += change.bias;
  if (change.repeated && params_.repetition_penalty != 1.0f) {
    const float penalty = std::max(params_.repetition_penalty, kLeastPenalty);
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
  if (change.count > 0) {
    logit -= change.count * params_.frequency_penalty + params_.presence_penalty;
  }
  return logit - change.subtract;
}

const std::vector<LogitChanges::Change>& LogitChanges::prepare(std::span<const int32_t> history) {
  changes_.clear();
  add_biases();
  add_bans(history);
  count_repeats(history);
  if (dry_on_) {
    for (const Dry::Penalty& penalty : dry_.penalties(history)) {
      changes_.push_back({.id = penalty.id, .subtract = penalty.subtract});
    }
  }
  merge();
  return changes_;
}

void LogitChanges::add_biases() {
  for (const auto& [id, bias] : rules_.biases) changes_.push_back({.id = id, .bias = bias});
}

void LogitChanges::add_bans(std::span<const int32_t> history) {
  const int64_t generated = std::ssize(history) - rules_.prompt_tokens;
  if (params_.ignore_eos || generated < params_.min_tokens) {
    for (const int32_t id : rules_.end_tokens) changes_.push_back({.id = id, .bias = -INFINITY});
  }
  if (generated < params_.min_tokens) {
    for (const int32_t id : rules_.stop_tokens) changes_.push_back({.id = id, .bias = -INFINITY});
  }
  for (const std::vector<int32_t>& word : rules_.bad_words) {
    const std::span<const int32_t> before(word.data(), word.size() - 1);
    if (before.size() <= history.size() &&
        std::ranges::equal(before, history.last(before.size()))) {
      changes_.push_back({.id = word.back(), .bias = -INFINITY});
    }
  }
}

void LogitChanges::count_repeats(std::span<const int32_t> history) {
  if (!has_penalties()) return;
  const auto answered =
      static_cast<size_t>(std::max<int64_t>(std::ssize(history) - rules_.prompt_tokens, 0));
  const auto window = static_cast<size_t>(params_.repeat_last_n);
  if (window > 0 && history.size() > window) history = history.last(window);
  if (params_.penalise_prompt) return add_tally(history, {.repeated = true, .counts = true});
  if (params_.repetition_penalty != 1.0f) add_tally(history, {.repeated = true, .counts = false});
  if (params_.frequency_penalty == 0 && params_.presence_penalty == 0) return;
  add_tally(history.last(std::min(answered, history.size())), {.repeated = false, .counts = true});
}

void LogitChanges::add_tally(std::span<const int32_t> text, Tally tally) {
  recent_.assign(text.begin(), text.end());
  std::sort(recent_.begin(), recent_.end());
  for (size_t i = 0; i < recent_.size();) {
    const size_t first = i;
    while (i < recent_.size() && recent_[i] == recent_[first]) ++i;
    if (recent_[first] < 0) continue;
    changes_.push_back({.id = recent_[first],
                        .repeated = tally.repeated,
                        .count = tally.counts ? static_cast<float>(i - first) : 0});
  }
}

void LogitChanges::merge() {
  std::ranges::stable_sort(changes_, {}, &Change::id);
  size_t kept = 0;
  for (const Change& change : changes_) {
    if (kept > 0 && changes_[kept - 1].id == change.id) {
      changes_[kept - 1].bias += change.bias;
      changes_[kept - 1].repeated |= change.repeated;
      changes_[kept - 1].count += change.count;
      changes_[kept - 1].subtract += change.subtract;
    } else {
      changes_[kept++] = change;
    }
  }
  changes_.resize(kept);
}

}  // namespace rbee::engine
