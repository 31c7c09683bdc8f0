#include "rbee/engine/text/step/stepper.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace rbee::engine {
namespace {

int64_t block_count(const StepperOptions& options) {
  if (options.pool != nullptr) return options.pool->total();
  check(options.cache_tokens > 0, "kv cache", options.cache_tokens, " tokens");
  return (options.cache_tokens + options.block_size - 1) / options.block_size;
}

DType cache_type(const models::LanguageModel& model, std::optional<DType> wanted) {
  return wanted.value_or(model.activations() == DType::bf16 ? DType::bf16 : DType::f16);
}

nn::KvCacheOptions cache_options(const models::LanguageModel& model,
                                 const StepperOptions& options) {
  const models::CacheShape shape = model.cache_shape();
  return {.layers = shape.layers,
          .blocks = block_count(options),
          .block_size = options.pool ? options.pool->block_size() : options.block_size,
          .dtype = cache_type(model, options.kv_dtype),
          .one_tensor = shape.one_tensor,
          .host = model.host_layers().host,
          .host_layers = model.host_layers().count,
          .in_host_memory = !options.kv_offload,
          .state_slots = shape.has_states() ? options.sequences : 0};
}

// Limits of the kept steps: their number, and the tokens of all of them, whose logits take most of
// the memory. The step that was unused the longest goes first.
constexpr size_t kCapturedSteps = 64;
constexpr int64_t kCapturedRows = 512;
// Most tokens of a sequence in a captured step: only steps that want logits of prompts have more,
// and not the same number again.
constexpr int64_t kMostCapturedTokens = 65;
// Least blocks of a sequence: with fewer keys steps are no faster, and would need more captures.
constexpr size_t kLeastWidth = 4;

int64_t most_tokens(std::span<const Stepper::Work> work) {
  return std::ranges::max_element(work, {}, &Stepper::Work::count)->count;
}

// Of sequences that begin at these rows: how many in front have a single row.
int64_t count_single_queries(std::span<const int32_t> starts) {
  const auto longer = std::ranges::adjacent_find(
      starts, [](int32_t first, int32_t end) { return end - first != 1; });
  return longer == starts.end() ? std::ssize(starts) - 1 : longer - starts.begin();
}

// Compares bits.
Tensor as_floats(const Tensor& bits) {
  View view = bits.view();
  view.dtype = DType::f32;
  return Tensor::from_buffer(bits.buffer(), view);
}

}  // namespace

CacheTokenBytes cache_token_bytes(const models::LanguageModel& model, std::optional<DType> kv_dtype,
                                  bool kv_offload) {
  // Of a cache with one token.
  const nn::KvCacheOptions options =
      cache_options(model, {.cache_tokens = 1, .block_size = 1, .kv_dtype = kv_dtype});
  const auto layers = std::ssize(options.layers);
  const int64_t host_layers = kv_offload ? options.host_layers : layers;
  return {.device = nn::KvCache::token_bytes(options, host_layers, layers),
          .host = nn::KvCache::token_bytes(options, 0, host_layers)};
}

int64_t cache_state_bytes(const models::LanguageModel& model) {
  const nn::KvCacheOptions options{.layers = model.cache_shape().layers};
  return nn::KvCache::state_bytes(options, 0, std::ssize(options.layers));
}

// Few enough numbers that each is soon captured, and none wastes half of a step.
int64_t captured_sequences(int64_t sequences) {
  if (sequences <= 8) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sequences)));
  const int64_t step = sequences <= 32 ? 8 : sequences <= 128 ? 32 : 64;
  return (sequences + step - 1) / step * step;
}

int64_t captured_tokens(int64_t tokens) {
  if (tokens == 1) return 1;
  return 1 + static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tokens - 1)));
}

Stepper::Stepper(const models::LanguageModel& model, Device& device, const StepperOptions& options)
    : model_(model),
      device_(device),
      listener_(options.listener),
      cpu_moe_(model.cpu_moe_layers() > 0),
      states_(model.cache_shape().has_states()),
      own_pool_(options.pool ? std::nullopt
                             : std::optional<KvBlockPool>(std::in_place, block_count(options),
                                                          options.block_size)),
      pool_(options.pool ? options.pool : &*own_pool_),
      cached_(options.pool ? &Sequence::draft_cached : &Sequence::cached),
      cache_(cache_options(model, options), device) {
  if (states_) {
    check(options.pool == nullptr && options.host_blocks == 0, "Stepper",
          "a model with states shares no pool and keeps no blocks in host memory");
    pool_->use_states(options.sequences);
  }
  if (options.host_blocks > 0) {
    host_blocks_.emplace(cache_, device, options.host_blocks);
    pool_->use_host(options.host_blocks, *this);
  }
  if (listener_ == nullptr) return;
  listener_->on_open({.cache_tokens = pool_->total() * pool_->block_size(),
                      .block_size = pool_->block_size(),
                      .kv_dtype = options.kv_dtype,
                      .host_blocks = options.host_blocks});
}

Stepper::~Stepper() {
  try {
    drop_captured();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A lost device does nothing more.
  }
}

std::span<float> Stepper::step(std::span<const Work> work, std::span<const int32_t> logit_rows) {
  evaluate(work, logit_rows, {});
  return rows_to_host(0, logits_.dim(0));
}

void Stepper::run(std::span<const Work> work, std::span<const int32_t> logit_rows) {
  evaluate(work, logit_rows, {});
  under_way_ = true;
}

void Stepper::begin(std::span<const Work> work, std::span<const int32_t> logit_rows,
                    const TopLogitsWanted& wanted, AsyncStep next) {
  RB_ASSERT(!logit_rows.empty() && wanted.count > 0);
  if (has_host_layers()) next = AsyncStep::nothing;  // they need the token first
  evaluate(work, logit_rows, wanted, next);
  top_logit_rows_ = logit_rows.size();
  top_logit_count_ = static_cast<size_t>(wanted.count);
  top_logit_sums_ = !wanted.scales.empty();
  drawn_on_device_ = drawn_on_device(wanted);
  under_way_ = true;
  if (!shown_) return top_logits_.fetch(host_top_logits_);
  if (!done_) done_.emplace(device_);
  done_->set();
  if (next == AsyncStep::next_step && drawn_on_device_) start_async_step(work);
}

TopLogitRows Stepper::top_logits() {
  await([&] { shown_ ? done_->wait() : device_.synchronize(device_.default_stream()); });
  under_way_ = false;
  // Without the padding rows of a captured step.
  if (!shown_) return pick(top_logits_.rows(host_top_logits_), top_logit_count_);
  NextStep& next = *shown_->step->next;
  if (async_step_) {
    const std::span<const int32_t> tokens = next.tokens(shown_->turn);
    std::ranges::copy(tokens.first(top_logit_rows_), async_step_->indices.values.begin());
  }
  return pick(next.found(shown_->turn), static_cast<size_t>(next.top_logits()));
}

std::span<float> Stepper::logit_row(int64_t row) {
  if (async_step_) {
    // It writes to the place of the last step's logits.
    discard_async_step();
    as_told([&] {
      if (listener_ != nullptr) {
        listener_->on_again({.values = shown_->indices.values, .turn = shown_->turn});
      }
      replay_again(shown_->indices.values, shown_->turn);
    });
  }
  const int64_t at =
      picked_.empty() ? row : static_cast<int64_t>(picked_[static_cast<size_t>(row)]);
  return rows_to_host(at, 1);
}

std::span<float> Stepper::to_host(const Tensor& own) {
  if (!model_.group().alone()) whole_rows_ = model_.vocabulary().gather(own);
  const Tensor& logits = whole_rows_.defined() ? whole_rows_ : own;
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
                       const TopLogitsWanted& wanted, AsyncStep next) {
  for (const Work& item : work) {
    RB_ASSERT(item.count > 0);
    const int64_t end = item.sequence->*cached_ + item.count;
    if (!item.sequence->kv.reserve(end)) {
      fail(Code::out_of_memory, "kv cache", "no room for ", end, " tokens: ", pool_->used(), " of ",
           pool_->total(), " blocks of ", pool_->block_size(), " tokens are in use",
           states_ ? ", or all slots of states" : "");
    }
  }
  logits_ = {};  // their memory may serve this step
  whole_rows_ = {};
  top_logits_ = {};
  shown_.reset();
  picked_.clear();
  if (can_capture(work, logit_rows)) {
    run_captured(work, logit_rows, wanted, next);
  } else {
    if (async_step_) discard_async_step();
    run_host_layers(work, logit_rows, false);
    const Indices indices = make_indices(work, logit_rows);
    listener_ == nullptr ? run_once(indices, wanted) : lead(indices, wanted);
  }
  for (const Work& item : work) item.sequence->*cached_ += item.count;
}

void Stepper::list_adapters(std::span<const Work> work, IndexLists& lists) {
  for (const Work& item : work) {
    lists.lora_each = std::max(lists.lora_each, item.sequence->lora.size());
  }
  for (const Work& item : work) {
    const std::vector<LoraSlot>& uses = item.sequence->lora;
    for (int64_t token = 0; token < item.count; ++token) {
      for (size_t i = 0; i < lists.lora_each; ++i) {
        const LoraSlot use = i < uses.size() ? uses[i] : LoraSlot{};
        lists.lora_slots.push_back(use.slot);
        lists.lora_scales.push_back(std::bit_cast<int32_t>(use.scale));
      }
    }
  }
}

// The pictures among a work's tokens. The first may be cached already, up to a block's end.
void Stepper::list_pictures(const Work& work, IndexLists& out) {
  const Sequence& sequence = *work.sequence;
  const int64_t begin = sequence.cached, end = begin + work.count;
  for (const PictureSpan& span : sequence.pictures) {
    if (span.end() <= begin || span.first >= end) continue;
    RB_ASSERT(span.end() <= end);
    const int64_t first = std::max(span.first, begin);
    const int64_t row = std::ssize(out.ids) + first - begin;
    out.pictures.push_back(
        {row, span.picture->rows.slice(Axis{0}, first - span.first, span.end() - first)});
    out.key_ends.resize(static_cast<size_t>(row), 0);
    out.key_ends.resize(static_cast<size_t>(row + span.end() - first),
                        static_cast<int32_t>(span.end()));
  }
}

Stepper::IndexLists Stepper::list_indices(std::span<const Work> work) const {
  const bool drafts = cached_ != &Sequence::cached;  // a draft model has no adapters or pictures
  IndexLists out;
  for (const Work& item : work) {
    const Sequence& sequence = *item.sequence;
    if (!drafts) list_pictures(item, out);
    for (int64_t i = sequence.*cached_; i < sequence.*cached_ + item.count; ++i) {
      out.ids.push_back(sequence.tokens[static_cast<size_t>(i)]);
      out.positions.push_back(static_cast<int32_t>(i));
      out.slots.push_back(sequence.kv.slot(i));
    }
    out.starts.push_back(static_cast<int32_t>(out.ids.size()));
    out.lengths.push_back(static_cast<int32_t>(sequence.*cached_ + item.count));
    if (states_) out.states.push_back(sequence.kv.state_slot());
    out.widest = std::max(out.widest, sequence.kv.blocks().size());
  }
  if (!drafts) list_adapters(work, out);
  if (!out.pictures.empty()) out.key_ends.resize(out.ids.size(), 0);
  return out;
}

Stepper::Indices Stepper::join(const IndexLists& lists, std::span<const Work> work,
                               std::span<const int32_t> logit_rows) {
  std::vector<int32_t> table(lists.lengths.size() * lists.widest, 0);
  for (size_t i = 0; i < work.size(); ++i) {
    std::ranges::copy(work[i].sequence->kv.blocks(),
                      table.begin() + static_cast<ptrdiff_t>(i * lists.widest));
  }
  Indices out{.tokens = static_cast<int64_t>(lists.ids.size()),
              .sequences = static_cast<int64_t>(lists.lengths.size()),
              .table_width = static_cast<int64_t>(lists.widest),
              .rows = static_cast<int64_t>(logit_rows.size()),
              .single_queries = count_single_queries(lists.starts),
              .lora_each = static_cast<int64_t>(lists.lora_each),
              .key_ends = !lists.key_ends.empty(),
              .states = !lists.states.empty(),
              .pictures = lists.pictures,
              .values = {}};
  const auto append = [&out](std::span<const int32_t> part) {
    out.values.insert(out.values.end(), part.begin(), part.end());
  };
  for (const auto* part :
       {&lists.ids, &lists.positions, &lists.slots, &lists.starts, &lists.lengths}) {
    append(*part);
  }
  append(table);
  append(logit_rows);
  append(lists.lora_slots);
  append(lists.lora_scales);
  append(lists.key_ends);
  append(lists.states);
  return out;
}

Stepper::Indices Stepper::make_indices(std::span<const Work> work,
                                       std::span<const int32_t> logit_rows) const {
  return join(list_indices(work), work, logit_rows);
}

Stepper::Indices Stepper::make_captured_indices(std::span<const Work> work,
                                                std::span<const int32_t> logit_rows) const {
  const int64_t tokens = captured_tokens(most_tokens(work));
  const auto sequences = static_cast<size_t>(captured_sequences(std::ssize(work)));
  IndexLists own = list_indices(work), lists;
  lists.widest = own.widest;
  lists.lora_each = own.lora_each;
  std::vector<int32_t> rows, others;
  size_t next = 0;  // of logit_rows
  for (size_t i = 0; i < sequences; ++i) {
    const bool real = i < work.size();
    const auto first = static_cast<size_t>(real ? own.starts[i] : 0);
    // Padding rows come first: they see keys that the sequence has, and a row's own place among the
    // keys, which counts from the end, does not change.
    const int64_t more = tokens - (real ? work[i].count : 0);
    for (int64_t j = 0; j < tokens; ++j) {
      const auto row = static_cast<int32_t>(lists.ids.size());
      const bool own_token = j >= more;
      const auto from = first + static_cast<size_t>(std::max<int64_t>(j - more, 0));
      const bool wanted =
          own_token && next < logit_rows.size() && logit_rows[next] == static_cast<int32_t>(from);
      (wanted ? rows : others).push_back(row);
      next += wanted ? 1 : 0;
      lists.ids.push_back(own_token ? own.ids[from] : 0);
      lists.positions.push_back(own_token ? own.positions[from] : 0);
      lists.slots.push_back(own_token ? own.slots[from] : -1);
      for (size_t k = from * own.lora_each; k < (from + 1) * own.lora_each; ++k) {
        lists.lora_slots.push_back(own_token ? own.lora_slots[k] : 0);
        lists.lora_scales.push_back(own_token ? own.lora_scales[k] : 0);
      }
    }
    lists.starts.push_back(static_cast<int32_t>(lists.ids.size()));
    const int64_t length = real ? own.lengths[i] : tokens;
    lists.lengths.push_back(static_cast<int32_t>(length));
    const int64_t blocks = (length + pool_->block_size() - 1) / pool_->block_size();
    lists.widest = std::max(lists.widest, static_cast<size_t>(blocks));
  }
  lists.widest = std::max(std::bit_ceil(lists.widest), kLeastWidth);
  rows.insert(rows.end(), others.begin(), others.end());
  Indices out = join(lists, work, rows);
  out.captured = true;
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
  if (indices.lora_each > 0) {
    batch.lora.slots = take({indices.tokens, indices.lora_each});
    batch.lora.scales = as_floats(take({indices.tokens, indices.lora_each}));
  }
  if (indices.key_ends) batch.paged.key_ends = take({indices.tokens});
  if (indices.states) batch.state_slots = take({indices.sequences});
  batch.pictures = indices.pictures;
  batch.paged.single_queries = indices.single_queries;
  return batch;
}

// Not with states: capturing a step runs it more often than once, and a step ahead that is not
// used cannot be taken back. Else if rounding up at most doubles the rows, and each sequence has as
// many keys as it gets rows: no row then sees unwritten keys, whose NaN would reach the other rows'
// sums.
bool Stepper::can_capture(std::span<const Work> work, std::span<const int32_t> logit_rows) const {
  if (cpu_moe_ || states_ || !GraphCapture::supported(device_)) return false;
  if (logit_rows.size() < work.size()) return false;
  const bool in_pictures = std::ranges::any_of(work, [](const Work& item) {
    return std::ranges::any_of(item.sequence->pictures, [&](const PictureSpan& span) {
      return item.sequence->cached < span.end();
    });
  });
  if (in_pictures) return false;
  const int64_t tokens = most_tokens(work);
  if (tokens == 1) return true;
  const bool long_enough = std::ranges::all_of(work, [&](const Work& item) {
    return item.sequence->*cached_ + item.count >= captured_tokens(tokens);
  });
  return long_enough && tokens <= kMostCapturedTokens &&
         captured_sequences(std::ssize(work)) * captured_tokens(tokens) <=
             2 * std::ssize(logit_rows);
}

void Stepper::run_host_layers(std::span<const Work> work, std::span<const int32_t> logit_rows,
                              bool captured) {
  const models::HostLayers layers = model_.host_layers();
  if (!layers.any()) return;
  const Indices indices = make_indices(work, logit_rows);
  const auto count = static_cast<int64_t>(indices.values.size());
  const Tensor values =
      from_host(std::span<const int32_t>(indices.values), Shape{count}, *layers.host);
  const Tensor x = model_.run_host_layers(make_batch(indices, values), cache_);
  const float* const from = x.data<float>();
  if (!captured) return hidden_.assign(from, from + x.numel());
  const int64_t each = captured_tokens(most_tokens(work)), dim = x.dim(1);
  hidden_.assign(static_cast<size_t>(captured_sequences(std::ssize(work)) * each * dim), 0);
  if (layers.count == model_.config().layers) {  // the wanted rows, which come first
    std::copy_n(from, x.numel(), hidden_.begin());
    return;
  }
  // Those of each sequence follow its padding rows.
  for (int64_t i = 0, row = 0; i < std::ssize(work); ++i) {
    const int64_t own = work[static_cast<size_t>(i)].count;
    std::copy_n(from + row * dim, own * dim, hidden_.begin() + ((i + 1) * each - own) * dim);
    row += own;
  }
}

Tensor Stepper::upload_hidden() {
  if (!has_host_layers()) return {};
  const int64_t dim = model_.config().dim;
  Tensor hidden = empty({std::ssize(hidden_) / dim, dim}, DType::f32, device_);
  upload(std::span<const float>(hidden_), hidden, host_hidden_);
  return hidden;
}

void Stepper::run_once(const Indices& indices, const TopLogitsWanted& wanted) {
  const auto count = static_cast<int64_t>(indices.values.size());
  const Tensor values = from_host(std::span<const int32_t>(indices.values), Shape{count}, device_);
  under_way_ = true;  // as in run_captured(): scales follow
  models::ForwardBatch batch = make_batch(indices, values);
  batch.hidden = upload_hidden();
  logits_ = model_.forward(batch, cache_);
  find_top_logits(wanted, indices.rows);
}

void Stepper::find_top_logits(const TopLogitsWanted& wanted, int64_t rows) {
  if (wanted.count == 0) return;
  top_logits_ = TopLogitTensors(rows, wanted, device_);
  if (!wanted.scales.empty()) upload(wanted.scales, top_logits_.scales(), host_scales_);
  top_logits_.find(logits_.slice(Axis{0}, 0, rows), model_.vocabulary());
}

template <typename T>
void Stepper::upload(std::span<const T> list, const Tensor& to, HostBuffer& through) {
  through.reserve(device_, list.size_bytes());
  std::ranges::copy(list, through.as<T>());
  device_.copy(to.view().data, through.as<T>(), list.size_bytes(), CopyKind::host_to_device,
               device_.default_stream());
}

void Stepper::run_captured(std::span<const Work> work, std::span<const int32_t> logit_rows,
                           const TopLogitsWanted& wanted, AsyncStep next) {
  Indices indices = make_captured_indices(work, logit_rows);
  const bool was_queued = async_step_.has_value();
  if (take_async_step(indices, wanted, logit_rows.size())) return;
  if (was_queued) discard_async_step();
  run_host_layers(work, logit_rows, true);
  if (under_way_) await([&] { device_.synchronize(device_.default_stream()); });
  under_way_ = true;  // from here on, also where an error leaves copies that read host memory
  const bool goes_on = advances(indices) && drawn_on_device(wanted) && next == AsyncStep::next_step;
  if (goes_on && reserve_ahead(work, indices.table_width)) {
    indices = make_captured_indices(work, logit_rows);
  }
  lead_captured(indices, wanted, std::ssize(logit_rows));
}

int64_t Stepper::next_token_of(const Indices& indices, const TopLogitsWanted& wanted) const {
  if (!advances(indices) || wanted.count == 0) return 0;
  const bool likeliest =
      drawn_on_device(wanted) && wanted.draws == nullptr && indices.sequences == 1;
  return likeliest ? 1 : 2;
}

void Stepper::replay(const Indices& indices, const CapturedWork& work, const MakeDraws& draws) {
  const std::array key{indices.sequences, indices.tokens / indices.sequences, indices.table_width,
                       indices.lora_each, work.next_token};
  const auto known = captured_.find(key);
  CapturedStep* step = known != captured_.end() ? &known->second : nullptr;
  CapturedStep fresh;
  if (step == nullptr) {
    make_room_for_captured(indices.tokens);
    fresh = prepare(indices, work);
  }
  CapturedStep& own = step != nullptr ? *step : fresh;
  const std::vector<int32_t> words = draws(own.next ? &*own.next : nullptr, step != nullptr);
  give(own, indices, words);
  if (step == nullptr) {
    capture(fresh, indices);
    step = &captured_.emplace(key, std::move(fresh)).first->second;
    give(*step, indices, words);
  }
  step->last_use = ++captured_uses_;
  step->capture.replay();
  logits_ = step->logits;
  const TopLogitsWanted& wanted = work.wanted;
  if (step->next && wanted.count > 0 && wanted.count <= step->next->top_logits()) {
    shown_ = {.step = step, .indices = indices, .turn = 0};
  } else {
    // After the capture, so that other wishes need no other capture.
    find_top_logits(wanted, work.rows);
  }
}

Stepper::CapturedStep Stepper::prepare(const Indices& indices, const CapturedWork& work) {
  CapturedStep step;
  const auto count = static_cast<int64_t>(indices.values.size());
  if (work.next_token > 0) {
    const NextToken token = work.next_token == 1 ? NextToken::likeliest : NextToken::drawn;
    step.next.emplace(indices.rows, count, work.wanted.vocab, token, device_);
    step.indices = step.next->integers();
  } else {
    step.indices = empty({count}, DType::i32, device_);
  }
  step.hidden = upload_hidden();
  return step;
}

void Stepper::give(CapturedStep& step, const Indices& indices, std::span<const int32_t> draws) {
  if (step.hidden.defined()) upload(std::span<const float>(hidden_), step.hidden, host_hidden_);
  if (step.next) return step.next->give(indices.values, 0, draws, host_indices_);
  upload(std::span<const int32_t>(indices.values), step.indices, host_indices_);
}

void Stepper::capture(CapturedStep& step, const Indices& indices) {
  models::ForwardBatch batch = make_batch(indices, step.indices);
  batch.hidden = step.hidden;
  const auto run = [&] {
    step.logits = model_.forward(batch, cache_);
    if (!step.next) return;
    step.next->queue(step.logits, model_.vocabulary(), batch.positions, batch.paged,
                     pool_->block_size());
  };
  // Run it once first: this loads modules and sets up libraries before anything is captured. The
  // replay writes the same keys and values again.
  run();
  step.capture = GraphCapture(device_, run);
  // The next upload, through the same host memory, waits; the replay writes them again.
  device_.synchronize(device_.default_stream());
}

void Stepper::forget_captured() {
  if (listener_ != nullptr) listener_->on_forget({});
  drop_captured();
}

void Stepper::drop_captured() {
  shown_.reset();
  async_step_.reset();
  if (captured_.empty()) return;
  device_.synchronize(device_.default_stream());
  logits_ = {};
  top_logits_ = {};
  captured_.clear();
}

// Makes room for one more.
void Stepper::make_room_for_captured(int64_t rows_to_come) {
  int64_t rows = rows_to_come;
  for (const auto& [key, step] : captured_) rows += key[0] * key[1];
  while (!captured_.empty() && (captured_.size() >= kCapturedSteps || rows > kCapturedRows)) {
    device_.synchronize(device_.default_stream());
    const auto oldest = std::ranges::min_element(
        captured_, {}, [](const auto& entry) { return entry.second.last_use; });
    rows -= oldest->first[0] * oldest->first[1];
    captured_.erase(oldest);
  }
}

}  // namespace rbee::engine
