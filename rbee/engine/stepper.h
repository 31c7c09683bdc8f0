#pragma once
// Runs a language model over sequences: builds the ragged batch of a step, evaluates it, and keeps
// the KV cache's bookkeeping. Used by the engine, the benchmark and the perplexity tool.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/engine/kv_blocks.h"
#include "rbee/models/language_model.h"
#include "rbee/nn/kv_cache.h"

namespace rbee::engine {

struct StepperOptions {
  int64_t cache_tokens = 0;  // capacity of the KV cache in tokens, over all sequences
  int64_t block_size = 32;
  DType kv_dtype = DType::f16;
};

// Tokens of one sequence and how far they are in the cache.
class Sequence {
 public:
  explicit Sequence(KvBlockPool& pool) : kv(pool) {}

  std::vector<int32_t> tokens;  // prompt, then generated
  int64_t cached = 0;           // leading tokens whose keys and values are in the cache
  KvTable kv;
};

class Stepper {
 public:
  Stepper(const models::LanguageModel& model, Device& device, const StepperOptions& options);

  struct Work {
    Sequence* sequence;
    int64_t count;  // tokens to evaluate, from sequence->cached on
  };
  // Evaluates the work in one batch and advances `cached`. logit_rows: rows of the batch, in order
  // of the work's tokens, whose logits are wanted. Returns logits (rows, vocab) f32, on the host,
  // valid until the next step. Throws out_of_memory, before any change, when the cache is full.
  std::span<float> step(std::span<const Work> work, std::span<const int32_t> logit_rows);

  KvBlockPool& pool() { return pool_; }
  const KvBlockPool& pool() const { return pool_; }
  int64_t cache_bytes() const { return cache_.bytes(); }

 private:
  models::ForwardBatch make_batch(std::span<const Work> work,
                                  std::span<const int32_t> logit_rows) const;

  const models::LanguageModel& model_;
  Device& device_;
  KvBlockPool pool_;
  nn::KvCache cache_;
  Tensor logits_;
  std::vector<float> host_logits_;  // used where the host cannot read the device
};

}  // namespace rbee::engine
