#pragma once
// The largest logits of a step's rows, found on the device: a few KiB travel to the host in place
// of whole rows.

#include <array>
#include <cstdint>
#include <span>

#include "rbee/nn/split_vocabulary.h"
#include "rbee/ops/decode.h"
#include "rbee/ops/top_k.h"
#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/tensor.h"

namespace rbee::engine {

// How a row's next tokens will be drawn; see DrawArgs.
struct DeviceDraws {
  std::array<DrawStage, kDrawStages> stages{};  // none: the logits as they are
  std::array<float, kDrawStages> amounts{};
  std::span<const int32_t> banned;  // at most kDrawBans
  std::span<float> numbers;  // to be filled with the random numbers of the next draws, in [0, 1)
};
class DrawForecast {
 public:
  virtual void describe(int64_t row, DeviceDraws& to) const = 0;

 protected:
  ~DrawForecast() = default;
};

struct TopLogitsWanted {
  int64_t count = 0;              // of each row, 1 to kMaxTopK; 0 = none
  int64_t vocab = 0;              // logits beyond this are padding; at least `count`
  std::span<const float> scales;  // (rows), see top_k: sums are wanted; empty: they are not
  // How the next tokens will most likely be drawn, so that the device can continue before the host
  // has drawn them; only with sums. Null: unknown.
  const DrawForecast* draws = nullptr;
};

// A count of at least `needed`, one of a few values so that few kernels are loaded. A count of 1
// has a faster search of its own.
int64_t lead_count(int64_t needed, int64_t vocab);

// On the host.
struct TopLogitRows {
  std::span<const float> values;  // (rows, count), largest first; of equal ones the lower id first
  std::span<const int32_t> ids;   // (rows, count)
  std::span<const float> sums;    // (rows) or empty
  // (rows) or empty: tokens that the device drew, and the random numbers that it used.
  std::span<const int32_t> drawn = {};
  std::span<const float> numbers = {};
};

// On the device, in one buffer, so that one copy brings it to the host.
class TopLogitTensors {
 public:
  TopLogitTensors() = default;
  // scales() have no values yet.
  TopLogitTensors(int64_t rows, const TopLogitsWanted& wanted, Device& device);

  // Queues the search in logits (rows, n) f32, of the rank's tokens of a vocabulary of n or more.
  void find(const Tensor& logits, const nn::SplitVocabulary& vocabulary) const;
  // (rows) f32, to be written before find(); undefined without sums.
  const Tensor& scales() const { return scales_; }
  // Queues a copy of the results to `through`; does nothing if the host can read the device.
  void fetch(HostBuffer& through) const;
  // The results, in `through` or here, once the device has finished fetch().
  TopLogitRows rows(const HostBuffer& through) const;

 private:
  size_t bytes() const;

  int64_t vocab_ = 0;
  TopK found_;
  Tensor scales_;
};

}  // namespace rbee::engine
