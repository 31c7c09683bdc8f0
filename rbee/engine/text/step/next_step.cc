#include "rbee/engine/text/step/next_step.h"

#include <algorithm>
#include <bit>

#include "rbee/engine/common/buffer_parts.h"

namespace rbee::engine {
namespace {

// Of one row: its scale, stages, amounts, bans and numbers.
constexpr int64_t kDrawWords = 1 + 2 * kDrawStages + kDrawBans + kDeviceDraws;

Tensor host_words(const std::shared_ptr<HostBuffer>& host, Device& device, const Shape& shape) {
  const auto bytes = static_cast<size_t>(numel(shape)) * sizeof(int32_t);
  host->reserve(device, std::max<size_t>(bytes, 4));
  View view;
  view.data = host->as<int32_t>();
  view.dtype = DType::i32;
  view.rank = 2;
  view.sizes[0] = shape[0];
  view.sizes[1] = view.strides[0] = shape[1];
  view.strides[1] = 1;
  return Tensor::from_buffer(std::make_shared<Buffer>(device, view.data, bytes, host), view);
}

}  // namespace

NextStep::NextStep(int64_t rows, int64_t integers, int64_t vocab, NextToken token, Device& device)
    : rows_(rows), vocab_(vocab), host_(std::make_shared<HostBuffer>()) {
  RB_ASSERT(integers >= rows);
  const bool drawn = token == NextToken::drawn;
  const int64_t count = drawn ? std::min(kDrawnTopLogits, vocab) : 1;
  const int64_t top_logits = rows * count, found = drawn ? 2 * top_logits + rows : top_logits;
  const int64_t given = integers + 1 + (drawn ? rows * kDrawWords : 0);
  BufferParts parts(device, found + given);
  top_logits_.values = parts.take({rows, count}, DType::f32);
  if (drawn) {
    top_logits_.ids = parts.take({rows, count}, DType::i32);
    top_logits_.sum = parts.take({rows}, DType::f32);
  }
  integers_ = parts.take({integers}, DType::i32);
  turn_ = parts.take({1}, DType::i32);
  if (drawn) {
    scales_ = parts.take({rows}, DType::f32);
    draws_.stages = parts.take({rows, kDrawStages}, DType::i32);
    draws_.amounts = parts.take({rows, kDrawStages}, DType::f32);
    draws_.banned = parts.take({rows, kDrawBans}, DType::i32);
    draws_.numbers = parts.take({rows, kDeviceDraws}, DType::f32);
  } else {
    top_logits_.ids = integers_.slice(Axis{0}, 0, rows).reshape({rows, 1});
  }
  given_ = parts.at(found, {given}, DType::i32);
  found_ = parts.at(0, {found + rows}, DType::i32);
  shown_ = host_words(host_, device, {2, found + rows});
}

void NextStep::put_draws(const TopLogitsWanted& wanted, std::span<int32_t> words) {
  const auto rows = static_cast<size_t>(rows_);
  const auto take = [&](size_t each) {
    const std::span<int32_t> part = words.first(rows * each);
    words = words.subspan(rows * each);
    return part;
  };
  const auto scales = take(1), stages = take(kDrawStages), amounts = take(kDrawStages);
  const auto banned = take(kDrawBans), numbers = take(kDeviceDraws);
  numbers_.assign(numbers.size(), 0);
  std::ranges::fill(banned, -1);
  for (size_t row = 0; row < rows; ++row) {
    DeviceDraws draws{.banned = {},
                      .numbers = std::span(numbers_).subspan(row * kDeviceDraws, kDeviceDraws)};
    const bool asked = row < wanted.scales.size();
    if (asked && wanted.draws != nullptr) {
      wanted.draws->describe(static_cast<int64_t>(row), draws);
    } else {
      draws.stages.front() = DrawStage::top_k;
      draws.amounts.front() = 1;
    }
    scales[row] = std::bit_cast<int32_t>(asked ? wanted.scales[row] : 1);
    for (size_t i = 0; i < draws.stages.size(); ++i) {
      stages[row * kDrawStages + i] = static_cast<int32_t>(draws.stages[i]);
      amounts[row * kDrawStages + i] = std::bit_cast<int32_t>(draws.amounts[i]);
    }
    std::ranges::copy(draws.banned, banned.begin() + static_cast<ptrdiff_t>(row * kDrawBans));
  }
  std::ranges::transform(numbers_, numbers.begin(), std::bit_cast<int32_t, float>);
}

int64_t NextStep::draw_word_count() const {
  return draws() ? rows_ * kDrawWords : 0;
}

std::vector<int32_t> NextStep::draw_words(const TopLogitsWanted& wanted) {
  std::vector<int32_t> out(static_cast<size_t>(draw_word_count()));
  if (draws()) put_draws(wanted, out);
  return out;
}

void NextStep::give(std::span<const int32_t> integers, int32_t turn, std::span<const int32_t> draws,
                    HostBuffer& through) {
  RB_ASSERT(std::ssize(integers) == integers_.numel());
  Device& device = given_.device();
  through.reserve(device, static_cast<size_t>(given_.numel()) * sizeof(int32_t));
  auto* const words = through.as<int32_t>();
  std::ranges::copy(integers, words);
  words[integers.size()] = turn;
  std::ranges::copy(draws, words + integers.size() + 1);
  const size_t count = integers.size() + 1 + draws.size();
  device.copy(given_.view().data, words, count * sizeof(int32_t), CopyKind::host_to_device,
              given_.stream());
}

void NextStep::queue(const Tensor& logits, const nn::SplitVocabulary& vocabulary,
                     const Tensor& positions, const PagedBatch& batch, int64_t block_size) const {
  const nn::SplitVocabulary known = vocabulary.first(vocab_);
  known.top_k_(top_logits_, logits, scales_);
  if (draws()) {
    // A draw may need any token, so every rank gets whole rows.
    draw_(integers_.slice(Axis{0}, 0, rows_), known.gather(logits), top_logits_, draws_, turn_);
  }
  next_step_({.positions = positions,
              .slots = batch.slots,
              .lengths = batch.kv_lens,
              .block_table = batch.block_table,
              .block_size = block_size,
              .turn = turn_},
             found_, shown_);
}

std::span<const int32_t> NextStep::shown(int32_t turn) const {
  const auto count = static_cast<size_t>(found_.numel());
  return {host_->as<const int32_t>() + static_cast<size_t>(turn % 2) * count, count};
}

TopLogitRows NextStep::found(int32_t turn) {
  const std::span<const int32_t> words = shown(turn);
  const auto count = static_cast<size_t>(top_logits_.values.numel());
  const auto* floats = reinterpret_cast<const float*>(words.data());
  TopLogitRows out{.values = {floats, count}, .ids = words.subspan(count, count), .sums = {}};
  if (!draws()) return out;
  out.sums = {floats + 2 * count, static_cast<size_t>(rows_)};
  out.drawn = tokens(turn);
  drawn_by_.resize(static_cast<size_t>(rows_));
  for (size_t row = 0; row < drawn_by_.size(); ++row) {
    drawn_by_[row] = numbers_[row * kDeviceDraws + static_cast<size_t>(turn)];
  }
  out.numbers = drawn_by_;
  return out;
}

std::span<const int32_t> NextStep::tokens(int32_t turn) const {
  return shown(turn).last(static_cast<size_t>(rows_));
}

}  // namespace rbee::engine
