// The part of Stepper that queues a step after the one under way.

#include <algorithm>
#include <utility>

#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {
namespace {

// Steps without an async one after a discarded one: few at first.
constexpr int32_t kMostHeld = 64;

}  // namespace

TopLogitRows Stepper::pick(const TopLogitRows& found, size_t stored) {
  const bool drawn = drawn_on_device_ && !found.drawn.empty();
  if (picked_.empty() && stored == top_logit_count_) {
    TopLogitRows out{
        .values = found.values.first(top_logit_rows_ * stored),
        .ids = found.ids.first(top_logit_rows_ * stored),
        .sums = top_logit_sums_ ? found.sums.first(top_logit_rows_) : found.sums.first(0)};
    if (drawn) out.drawn = found.drawn.first(top_logit_rows_);
    if (drawn) out.numbers = found.numbers.first(top_logit_rows_);
    return out;
  }
  picked_top_logits_ = {};
  for (size_t i = 0; i < top_logit_rows_; ++i) {
    const size_t row = picked_.empty() ? i : picked_[i];
    const auto values = found.values.subspan(row * stored, top_logit_count_);
    const auto ids = found.ids.subspan(row * stored, top_logit_count_);
    picked_top_logits_.values.insert(picked_top_logits_.values.end(), values.begin(), values.end());
    picked_top_logits_.ids.insert(picked_top_logits_.ids.end(), ids.begin(), ids.end());
    if (top_logit_sums_) picked_top_logits_.sums.push_back(found.sums[row]);
    if (!drawn) continue;
    picked_top_logits_.drawn.push_back(found.drawn[row]);
    picked_top_logits_.numbers.push_back(found.numbers[row]);
  }
  return {.values = picked_top_logits_.values,
          .ids = picked_top_logits_.ids,
          .sums = picked_top_logits_.sums,
          .drawn = picked_top_logits_.drawn,
          .numbers = picked_top_logits_.numbers};
}

void Stepper::advance(Indices& indices) const {
  const auto rows = static_cast<size_t>(indices.tokens);
  const auto width = static_cast<size_t>(indices.table_width);
  const std::span<int32_t> values(indices.values);
  const std::span<int32_t> table = values.subspan(5 * rows + 1);
  const auto block_size = static_cast<int32_t>(pool_->block_size());
  for (size_t row = 0; row < rows; ++row) {
    int32_t& slot = values[2 * rows + row];
    if (slot < 0) continue;
    const int32_t position = ++values[rows + row];
    const auto block = static_cast<size_t>(position / block_size);
    slot = table[row * width + block] * block_size + position % block_size;
    ++values[4 * rows + 1 + row];
  }
}

bool Stepper::reserve_ahead(std::span<const Work> work, int64_t table_width) {
  const int64_t block_size = pool_->block_size();
  bool any = false;
  for (const Work& item : work) {
    const int64_t blocks = std::ssize(item.sequence->kv.blocks());
    const int64_t places = blocks * block_size - (item.sequence->*cached_ + item.count);
    if (places >= block_size / 2 || blocks >= table_width) continue;
    if (pool_->available() <= std::ssize(work)) break;
    any |= item.sequence->kv.reserve((blocks + 1) * block_size);
  }
  return any;
}

Stepper::GivenRow Stepper::given_row(const Indices& indices, size_t row) const {
  const auto tokens = static_cast<size_t>(indices.tokens);
  const auto width = static_cast<size_t>(indices.table_width);
  const auto adapters = static_cast<size_t>(indices.lora_each);
  const std::span<const int32_t> values(indices.values);
  const auto at = [&](size_t list) { return values[list * tokens + row]; };
  const size_t table = 5 * tokens + 1, lora = table + tokens * width + tokens;
  const auto blocks = static_cast<size_t>(at(1) / pool_->block_size() + 1);
  return {.id = at(0),
          .position = at(1),
          .slot = at(2),
          .blocks = values.subspan(table + row * width, blocks),
          .lora_slots = values.subspan(lora + row * adapters, adapters),
          .lora_scales = values.subspan(lora + (tokens + row) * adapters, adapters)};
}

// If draws often differ from the prediction, or requests come and go, an async step costs more
// than it gains.
void Stepper::discard_async_step() {
  async_step_.reset();
  hold_ = next_hold_;
  next_hold_ = std::min(2 * next_hold_, kMostHeld);
}

// False if the async step, if there is one, is not this step of `rows` rows.
bool Stepper::take_async_step(const Indices& asked, const TopLogitsWanted& wanted, size_t rows) {
  std::optional<GivenStep> queued = std::exchange(async_step_, std::nullopt);
  const bool serves = queued && advances(asked) && drawn_on_device(wanted) &&
                      asked.lora_each == queued->indices.lora_each &&
                      wanted.count <= queued->step->next->top_logits() &&
                      (wanted.scales.empty() || queued->step->next->draws());
  if (!serves) return false;
  const auto there = static_cast<size_t>(queued->indices.sequences);
  std::vector<size_t> places;
  for (size_t at = 0; at < there && places.size() < rows; ++at) {
    const GivenRow row = given_row(queued->indices, at), wants = given_row(asked, places.size());
    const bool same = row.id == wants.id && row.position == wants.position &&
                      row.slot == wants.slot && std::ranges::equal(row.blocks, wants.blocks) &&
                      std::ranges::equal(row.lora_slots, wants.lora_slots) &&
                      std::ranges::equal(row.lora_scales, wants.lora_scales);
    if (same) places.push_back(at);
  }
  if (places.size() < rows) return false;
  next_hold_ = std::max(next_hold_ / 2, 1);
  logits_ = queued->step->logits;
  // The device must not write for a sequence that has left.
  if (asked.values != queued->indices.values) picked_ = std::move(places);
  shown_ = std::move(queued);
  return true;
}

void Stepper::replay_async_step() {
  shown_->step->last_use = ++captured_uses_;
  shown_->step->capture.replay();
}

void Stepper::replay_again(std::span<const int32_t> values, int32_t turn) {
  device_.synchronize(device_.default_stream());
  shown_->step->next->give(values, turn, {}, host_indices_);
  shown_->step->capture.replay();
}

// Queues the step that follows the last one, with the integers that it writes.
void Stepper::start_async_step(std::span<const Work> work) {
  if (hold_ > 0) {
    --hold_;
    return;
  }
  const bool fits = picked_.empty() && std::ranges::all_of(work, [&](const Work& item) {
                      const auto blocks = std::ssize(item.sequence->kv.blocks());
                      return item.sequence->*cached_ < blocks * pool_->block_size();
                    });
  const bool has_numbers = !shown_->step->next->draws() || shown_->turn + 1 < kDeviceDraws;
  if (!fits || !has_numbers) return;
  as_told([&] {
    if (listener_ != nullptr) listener_->on_async_step({});
    replay_async_step();
  });
  async_step_ = shown_;
  ++async_step_->turn;
  advance(async_step_->indices);
  std::fill_n(async_step_->indices.values.begin(), work.size(),
              -1);  // until top_logits() sets them
}

}  // namespace rbee::engine
