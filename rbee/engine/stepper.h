#pragma once
// Runs a language model over sequences: builds the ragged batch of a step, evaluates it, and keeps
// the KV cache's bookkeeping. Used by the engine, the benchmark and the perplexity tool.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rbee/engine/kv_blocks.h"
#include "rbee/engine/leader_rows.h"
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

  // The same step, of which only the rows' largest logits travel to the host; valid until the next
  // step. logit_rows is not empty.
  LeaderRows step(std::span<const Work> work, std::span<const int32_t> logit_rows,
                  const LeadersWanted& wanted);
  // The same step without waiting for its end; logit_row() does.
  void run(std::span<const Work> work, std::span<const int32_t> logit_rows);
  // A whole row of the last step's logits, on the host; valid until the next call of any kind.
  std::span<float> logit_row(int64_t row);

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
    LeaderTensors leaders;
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
  // These leave logits_ and, where leaders are wanted, leaders_.
  void evaluate(std::span<const Work> work, std::span<const int32_t> logit_rows,
                const LeadersWanted& wanted);
  void run_once(const Indices& indices, const LeadersWanted& wanted);
  void run_recorded(const Indices& indices, const LeadersWanted& wanted);
  RecordedStep& recorded_step(const Indices& indices, const LeadersWanted& wanted);
  // `list` through host memory that the device reads: the copy of the step before must have ended.
  template <typename T>
  void upload(std::span<const T> list, const Tensor& to, HostBuffer& through);
  std::span<float> to_host(const Tensor& logits);

  const models::LanguageModel& model_;
  Device& device_;
  KvBlockPool pool_;
  nn::KvCache cache_;
  Tensor logits_;           // of the last step
  LeaderTensors leaders_;   // of the last step
  bool under_way_ = false;  // nobody has waited for the last step
  // Used where the host cannot read the device; the last two by recorded steps.
  HostBuffer host_logits_, host_leaders_, host_indices_, host_scales_;
  // By number of sequences, width of the block table, leaders, and whether there are sums.
  std::map<std::array<int64_t, 4>, RecordedStep> recorded_;
  int64_t recorded_uses_ = 0;
};

}  // namespace rbee::engine
