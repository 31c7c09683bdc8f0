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
  evaluate(work, logit_rows, {});
  return to_host(logits_);
}

void Stepper::run(std::span<const Work> work, std::span<const int32_t> logit_rows) {
  evaluate(work, logit_rows, {});
  under_way_ = true;
}

LeaderRows Stepper::step(std::span<const Work> work, std::span<const int32_t> logit_rows,
                         const LeadersWanted& wanted) {
  RB_ASSERT(!logit_rows.empty() && wanted.count > 0);
  evaluate(work, logit_rows, wanted);
  return leaders_.read(host_leaders_);
}

std::span<float> Stepper::logit_row(int64_t row) {
  return to_host(logits_.slice(Axis{0}, row, 1));
}

std::span<float> Stepper::to_host(const Tensor& logits) {
  const auto count = static_cast<size_t>(logits.numel());
  if (device_.host_accessible()) return {logits.data<float>(), count};
  host_logits_.reserve(device_, count * sizeof(float));
  device_.copy(host_logits_.as<float>(), logits.view().data, count * sizeof(float),
               CopyKind::device_to_host, logits.stream());
  device_.synchronize(logits.stream());
  under_way_ = false;
  return {host_logits_.as<float>(), count};
}

void Stepper::evaluate(std::span<const Work> work, std::span<const int32_t> logit_rows,
                       const LeadersWanted& wanted) {
  for (const Work& item : work) {
    RB_ASSERT(item.count > 0);
    const int64_t end = item.sequence->cached + item.count;
    if (!item.sequence->kv.reserve(end)) {
      fail(Code::out_of_memory, "kv cache", "no room for ", end, " tokens: ", pool_.used(), " of ",
           pool_.total(), " blocks of ", pool_.block_size(), " tokens are in use");
    }
  }
  logits_ = {};  // their memory may serve this step
  leaders_ = {};
  if (can_record(work, logit_rows)) {
    // The table's width is rounded up, so that a growing sequence changes shape rarely.
    run_recorded(make_indices(work, logit_rows, true), wanted);
  } else {
    run_once(make_indices(work, logit_rows, false), wanted);
  }
  for (const Work& item : work) item.sequence->cached += item.count;
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

void Stepper::run_once(const Indices& indices, const LeadersWanted& wanted) {
  const auto count = static_cast<int64_t>(indices.values.size());
  const Tensor values = from_host(std::span<const int32_t>(indices.values), Shape{count}, device_);
  logits_ = model_.forward(make_batch(indices, values), cache_);
  if (wanted.count == 0) return;
  leaders_ = LeaderTensors(indices.rows, wanted, device_);
  leaders_.find(logits_);
}

template <typename T>
void Stepper::upload(std::span<const T> list, const Tensor& to, HostBuffer& through) {
  through.reserve(device_, list.size_bytes());
  std::ranges::copy(list, through.as<T>());
  device_.copy(to.view().data, through.as<T>(), list.size_bytes(), CopyKind::host_to_device,
               device_.default_stream());
}

void Stepper::run_recorded(const Indices& indices, const LeadersWanted& wanted) {
  RecordedStep& step = recorded_step(indices, wanted);
  if (under_way_) device_.synchronize(device_.default_stream());
  under_way_ = false;
  upload(std::span<const int32_t>(indices.values), step.indices, host_indices_);
  if (!wanted.scales.empty()) upload(wanted.scales, step.leaders.scales(), host_scales_);
  step.recording.replay();
  logits_ = step.logits;
  leaders_ = step.leaders;
}

Stepper::RecordedStep& Stepper::recorded_step(const Indices& indices, const LeadersWanted& wanted) {
  const std::array key{indices.sequences, indices.table_width, wanted.count,
                       static_cast<int64_t>(!wanted.scales.empty())};
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
  if (wanted.count > 0) step.leaders = LeaderTensors(indices.rows, wanted, device_);
  const auto run = [&, batch = make_batch(indices, step.indices)] {
    step.logits = model_.forward(batch, cache_);
    if (wanted.count > 0) step.leaders.find(step.logits);
  };
  // Once for real: modules are loaded and libraries set up before anything is recorded. The same
  // keys and values are written again by the replay.
  run();
  step.recording = Recording(device_, run);
  step.last_use = ++recorded_uses_;
  return recorded_.emplace(key, std::move(step)).first->second;
}

}  // namespace rbee::engine
