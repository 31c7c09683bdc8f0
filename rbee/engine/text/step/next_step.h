#pragma once
// A step that leaves its integers as those of the step behind it, so that the device goes on while
// the host finds out what it found.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rbee/engine/text/step/top_logit_rows.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/decode.h"
#include "rbee/tensor/host_buffer.h"

namespace rbee::engine {

// Top logits of a row where tokens are drawn: more are rarely looked at.
inline constexpr int64_t kDrawnTopLogits = kDrawFront + kDrawBans;
// Draws that are foreseen: steps in a row without a word from the host.
inline constexpr int32_t kDeviceDraws = 64;

// How such a step chooses its tokens. The likeliest alone is found sooner.
enum class NextToken : uint8_t { likeliest, drawn };

// The integers of such a step, on the device, what its rows lead to, and where the host finds it.
// Two steps in a row show their findings in different places, so that one can be read beside the
// other.
class NextStep {
 public:
  // Of `rows` sequences with a token each. integers: how many the step has, of which the first
  // `rows` are the tokens. vocab: see TopLogitsWanted. Throws out_of_memory.
  NextStep(int64_t rows, int64_t integers, int64_t vocab, NextToken token, Device& device);

  const Tensor& integers() const { return integers_; }
  bool draws() const { return draws_.stages.defined(); }
  // Top logits of each row, with sums where it draws.
  int64_t top_logits() const { return top_logits_.values.dim(1); }

  // What the device reads: the integers, the turn (0 and up, it says where findings are shown), and
  // with `wanted` how its rows are drawn: where nobody knows the likeliest token is taken.
  // `through` must not be read by the device any more.
  void give(std::span<const int32_t> integers, int32_t turn, const TopLogitsWanted* wanted,
            HostBuffer& through);
  // Queues what comes behind the logits (rows, at least vocab) f32. batch: tensors of integers().
  void queue(const Tensor& logits, const Tensor& positions, const PagedBatch& batch,
             int64_t block_size) const;

  // What the step of this turn found, once the device has done it; valid until that of turn + 2.
  TopLogitRows found(int32_t turn);
  // The tokens of the step behind it.
  std::span<const int32_t> tokens(int32_t turn) const;

 private:
  std::span<const int32_t> shown(int32_t turn) const;
  void put_draws(const TopLogitsWanted& wanted, std::span<int32_t> words);

  int64_t rows_, vocab_;
  TopK top_logits_;
  Tensor integers_, turn_, scales_;
  Draws draws_;
  Tensor given_;  // integers_, turn_ and what follows
  Tensor found_;  // everything up to the tokens
  std::shared_ptr<HostBuffer> host_;
  Tensor shown_;                 // (2, numel of found_) in host_
  std::vector<float> numbers_;   // that the device has, of each row
  std::vector<float> drawn_by_;  // see TopLogitRows::numbers
};

}  // namespace rbee::engine
