#include "rbee/engine/stepper.h"

#include <algorithm>
#include <bit>

namespace rbee::engine {
namespace {

int64_t block_count(const StepperOptions& options) {
  check(options.cache_tokens > 0, "kv cache", options.cache_tokens, " tokens");
  return (options.cache_tokens + options.block_size - 1) / options.block_size;
}

nn::KvCacheOptions cache_options(const models::LanguageModel& model,
                                 const StepperOptions& options) {
  const models::ModelConfig& config = model.config();
  const DType natural = model.activations() == DType::bf16 ? DType::bf16 : DType::f16;
  return {.layers = config.layers,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .blocks = block_count(options),
          .block_size = options.block_size,
          .dtype = options.kv_dtype.value_or(natural)};
}

// Kept at most; the one unused for the longest goes first.
constexpr size_t kRecordedSteps = 16;

}  // namespace

Stepper::Stepper(const models::LanguageModel& model, Device& device, const StepperOptions& options)
    : model_(model),
      device_(device),
      pool_(block_count(options), options.block_size),
      cache_(cache_options(model, options), device) {}

std::span<float> Stepper::step(std::span<const Work> work, std::span<const int32_t> logit_rows) {
  for (const Work& item : work) {
    RB_ASSERT(item.count > 0);
    const int64_t end = item.sequence->cached + item.count;
    if (!item.sequence->kv.reserve(end)) {
      fail(Code::out_of_memory, "kv cache", "no room for ", end, " tokens: ", pool_.used(), " of ",
           pool_.total(), " blocks of ", pool_.block_size(), " tokens are in use");
    }
  }
  logits_ = {};  // its memory may serve this step
  if (can_record(work, logit_rows)) {
    logits_ = run_recorded(work, logit_rows);
  } else {
    const Indices indices = make_indices(work, logit_rows, false);
    const auto count = static_cast<int64_t>(indices.values.size());
    const Tensor values =
        from_host(std::span<const int32_t>(indices.values), Shape{count}, device_);
    logits_ = model_.forward(make_batch(indices, values), cache_);
  }
  for (const Work& item : work) item.sequence->cached += item.count;
  if (device_.host_accessible()) {
    return {logits_.data<float>(), static_cast<size_t>(logits_.numel())};
  }
  const auto bytes = static_cast<size_t>(logits_.bytes());
  host_logits_.reserve(device_, bytes);
  device_.copy(host_logits_.as<float>(), logits_.view().data, bytes, CopyKind::device_to_host,
               logits_.stream());
  device_.synchronize(logits_.stream());
  return {host_logits_.as<float>(), static_cast<size_t>(logits_.numel())};
}

Stepper::Indices Stepper::make_indices(std::span<const Work> work,
                                       std::span<const int32_t> logit_rows, bool round_table) {
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
  if (round_table) widest = std::bit_ceil(widest);
  std::vector<int32_t> table(work.size() * widest, 0);
  for (size_t i = 0; i < work.size(); ++i) {
    std::ranges::copy(work[i].sequence->kv.blocks(),
                      table.begin() + static_cast<ptrdiff_t>(i * widest));
  }
  Indices out{.tokens = static_cast<int64_t>(ids.size()),
              .sequences = static_cast<int64_t>(work.size()),
              .table_width = static_cast<int64_t>(widest),
              .rows = static_cast<int64_t>(logit_rows.size()),
              .values = {}};
  const auto append = [&out](std::span<const int32_t> part) {
    out.values.insert(out.values.end(), part.begin(), part.end());
  };
  for (const auto* part : {&ids, &positions, &slots, &starts, &lengths, &table}) append(*part);
  append(logit_rows);
  return out;
}

models::ForwardBatch Stepper::make_batch(const Indices& indices, const Tensor& values) {
  int64_t at = 0;
  const auto take = [&](const Shape& shape) {
    const int64_t count = numel(shape);
    at += count;
    return values.slice(Axis{0}, at - count, count).reshape(shape);
  };
  models::ForwardBatch batch;
  batch.ids = take({indices.tokens});
  batch.positions = take({indices.tokens});
  batch.paged.slots = take({indices.tokens});
  batch.paged.seq_starts = take({indices.sequences + 1});
  batch.paged.kv_lens = take({indices.sequences});
  batch.paged.block_table = take({indices.sequences, indices.table_width});
  batch.logit_rows = take({indices.rows});
  return batch;
}

bool Stepper::can_record(std::span<const Work> work, std::span<const int32_t> logit_rows) const {
  return Recording::supported(device_) && logit_rows.size() == work.size() &&
         std::ranges::all_of(work, [](const Work& item) { return item.count == 1; });
}

Tensor Stepper::run_recorded(std::span<const Work> work, std::span<const int32_t> logit_rows) {
  // The table's width is rounded up, so that a growing sequence changes shape rarely.
  const Indices indices = make_indices(work, logit_rows, true);
  RecordedStep& step = recorded_step(indices);
  // The copy of the step before has ended: its logits were waited for.
  const size_t bytes = indices.values.size() * sizeof(int32_t);
  host_indices_.reserve(device_, bytes);
  std::ranges::copy(indices.values, host_indices_.as<int32_t>());
  device_.copy(step.indices.view().data, host_indices_.as<int32_t>(), bytes,
               CopyKind::host_to_device, device_.default_stream());
  step.recording.replay();
  return step.logits;
}

Stepper::RecordedStep& Stepper::recorded_step(const Indices& indices) {
  const std::pair key{indices.sequences, indices.table_width};
  if (const auto known = recorded_.find(key); known != recorded_.end()) {
    known->second.last_use = ++recorded_uses_;
    return known->second;
  }
  if (recorded_.size() >= kRecordedSteps) {
    device_.synchronize(device_.default_stream());
    recorded_.erase(std::ranges::min_element(
        recorded_, {}, [](const auto& entry) { return entry.second.last_use; }));
  }
  RecordedStep step;
  const auto count = static_cast<int64_t>(indices.values.size());
  step.indices = from_host(std::span<const int32_t>(indices.values), Shape{count}, device_);
  const models::ForwardBatch batch = make_batch(indices, step.indices);
  // Once for real: modules are loaded and libraries set up before anything is recorded. The same
  // keys and values are written again by the replay.
  step.logits = model_.forward(batch, cache_);
  step.recording = Recording(device_, [&] { step.logits = model_.forward(batch, cache_); });
  step.last_use = ++recorded_uses_;
  return recorded_.emplace(key, std::move(step)).first->second;
}

}  // namespace rbee::engine
