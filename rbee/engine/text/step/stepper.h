#pragma once
// Runs a language model over sequences: builds the ragged batch of a step, evaluates it, and keeps
// the KV cache's bookkeeping. Used by the engine, the benchmark and the perplexity tool.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rbee/engine/text/step/next_step.h"
#include "rbee/engine/text/step/sequence.h"
#include "rbee/engine/text/step/top_logit_rows.h"
#include "rbee/models/language_model.h"
#include "rbee/nn/kv_cache.h"
#include "rbee/tensor/device_mark.h"
#include "rbee/tensor/graph_capture.h"
#include "rbee/tensor/host_buffer.h"

namespace rbee::engine {

struct StepperOptions {
  int64_t cache_tokens = 0;  // capacity of the KV cache in tokens, over all sequences
  int64_t block_size = 32;
  std::optional<DType> kv_dtype;  // absent: the activations' where they have 16 bits, else f16
  // Of a draft model: the blocks are those of another Stepper's pool, which outlives this one; the
  // cache has as many. Null: a pool of its own, of the sizes above.
  KvBlockPool* pool = nullptr;
};

// Bytes that the cache of a Stepper with this kv_dtype takes for a token, in all layers.
int64_t cache_token_bytes(const models::LanguageModel& model, std::optional<DType> kv_dtype);

// What is queued behind a step before anybody knows what it gives.
enum class AsyncStep : uint8_t { nothing, next_step };

class Stepper {
 public:
  Stepper(const models::LanguageModel& model, Device& device, const StepperOptions& options);
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  struct Work {
    Sequence* sequence;
    int64_t count;  // tokens to evaluate, from sequence->cached on
  };
  // Evaluates the work in one batch and advances `cached` (that of a draft model: draft_cached).
  // logit_rows: rows of the batch, in order of the work's tokens, whose logits are wanted. Returns
  // logits (rows, vocab) f32, on the host, valid until the next step. Throws out_of_memory, before
  // any change, when the cache is full.
  std::span<float> step(std::span<const Work> work, std::span<const int32_t> logit_rows);

  // The same step, of which only the rows' largest logits travel to the host. logit_rows is not
  // empty. A device of its own may still be at work when begin() returns; top_logits() waits for
  // it. Valid until the next step.
  //
  // AsyncStep::next_step: the step that gives each sequence the token behind it follows at once, so
  // that the device does not wait for the host between the two. It does where the step is captured,
  // has one token of each sequence and wants the likeliest alone, without sums, or tells how tokens
  // will be drawn, and where all have a block for it; the caller knows that the model's context has
  // a place, too. The next step finds its rows there, if all of them are such, and is evaluated as
  // ever if they are not; then no step follows for a while, for longer each time.
  void begin(std::span<const Work> work, std::span<const int32_t> logit_rows,
             const TopLogitsWanted& wanted, AsyncStep ahead = AsyncStep::nothing);
  TopLogitRows top_logits();
  // Whether such a step is under way that nobody has asked for yet.
  bool is_ahead() const { return ahead_.has_value(); }
  TopLogitRows step(std::span<const Work> work, std::span<const int32_t> logit_rows,
                    const TopLogitsWanted& wanted) {
    begin(work, logit_rows, wanted);
    return top_logits();
  }
  // The same step without waiting for its end; logit_row() does.
  void run(std::span<const Work> work, std::span<const int32_t> logit_rows);
  // A whole row of the last step's logits, on the host; valid until the next call of any kind.
  std::span<float> logit_row(int64_t row);
  // Steps are captured anew: the model's layers have changed.
  void forget_captured();

  KvBlockPool& pool() { return *pool_; }
  const KvBlockPool& pool() const { return *pool_; }
  int64_t cache_bytes() const { return cache_.bytes(); }

 private:
  // The integers of a step in one list, so that they travel to the device in one copy.
  struct Indices {
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t table_width = 0;  // blocks
    int64_t rows = 0;
    int64_t single_queries = 0;  // see PagedBatch
    int64_t lora_each = 0;       // adapters of a token
    bool key_ends = false;       // the list has them
    bool captured = false;       // see make_captured_indices()
    std::vector<models::PictureRows> pictures = {};
    std::vector<int32_t> values;
  };
  // The parts of such a list.
  struct IndexLists {
    std::vector<int32_t> ids, positions, slots, starts{0}, lengths;
    size_t widest = 1;  // blocks of a sequence
    // Of each token as many adapters as the sequence with the most has; scales as their bits.
    std::vector<int32_t> lora_slots, lora_scales;
    size_t lora_each = 0;
    std::vector<int32_t> key_ends;  // of each token; empty without pictures
    std::vector<models::PictureRows> pictures;
  };
  // A step whose shape comes again and again: few new tokens for each sequence, as many for all.
  struct CapturedStep {
    Tensor indices;
    Tensor logits;
    std::optional<NextStep> next;  // of one token of each sequence
    GraphCapture capture;
    int64_t last_use = 0;

    CapturedStep() = default;
    CapturedStep(CapturedStep&&) = default;
    CapturedStep& operator=(CapturedStep&&) = default;
    ~CapturedStep() { logits = {}; }  // before the capture that owns its memory
  };
  // A captured step that advances, with what it was given.
  struct GivenStep {
    CapturedStep* step;
    Indices indices;
    int32_t turn;  // see NextStep
  };
  // What a row of a step of one token each was given.
  struct GivenRow {
    int32_t id, position, slot;
    std::span<const int32_t> blocks, lora_slots, lora_scales;
  };

  static void list_adapters(std::span<const Work> work, IndexLists& lists);
  static void list_pictures(const Work& work, IndexLists& out);
  IndexLists list_indices(std::span<const Work> work) const;
  static Indices join(const IndexLists& lists, std::span<const Work> work,
                      std::span<const int32_t> logit_rows);
  Indices make_indices(std::span<const Work> work, std::span<const int32_t> logit_rows) const;
  // Shapes that come again: the table's width, the number of sequences and that of their tokens
  // are rounded up by tokens that nobody asks for and that leave the cache as it is. A row for each
  // token; those asked for come first.
  Indices make_captured_indices(std::span<const Work> work,
                                std::span<const int32_t> logit_rows) const;
  static models::ForwardBatch make_batch(const Indices& indices, const Tensor& values);
  // Whether a captured step leaves its integers as those of the next one.
  static bool advances(const Indices& indices) {
    return indices.captured && indices.tokens == indices.sequences;
  }
  // Whether these will most likely be the right ones.
  static bool drawn_on_device(const TopLogitsWanted& wanted) {
    return wanted.draws != nullptr || (wanted.count == 1 && wanted.scales.empty());
  }
  // Makes them so, but for the ids: next_step() on the host.
  void advance(Indices& indices) const;
  // Blocks that sequences come to soon, where the pool has many and tables of this width have a
  // place; whether there were any. Steps ahead need no word from the host then.
  bool reserve_ahead(std::span<const Work> work, int64_t table_width);
  GivenRow given_row(const Indices& indices, size_t row) const;
  bool take_ahead(const Indices& asked, const TopLogitsWanted& wanted, size_t rows);
  void note_in_vain();
  void start_async_step(std::span<const Work> work);
  bool can_capture(std::span<const Work> work, std::span<const int32_t> logit_rows) const;
  // These leave logits_ and, where top logits are wanted, top_logits_ or shown_.
  void evaluate(std::span<const Work> work, std::span<const int32_t> logit_rows,
                const TopLogitsWanted& wanted, AsyncStep ahead = AsyncStep::nothing);
  void run_once(const Indices& indices, const TopLogitsWanted& wanted);
  // In the first `rows` rows of logits_.
  void find_top_logits(const TopLogitsWanted& wanted, int64_t rows);
  // Of the rows in picked_, or in front, as many as were asked for.
  TopLogitRows pick(const TopLogitRows& found, size_t stored);
  void run_captured(std::span<const Work> work, std::span<const int32_t> logit_rows,
                    const TopLogitsWanted& wanted, AsyncStep ahead);
  void give(CapturedStep& step, const Indices& indices, const TopLogitsWanted& wanted);
  CapturedStep& captured_step(const Indices& indices, const TopLogitsWanted& wanted);
  void make_room_for_captured(int64_t rows_to_come);
  // `list` through host memory that the device reads: the copy of the step before must have ended.
  template <typename T>
  void upload(std::span<const T> list, const Tensor& to, HostBuffer& through);
  std::span<float> to_host(const Tensor& logits);

  const models::LanguageModel& model_;
  Device& device_;
  std::optional<KvBlockPool> own_pool_;
  KvBlockPool* const pool_;
  int64_t Sequence::* const cached_;  // which member counts what cache_ holds
  nn::KvCache cache_;
  Tensor logits_;                                    // of the last step
  TopLogitTensors top_logits_;                       // of the last step, or
  std::optional<GivenStep> shown_;                   // where it shows what it found
  size_t top_logit_rows_ = 0, top_logit_count_ = 0;  // asked of it: rows, logits of each
  bool top_logit_sums_ = false, drawn_on_device_ = false;
  bool under_way_ = false;          // nobody has waited for the last step
  std::optional<GivenStep> ahead_;  // the step behind it that is under way
  int32_t hold_ = 0;                // steps to come that go ahead of nothing
  int32_t next_hold_ = 1;           // after the next step that was in vain
  std::vector<size_t> picked_;      // rows of the last step that were asked for; empty: all
  struct {
    std::vector<float> values, sums, numbers;
    std::vector<int32_t> ids, drawn;
  } picked_top_logits_;             // their TopLogitRows, where they are not as they lie
  std::optional<DeviceMark> done_;  // the last step, where it shows what it found
  // Used where the host cannot read the device, the last everywhere; indices by captured steps.
  HostBuffer host_logits_, host_top_logits_, host_indices_, host_scales_;
  // By number of sequences, tokens of each, width of the block table, adapters of a sequence, and
  // how they advance: 0 not, 1 by the likeliest token, 2 by a draw. Of several sequences none is
  // captured for the likeliest alone: each takes memory, and what a search for it saves is little
  // beside their step.
  std::map<std::array<int64_t, 5>, CapturedStep> captured_;
  int64_t captured_uses_ = 0;
};

// The number of sequences that a captured step of `sequences` is made for.
int64_t captured_sequences(int64_t sequences);
// The number of tokens of each that one with `tokens` is made for: one, and a power of two draft
// tokens.
int64_t captured_tokens(int64_t tokens);

}  // namespace rbee::engine
