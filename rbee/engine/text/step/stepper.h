#pragma once
// Runs a language model over sequences: builds the ragged batch of a step, evaluates it, and tracks
// what the KV cache holds. Used by the engine, the benchmark and the perplexity tool.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rbee/engine/text/step/host_blocks.h"
#include "rbee/engine/text/step/next_step.h"
#include "rbee/engine/text/step/sequence.h"
#include "rbee/engine/text/step/step_listener.h"
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
  std::optional<DType> kv_dtype;  // absent: the activations' type if it has 16 bits, else f16
  bool kv_offload = true;         // false: the device reads the cache in host memory
  int64_t host_blocks = 0;        // blocks of past texts that host memory keeps besides
  // Sequences that have blocks at a time, if the model has layers with states; others may be more.
  int64_t sequences = 1;
  // For a draft model: another Stepper's pool, which must outlive this; the cache gets the same
  // blocks. Null: a pool of its own, of the sizes above.
  KvBlockPool* pool = nullptr;
  // Hears of each step before it is evaluated; must outlive this. Null: this rank is alone, or no
  // leader.
  StepListener* listener = nullptr;
};

// Bytes for each token in the cache of such a Stepper, over all layers.
struct CacheTokenBytes {
  int64_t device = 0;
  int64_t host = 0;  // of layers there, and with kv_offload off of all

  int64_t all() const { return device + host; }
};
// Bytes for the states of each sequence, over all layers.
int64_t cache_state_bytes(const models::LanguageModel& model);
CacheTokenBytes cache_token_bytes(const models::LanguageModel& model, std::optional<DType> kv_dtype,
                                  bool kv_offload = true);

// What is queued after a step before the host knows its results.
enum class AsyncStep : uint8_t { nothing, next_step };

class Stepper final : private BlockCopier {
 public:
  Stepper(const models::LanguageModel& model, Device& device, const StepperOptions& options);
  ~Stepper() override;
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  struct Work {
    Sequence* sequence;
    int64_t count;  // tokens to evaluate, from sequence->cached on
  };
  // Evaluates the work in one batch and advances `cached` (draft_cached for a draft model).
  // logit_rows: the batch rows whose logits are wanted, in the order of the work's tokens. Returns
  // logits (rows, vocab) f32, on the host, valid until the next step. If the cache is full it
  // throws out_of_memory and changes nothing.
  std::span<float> step(std::span<const Work> work, std::span<const int32_t> logit_rows);

  // The same step, but copies only the rows' largest logits to the host. logit_rows must not be
  // empty. The device may still be at work when begin() returns; top_logits() waits for it. Results
  // are valid until the next step.
  //
  // AsyncStep::next_step: also queues the next step, which appends the found token to each
  // sequence, so that the device does not wait for the host. It does so only if the step is
  // captured, has one token per sequence, needs just the likeliest token without sums (or `wanted`
  // describes the draws), and every sequence has a block for the token. The caller checks the
  // context length. If the next call's work matches, it uses the queued step's rows; if not, it
  // evaluates the work as usual, and no step is queued for a while, for longer each time.
  void begin(std::span<const Work> work, std::span<const int32_t> logit_rows,
             const TopLogitsWanted& wanted, AsyncStep next = AsyncStep::nothing);
  TopLogitRows top_logits();
  // Whether a queued step is running that no call has used yet.
  bool has_async_step() const { return async_step_.has_value(); }
  TopLogitRows step(std::span<const Work> work, std::span<const int32_t> logit_rows,
                    const TopLogitsWanted& wanted) {
    begin(work, logit_rows, wanted);
    return top_logits();
  }
  // The same step, but does not wait for its end; logit_row() does.
  void run(std::span<const Work> work, std::span<const int32_t> logit_rows);
  // One whole row of the last step's logits, on the host; valid until the next call of any kind.
  std::span<float> logit_row(int64_t row);
  // Captures steps again, because the model's layers have changed.
  void forget_captured();
  // Does what another rank's Stepper does, which has the same cache. Throws invalid_argument if a
  // number in its list is outside of the model or the cache.
  void repeat(const StepCommand& command);
  void repeat(const RowsCommand& command);
  void repeat(const CopyCommand& command);
  void repeat(const AsyncStepCommand& command);
  void repeat(const AgainCommand& command);
  // Begins as many of the pool's waiting copies as the next step leaves time for. The copies that
  // the last call began are done then.
  void copy_some();

  KvBlockPool& pool() { return *pool_; }
  const KvBlockPool& pool() const { return *pool_; }
  // Whether the CPU computes the first layers of each step.
  bool has_host_layers() const { return model_.host_layers().any(); }
  // Whether the CPU computes experts in the middle of each step.
  bool has_cpu_moe() const { return cpu_moe_; }
  int64_t cache_bytes() const { return cache_.bytes(); }
  int64_t host_cache_bytes() const {
    return host_blocks_ ? host_blocks_->slots() * host_blocks_->block_bytes() : 0;
  }

 private:
  // All integers of a step in one list, so that one copy brings them to the device.
  struct Indices {
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t table_width = 0;  // blocks
    int64_t rows = 0;
    int64_t single_queries = 0;  // see PagedBatch
    int64_t lora_each = 0;       // adapters for each token
    bool key_ends = false;       // whether the list has them
    bool states = false;         // whether the list has slots of states
    bool captured = false;       // see make_captured_indices()
    std::vector<models::PictureRows> pictures = {};
    std::vector<int32_t> values;
  };
  // The parts of that list.
  struct IndexLists {
    std::vector<int32_t> ids, positions, slots, starts{0}, lengths;
    size_t widest = 1;  // most blocks of a sequence
    // For each token, as many adapters as the sequence with the most has; scales as their bits.
    std::vector<int32_t> lora_slots, lora_scales;
    size_t lora_each = 0;
    std::vector<int32_t> key_ends;  // for each token; empty without pictures
    std::vector<int32_t> states;    // for each sequence; empty without layers that have any
    std::vector<models::PictureRows> pictures;
  };
  // A step for a shape that recurs: a few new tokens for each sequence, equally many for all.
  struct CapturedStep {
    Tensor indices;
    Tensor hidden;  // of a model with layers on the host: what they gave
    Tensor logits;
    std::optional<NextStep> next;  // for one token of each sequence
    GraphCapture capture;
    int64_t last_use = 0;

    CapturedStep() = default;
    CapturedStep(CapturedStep&&) = default;
    CapturedStep& operator=(CapturedStep&&) = default;
    ~CapturedStep() { logits = {}; }  // before the capture that owns its memory
  };
  // A captured step that can queue the next one, with its inputs.
  struct GivenStep {
    CapturedStep* step;
    Indices indices;
    int32_t turn;  // see NextStep
  };
  // What a captured step is besides its integers.
  struct CapturedWork {
    int64_t next_token;  // captured_'s last key
    const TopLogitsWanted& wanted;
    int64_t rows;  // of `wanted`, the first ones
  };
  // How the step draws, see NextStep::draw_words(). Null: it shows no next step.
  using MakeDraws = std::function<std::vector<int32_t>(NextStep* next, bool has_capture)>;
  // The inputs of one row, in a step with one token for each sequence.
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
  // Rounds the table's width, the number of sequences and their tokens up to shapes that recur. The
  // added tokens do not change the cache, and their logits are not used. One row for each token;
  // wanted rows come first.
  Indices make_captured_indices(std::span<const Work> work,
                                std::span<const int32_t> logit_rows) const;
  static models::ForwardBatch make_batch(const Indices& indices, const Tensor& values);
  // Whether a captured step writes the next step's integers.
  static bool advances(const Indices& indices) {
    return indices.captured && indices.tokens == indices.sequences;
  }
  // Whether the device's tokens will most likely be the right ones.
  static bool drawn_on_device(const TopLogitsWanted& wanted) {
    return wanted.draws != nullptr || (wanted.count == 1 && wanted.scales.empty());
  }
  // Does to `indices`, except the ids, what next_step() does on the device.
  void advance(Indices& indices) const;
  // Reserves blocks that sequences need soon, if the pool has plenty and tables of this width have
  // room; true if it reserved any. Queued steps then do not need the host.
  bool reserve_ahead(std::span<const Work> work, int64_t table_width);
  GivenRow given_row(const Indices& indices, size_t row) const;
  bool take_async_step(const Indices& asked, const TopLogitsWanted& wanted, size_t rows);
  void discard_async_step();
  void start_async_step(std::span<const Work> work);
  bool can_capture(std::span<const Work> work, std::span<const int32_t> logit_rows) const;
  // Fills hidden_ with the rows that the layers on the host give for this work, if there are any.
  // Captured steps have other rows: see make_captured_indices().
  void run_host_layers(std::span<const Work> work, std::span<const int32_t> logit_rows,
                       bool captured);
  // The next functions set logits_ and, if top logits are wanted, top_logits_ or shown_.
  void evaluate(std::span<const Work> work, std::span<const int32_t> logit_rows,
                const TopLogitsWanted& wanted, AsyncStep next = AsyncStep::nothing);
  void run_once(const Indices& indices, const TopLogitsWanted& wanted);
  // As run_once(), after the listener has heard of it.
  void lead(const Indices& indices, const TopLogitsWanted& wanted);
  // As replay(), for a leader after the listener has heard of it.
  void lead_captured(const Indices& indices, const TopLogitsWanted& wanted, int64_t rows);
  static StepCommand as_command(const Indices& indices, const TopLogitsWanted& wanted,
                                int64_t rows);
  void check_integers(const StepCommand& command) const;
  // Runs what the other ranks have been told to do, too.
  void as_told(const std::function<void()>& action);
  // Waits for the device; the listener hears of it.
  void await(const std::function<void()>& wait);
  // A place on the device for hidden_, and its values there; undefined without layers on the host.
  Tensor upload_hidden();
  // Searches the first `rows` rows of logits_.
  void find_top_logits(const TopLogitsWanted& wanted, int64_t rows);
  // Picks the wanted rows: those of picked_, or the first ones.
  TopLogitRows pick(const TopLogitRows& found, size_t stored);
  void run_captured(std::span<const Work> work, std::span<const int32_t> logit_rows,
                    const TopLogitsWanted& wanted, AsyncStep next);
  int64_t next_token_of(const Indices& indices, const TopLogitsWanted& wanted) const;
  // Captures the step unless that was done before, and replays it.
  void replay(const Indices& indices, const CapturedWork& work, const MakeDraws& draws);
  // Its tensors, on the device.
  CapturedStep prepare(const Indices& indices, const CapturedWork& work);
  void give(CapturedStep& step, const Indices& indices, std::span<const int32_t> draws);
  void capture(CapturedStep& step, const Indices& indices);
  // Replays shown_ with the integers that it wrote.
  void replay_async_step();
  void replay_again(std::span<const int32_t> values, int32_t turn);
  void drop_captured();
  void make_room_for_captured(int64_t rows_to_come);
  // Copies `list` through host memory that the device reads; the last step's copy must have ended.
  template <typename T>
  void upload(std::span<const T> list, const Tensor& to, HostBuffer& through);
  // Rows of logits_, whole, on the host; the listener hears of it.
  std::span<float> rows_to_host(int64_t first, int64_t count);
  // Whole rows; a rank has its part of them.
  std::span<float> to_host(const Tensor& own);
  void copy(std::span<const BlockCopy> copies) override { copy_blocks(copies, false); }
  void copy_beside(std::span<const BlockCopy> copies) override { copy_blocks(copies, true); }
  // The listener hears of it.
  void copy_blocks(std::span<const BlockCopy> copies, bool beside);

  const models::LanguageModel& model_;
  Device& device_;
  StepListener* const listener_;
  const bool cpu_moe_;  // the model has experts on the host
  const bool states_;   // the model has layers with states
  std::optional<KvBlockPool> own_pool_;
  KvBlockPool* const pool_;
  int64_t Sequence::* const cached_;  // the member that counts what cache_ holds
  nn::KvCache cache_;
  std::optional<HostBlocks> host_blocks_;
  std::vector<float> hidden_;                        // (rows, dim), see run_host_layers()
  Tensor logits_;                                    // of the last step, the rank's tokens
  Tensor whole_rows_;                                // of a group, that to_host() gave last
  TopLogitTensors top_logits_;                       // of the last step, or
  std::optional<GivenStep> shown_;                   // the step that shows the results
  size_t top_logit_rows_ = 0, top_logit_count_ = 0;  // wanted: rows, logits of each
  bool top_logit_sums_ = false, drawn_on_device_ = false;
  bool under_way_ = false;               // the last step has not been waited for
  std::optional<GivenStep> async_step_;  // the queued next step
  int32_t hold_ = 0;                     // coming steps after which none is queued
  int32_t next_hold_ = 1;                // value of hold_ after the next useless step
  std::vector<size_t> picked_;           // wanted rows of the last step; empty: all
  struct {
    std::vector<float> values, sums, numbers;
    std::vector<int32_t> ids, drawn;
  } picked_top_logits_;             // the TopLogitRows of picked_, if they had to be copied
  std::optional<DeviceMark> done_;  // the last step, if it shows its results
  // Used if the host cannot read the device's memory (the last one always); indices by captured
  // steps.
  HostBuffer host_logits_, host_top_logits_, host_indices_, host_scales_, host_hidden_;
  // By number of sequences, tokens of each, width of the block table, adapters of a sequence, and
  // how the next step's tokens are found: 0 not, 1 the likeliest, 2 a draw. With several sequences
  // no step is captured for the likeliest alone: each capture takes memory, and the faster search
  // saves little of such a step's time.
  std::map<std::array<int64_t, 5>, CapturedStep> captured_;
  int64_t captured_uses_ = 0;
};

// The captured number of sequences that is used for `sequences`.
int64_t captured_sequences(int64_t sequences);
// The captured number of tokens of each that is used for `tokens`: one, plus a power of two of
// draft tokens.
int64_t captured_tokens(int64_t tokens);

}  // namespace rbee::engine
