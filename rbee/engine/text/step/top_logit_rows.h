#pragma once
// The largest logits of a step's rows, found on the device: what travels to the host is a few KiB
// in place of every row.

#include <array>
#include <cstdint>
#include <span>

#include "rbee/ops/decode.h"
#include "rbee/ops/top_k.h"
#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/tensor.h"

namespace rbee::engine {

// How a row's next tokens will be drawn, see DrawArgs.
struct DeviceDraws {
  std::array<DrawStage, kDrawStages> stages{};  // none: as they are
  std::array<float, kDrawStages> amounts{};
  std::span<const int32_t> banned;  // kDrawBans at most
  std::span<float> numbers;         // to be filled: of the next draws, in [0, 1)
};
class DrawForecast {
 public:
  virtual void tell(int64_t row, DeviceDraws& to) const = 0;

 protected:
  ~DrawForecast() = default;
};

struct TopLogitsWanted {
  int64_t count = 0;              // of each row, 1 to kMaxTopK; 0 = none
  int64_t vocab = 0;              // logits beyond are padding and left out; at least `count`
  std::span<const float> scales;  // (rows), see top_k: sums are wanted; empty: they are not
  // How the rows' next tokens will be drawn, most likely, so that the device can go on before they
  // are; only with sums. Null: nobody knows.
  const DrawForecast* draws = nullptr;
};

// A count that is at least `needed`: of few, so that kernels are loaded soon. The likeliest alone
// is found by a search of its own, which is shorter.
int64_t lead_count(int64_t needed, int64_t vocab);

// On the host.
struct TopLogitRows {
  std::span<const float> values;  // (rows, count), largest first; of equal ones the lower id first
  std::span<const int32_t> ids;   // (rows, count)
  std::span<const float> sums;    // (rows) or empty
  // (rows) or empty: tokens that the device drew, and the numbers that it drew them by.
  std::span<const int32_t> drawn = {};
  std::span<const float> numbers = {};
};

// On the device, all in one buffer, so that one copy brings them to the host.
class TopLogitTensors {
 public:
  TopLogitTensors() = default;
  // scales() have no values yet.
  TopLogitTensors(int64_t rows, const TopLogitsWanted& wanted, Device& device);

  // Queues the search in logits (rows, at least vocab) f32.
  void find(const Tensor& logits) const;
  // (rows) f32, written before find(); undefined where there are no sums.
  const Tensor& scales() const { return scales_; }
  // Queues what was found on its way to `through`; nothing where the host can read the device.
  void fetch(HostBuffer& through) const;
  // What was found, once the device has done what fetch() queued: in `through`, or here.
  TopLogitRows rows(const HostBuffer& through) const;

 private:
  size_t bytes() const;

  int64_t vocab_ = 0;
  TopK found_;
  Tensor scales_;
};

}  // namespace rbee::engine
