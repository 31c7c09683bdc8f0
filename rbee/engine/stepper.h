#pragma once
// Runs a language model over sequences: builds the ragged batch of a step, evaluates it, and keeps
// the KV cache's bookkeeping. Used by the engine, the benchmark and the perplexity tool.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rbee/engine/kv_blocks.h"
#include "rbee/models/language_model.h"
#include "rbee/nn/kv_cache.h"
#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/recording.h"

namespace rbee::engine {

struct StepperOptions {
  int64_t cache_tokens = 0;  // capacity of the KV cache in tokens, over all sequences
  int64_t block_size = 32;
  std::optional<DType> kv_dtype;  // absent: the activations' where they have 16 bits, else f16
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
  // The integers of a step in one list, so that they travel to the device in one copy.
  struct Indices {
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t table_width = 0;  // blocks
    int64_t rows = 0;
    std::vector<int32_t> values;
  };
  // A step whose shape comes again and again: one new token for each sequence.
  struct RecordedStep {
    Tensor indices;
    Tensor logits;
    Recording recording;
    int64_t last_use = 0;

    RecordedStep() = default;
    RecordedStep(RecordedStep&&) = default;
    RecordedStep& operator=(RecordedStep&&) = default;
    ~RecordedStep() { logits = {}; }  // before the recording that owns its memory
  };

  static Indices make_indices(std::span<const Work> work, std::span<const int32_t> logit_rows,
                              bool round_table);
  static models::ForwardBatch make_batch(const Indices& indices, const Tensor& values);
  bool can_record(std::span<const Work> work, std::span<const int32_t> logit_rows) const;
  Tensor run_recorded(std::span<const Work> work, std::span<const int32_t> logit_rows);
  RecordedStep& recorded_step(const Indices& indices);

  const models::LanguageModel& model_;
  Device& device_;
  KvBlockPool pool_;
  nn::KvCache cache_;
  Tensor logits_;
  HostBuffer host_logits_;   // used where the host cannot read the device
  HostBuffer host_indices_;  // of a recorded step
  // By number of sequences and width of the block table.
  std::map<std::pair<int64_t, int64_t>, RecordedStep> recorded_;
  int64_t recorded_uses_ = 0;
};

}  // namespace rbee::engine
