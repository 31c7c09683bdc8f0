#include "rbee/engine/stepper.h"

#include <algorithm>

namespace rbee::engine {
namespace {

int64_t block_count(const StepperOptions& options) {
  check(options.cache_tokens > 0, "kv cache", options.cache_tokens, " tokens");
  return (options.cache_tokens + options.block_size - 1) / options.block_size;
}

nn::KvCacheOptions cache_options(const models::ModelConfig& config, const StepperOptions& options) {
  return {.layers = config.layers,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .blocks = block_count(options),
          .block_size = options.block_size,
          .dtype = options.kv_dtype};
}

Tensor index_tensor(const std::vector<int32_t>& values, const Shape& shape, Device& device) {
  return from_host(std::span<const int32_t>(values), shape, device);
}

int64_t ssize(const std::vector<int32_t>& values) {
  return static_cast<int64_t>(values.size());
}

}  // namespace

Stepper::Stepper(const models::LanguageModel& model, Device& device, const StepperOptions& options)
    : model_(model),
      device_(device),
      pool_(block_count(options), options.block_size),
      cache_(cache_options(model.config(), options), device) {}

std::span<float> Stepper::step(std::span<const Work> work, std::span<const int32_t> logit_rows) {
  for (const Work& item : work) {
    RB_ASSERT(item.count > 0);
    const int64_t end = item.sequence->cached + item.count;
    if (!item.sequence->kv.reserve(end)) {
      fail(Code::out_of_memory, "kv cache", "no room for ", end, " tokens: ", pool_.used(), " of ",
           pool_.total(), " blocks of ", pool_.block_size(), " tokens are in use");
    }
  }
  logits_ = model_.forward(make_batch(work, logit_rows), cache_);
  for (const Work& item : work) item.sequence->cached += item.count;
  if (device_.host_accessible()) {
    return {logits_.data<float>(), static_cast<size_t>(logits_.numel())};
  }
  host_logits_ = logits_.to_host<float>();
  return host_logits_;
}

models::ForwardBatch Stepper::make_batch(std::span<const Work> work,
                                         std::span<const int32_t> logit_rows) const {
  std::vector<int32_t> ids, positions, slots, starts{0}, lengths;
  size_t widest = 1;
  for (const Work& item : work) {
    const Sequence& sequence = *item.sequence;
    for (int64_t i = sequence.cached; i < sequence.cached + item.count; ++i) {
      ids.push_back(sequence.tokens[static_cast<size_t>(i)]);
      positions.push_back(static_cast<int32_t>(i));
      slots.push_back(sequence.kv.slot(i));
    }
    starts.push_back(static_cast<int32_t>(ids.size()));
    lengths.push_back(static_cast<int32_t>(sequence.cached + item.count));
    widest = std::max(widest, sequence.kv.blocks().size());
  }
  std::vector<int32_t> table(work.size() * widest, 0);
  for (size_t i = 0; i < work.size(); ++i) {
    std::ranges::copy(work[i].sequence->kv.blocks(),
                      table.begin() + static_cast<ptrdiff_t>(i * widest));
  }
  const std::vector<int32_t> rows(logit_rows.begin(), logit_rows.end());
  const auto sequences = static_cast<int64_t>(work.size());
  models::ForwardBatch batch;
  batch.ids = index_tensor(ids, {ssize(ids)}, device_);
  batch.positions = index_tensor(positions, {ssize(positions)}, device_);
  batch.paged.seq_starts = index_tensor(starts, {sequences + 1}, device_);
  batch.paged.kv_lens = index_tensor(lengths, {sequences}, device_);
  batch.paged.block_table = index_tensor(table, {sequences, static_cast<int64_t>(widest)}, device_);
  batch.paged.slots = index_tensor(slots, {ssize(slots)}, device_);
  batch.logit_rows = index_tensor(rows, {ssize(rows)}, device_);
  return batch;
}

}  // namespace rbee::engine
