#include "rbee/engine/text/llm_scheduling.h"

#include <algorithm>

#include "rbee/core/log.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/engine/text/draft/drafter.h"
#include "rbee/engine/text/group/text_group.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {
namespace {

constexpr int32_t kMostPictures = 1024;

// Prompts get one in this many of a step's tokens if other requests generate. A GPU evaluates few
// tokens in nearly the same time as many.
constexpr int64_t kBesideShare = 4;
constexpr int64_t kBesideShareOfGpu = 2;

// Rows of the tiles that GPUs multiply by.
constexpr int64_t kRowTileOfGpu = 128;

// Most bytes of logits of prompts in a step.
constexpr int64_t kScoredBytes = int64_t{128} << 20;

// A GPU either has the memory or reports that it has not. A host promises memory that it lacks, and
// ends the process once the cache has filled it.
void warn_of_memory(int64_t bytes) {
  const int64_t free = bytes == 0 ? 0 : host_device().memory().free;
  if (free == 0 || bytes <= free) return;
  log(LogLevel::warn,
      "the KV cache is larger than the memory that is free; a smaller --context, --cache-tokens or "
      "--host-cache-gib may be needed",
      {{"bytes", cat(bytes)}, {"free_bytes", cat(free)}});
}

constexpr int64_t kStepOfCpu = 512, kStepOfGpu = 2048;

// Whether large steps take the time of a processor's arithmetic: not those whose weights come to
// the GPU, which take a bus's time, whatever their tokens are.
bool computes_on_host(const TextModel& text) {
  if (text.device->host_accessible()) return true;
  const bool on_host = text.model->host_layers().any() || text.model->cpu_moe_layers() > 0;
  return on_host && text.model->visiting_bytes(kStepOfGpu) == 0;
}

// Bytes of the caches for one token.
CacheTokenBytes token_bytes(const TextModel& text, const TextModel* draft,
                            const LlmOptions& options) {
  CacheTokenBytes out = cache_token_bytes(*text.model, options.kv_dtype, options.kv_offload);
  if (draft == nullptr) return out;
  const CacheTokenBytes more = cache_token_bytes(*draft->model, options.kv_dtype);
  return {.device = out.device + more.device, .host = out.host + more.host};
}

// Tokens whose bytes, with those of `states`, are 1 / share of the device's free memory.
int64_t tokens_in(const Device& device, int64_t share, int64_t bytes, int64_t states = 0) {
  if (bytes == 0) return INT64_MAX;
  return std::max<int64_t>(device.memory().free / share - states, 0) / bytes;
}

// How many tokens the free memory is for, beside so many bytes of states.
int64_t fitting_tokens(const TextModel& text, const CacheTokenBytes& bytes, int64_t states) {
  constexpr int64_t kShareOfHost = 8, kShareOfGpu = 2;
  if (text.device->host_accessible()) {
    // The ranks of a group share the machine's memory.
    const int64_t others = text.group ? text.group->others().cache_token_bytes : 0;
    return tokens_in(*text.device, kShareOfHost, bytes.all() + others, states);
  }
  int64_t on_device = tokens_in(*text.device, kShareOfGpu, bytes.device, states);
  if (text.group) {
    // Every rank has as many tokens, the least that fits one.
    for (const group::LinkLoaded& rank : text.group->ranks()) {
      const int64_t each = std::max<int64_t>(rank.cache_token_bytes, 1);
      on_device = std::min(on_device, rank.free_bytes / kShareOfGpu / each);
    }
  }
  if (bytes.host == 0) return on_device;
  return std::min(on_device, tokens_in(host_device(), kShareOfHost, bytes.host));
}

// Of the model alone: what a draft model holds of a text is not kept.
int64_t block_bytes_of_ranks(const LlmOptions& options, const TextModel& text) {
  const int64_t others = text.group ? text.group->others().cache_token_bytes : 0;
  return options.block_size * (token_bytes(text, nullptr, options).all() + others);
}

int64_t host_blocks(const LlmOptions& options, const TextModel& text) {
  if (options.host_cache_bytes == 0) return 0;
  return std::min<int64_t>(options.host_cache_bytes / block_bytes_of_ranks(options, text),
                           INT32_MAX);
}

void check_host_cache(const LlmOptions& options, const TextModel& text) {
  check(options.host_cache_bytes >= 0, "host_cache_bytes", options.host_cache_bytes,
        " is negative");
  if (options.host_cache_bytes == 0) return;
  check(options.kv_offload || text.device->host_accessible(), "host_cache_bytes",
        "the KV cache is in host memory already (--no-kv-offload); a larger --cache-tokens keeps "
        "more texts there");
  const int64_t block = block_bytes_of_ranks(options, text);
  check(options.host_cache_bytes >= block, "host_cache_bytes", options.host_cache_bytes,
        " is less than a block of ", options.block_size, " tokens takes, ", block, " bytes");
}

// What needs keys and values alone, and states at the end of whatever text cannot do yet.
void turn_off_for_states(LlmOptions& options) {
  log(LogLevel::info, "layers with states: texts share no beginnings and take no draft tokens",
      {{"max_running", cat(options.max_running)}});
  if (options.speculative) {
    log(LogLevel::warn, "layers with states take back no draft tokens; speculative is off");
    options.speculative = false;
  }
  if (options.host_cache_bytes > 0) {
    log(LogLevel::warn, "layers with states share no beginnings; host_cache_bytes is off");
    options.host_cache_bytes = 0;
  }
}

}  // namespace

LlmOptions resolve(const TextModel& text, const TextModel* draft, LlmOptions options) {
  const int64_t context = text.info.context_length;
  check(options.max_running >= 1, "max_running", options.max_running, " is below 1");
  check(options.max_waiting >= 0, "max_waiting", options.max_waiting, " is negative");
  check(options.step_tokens >= 0, "step_tokens", options.step_tokens, " is negative");
  check(options.draft_tokens >= 1 && options.draft_tokens <= kMaxDrafts, "draft_tokens",
        options.draft_tokens, " is outside of 1 to ", kMaxDrafts);
  check(options.draft_min_p >= 0 && options.draft_min_p <= 1, "draft_min_p", options.draft_min_p,
        " is outside of 0 to 1");
  check(options.max_pictures >= 1 && options.max_pictures <= kMostPictures, "max_pictures",
        options.max_pictures, " is outside of 1 to ", kMostPictures);
  check(options.picture_cache_bytes >= 0, "picture_cache_bytes", options.picture_cache_bytes,
        " is negative");
  check(options.grammar_cache_bytes >= 0, "grammar_cache_bytes", options.grammar_cache_bytes,
        " is negative");
  check(options.step_seconds >= 0, "step_seconds", options.step_seconds, " is negative");
  check(options.block_size >= 1, "block_size", options.block_size, " is below 1");
  if (text.model->cache_shape().has_states()) turn_off_for_states(options);
  if (options.step_tokens == 0) {
    options.step_tokens =
        std::max<int64_t>(computes_on_host(text) ? kStepOfCpu : kStepOfGpu, options.max_running);
  }
  const CacheTokenBytes bytes = token_bytes(text, draft, options);
  const int64_t states = options.max_running * cache_state_bytes(*text.model);
  const int64_t most = INT32_MAX - options.block_size;  // slots are 32-bit numbers
  if (options.cache_tokens == 0) {
    const int64_t fits = fitting_tokens(text, bytes, states);
    const int64_t wanted = context * options.max_running;
    options.cache_tokens = std::clamp(std::min(fits, wanted), context, most);
  }
  check(options.cache_tokens >= context && options.cache_tokens <= most, "cache_tokens",
        options.cache_tokens, " is outside of ", context, " (the context) to ", most);
  check_host_cache(options, text);
  check(options.kv_event_batches >= 0, "kv_event_batches", options.kv_event_batches,
        " is negative");
  warn_of_memory(options.cache_tokens *
                     (text.device->host_accessible() ? bytes.all() : bytes.host) +
                 (text.device->host_accessible() ? states : 0) + options.host_cache_bytes);
  return options;
}

void tell_cache_bytes(const Stepper& stepper, TextModel& text) {
  ModelInfo& info = text.info;
  info.kv_cache_bytes = stepper.cache_bytes();
  if (!text.group) return;
  const KvBlockPool& pool = stepper.pool();
  const int64_t tokens = pool.total() * pool.block_size();
  const auto others = text.group->others();
  info.rank_bytes = {info.weight_bytes - others.weight_bytes + info.kv_cache_bytes};
  for (const group::LinkLoaded& rank : text.group->ranks()) {
    info.rank_bytes.push_back(rank.weight_bytes + tokens * rank.cache_token_bytes);
  }
  info.kv_cache_bytes += tokens * others.cache_token_bytes;
}

int64_t host_cache_bytes(const LlmOptions& options, const TextModel& text) {
  return host_blocks(options, text) * block_bytes_of_ranks(options, text);
}

std::shared_ptr<KvEventLog> make_event_log(const LlmOptions& options) {
  if (options.kv_event_batches == 0) return nullptr;
  return std::make_shared<KvEventLog>(static_cast<size_t>(options.kv_event_batches));
}

void note_blocks(const KvBlockPool& pool, EngineStats& stats) {
  stats.kv_blocks_total = pool.total();
  stats.kv_blocks_used = pool.used();
  stats.kv_blocks_kept = pool.kept();
  const HostCacheCounts& counts = pool.host_counts();
  stats.host_blocks_total = pool.host_slots();
  stats.host_blocks_kept = pool.host_kept();
  stats.host_blocks_stored = counts.stored;
  stats.host_blocks_loaded = counts.loaded;
  stats.host_blocks_dropped = counts.dropped;
  stats.host_hits = counts.loaded * static_cast<uint64_t>(pool.block_size());
}

void note_group(const TextModel& text, EngineStats& stats) {
  if (!text.group) return;
  const group::GroupFigures figures = text.group->leader().figures();
  stats.group_commands = figures.commands;
  stats.group_bytes = figures.bytes;
  stats.group_wait_seconds = figures.waited_seconds;
}

StepperOptions stepping(const LlmOptions& options, const TextModel& text) {
  return {.cache_tokens = options.cache_tokens,
          .block_size = options.block_size,
          .kv_dtype = options.kv_dtype,
          .kv_offload = options.kv_offload,
          .host_blocks = host_blocks(options, text),
          .sequences = options.max_running,
          .listener = text.group.get()};
}

SchedulerOptions scheduling(const LlmOptions& options, const TextModel& text) {
  const bool host = computes_on_host(text);
  const int64_t share = host ? kBesideShare : kBesideShareOfGpu;
  const int64_t row_bytes = text.info.vocab_size * static_cast<int64_t>(sizeof(float));
  return {.max_running = options.max_running,
          .step_tokens = options.step_tokens,
          .beside_tokens = std::max<int64_t>(options.step_tokens / share, 1),
          .scored_tokens = std::max<int64_t>(kScoredBytes / row_bytes, 1),
          .row_tile = host ? 1 : kRowTileOfGpu,
          .step_seconds = host ? options.step_seconds : 0};  // a GPU's steps end sooner
}

}  // namespace rbee::engine
