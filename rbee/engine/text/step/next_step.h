#pragma once
// A captured decode step that writes the next step's inputs on the device, so that the device can
// start it before the host has read this step's tokens.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rbee/engine/text/step/top_logit_rows.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/decode.h"
#include "rbee/tensor/host_buffer.h"

namespace rbee::engine {

// Top logits of a row if tokens are drawn; a draw rarely needs more.
inline constexpr int64_t kDrawnTopLogits = kDrawFront + kDrawBans;
// How many draws the host describes in advance: that many steps can run without it.
inline constexpr int32_t kDeviceDraws = 64;

// How such a step chooses its tokens. Finding only the likeliest is faster.
enum class NextToken : uint8_t { likeliest, drawn };

// The inputs and results of such a step, on the device and where the host reads them. Two
// successive steps use different places for results, so the host can read one while the other runs.
class NextStep {
 public:
  // For `rows` sequences with one token each. integers: number of the step's inputs; the first
  // `rows` are the tokens. vocab: see TopLogitsWanted. Throws out_of_memory.
  NextStep(int64_t rows, int64_t integers, int64_t vocab, NextToken token, Device& device);

  const Tensor& integers() const { return integers_; }
  bool draws() const { return draws_.stages.defined(); }
  // Top logits of each row, with sums if it draws.
  int64_t top_logits() const { return top_logits_.values.dim(1); }

  // How to draw each row, as words for give() (the likeliest token if that is not foreseen); none
  // if it does not draw.
  std::vector<int32_t> draw_words(const TopLogitsWanted& wanted);
  // How many words those are.
  int64_t draw_word_count() const;
  // Sends the device the integers, the turn (0 and up; it selects the place for results), and, if
  // there are any, how to draw. The device must have finished reading `through`.
  void give(std::span<const int32_t> integers, int32_t turn, std::span<const int32_t> draws,
            HostBuffer& through);
  // Queues the work after the logits (rows, n) f32, of the rank's tokens of the vocabulary. batch:
  // tensors of integers().
  void queue(const Tensor& logits, const nn::SplitVocabulary& vocabulary, const Tensor& positions,
             const PagedBatch& batch, int64_t block_size) const;

  // The results of the step of this turn, once the device has finished it; valid until that of turn
  // + 2.
  TopLogitRows found(int32_t turn);
  // The tokens that the next step starts from.
  std::span<const int32_t> tokens(int32_t turn) const;

 private:
  std::span<const int32_t> shown(int32_t turn) const;
  void put_draws(const TopLogitsWanted& wanted, std::span<int32_t> words);

  int64_t rows_, vocab_;
  TopK top_logits_;
  Tensor integers_, turn_, scales_;
  Draws draws_;
  Tensor given_;  // integers_, turn_, scales_ and draws_
  Tensor found_;  // all results, up to the tokens
  std::shared_ptr<HostBuffer> host_;
  Tensor shown_;                 // (2, numel of found_) in host_
  std::vector<float> numbers_;   // random numbers that the device has, for each row
  std::vector<float> drawn_by_;  // see TopLogitRows::numbers
};

}  // namespace rbee::engine
