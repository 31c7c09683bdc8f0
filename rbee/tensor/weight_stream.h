#pragma once
// Weights that stay in host memory and visit a device, each for one use.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee {

// Copies weights to a device in the order in which they were added, ahead of their use: threads of
// its own fill page-locked memory, and the copies run beside the device's kernels. A weight that is
// taken out of that order costs a wait. Whoever uses weights holds a Turn; other threads wait for
// it to end.
class WeightStream {
 public:
  // Weights that a turn may hold at a time; so many have room on the device.
  static constexpr size_t kSlots = 3;

  // `device` must outlive this.
  explicit WeightStream(Device& device);
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // A weight of this shape and type in parts, one after another, that lie in host memory and that
  // their tensors keep there. Gives its index: 0, 1, ... Call it before start(). Throws
  // invalid_argument if the parts do not add up to the shape's bytes.
  size_t add(std::vector<Tensor> parts, const Shape& shape, DType dtype);
  int64_t bytes() const;         // of all weights
  int64_t device_bytes() const;  // that start() takes on the device

  // Takes memory of the device for kSlots of the largest weight, and page-locked memory, and starts
  // the threads; without weights, nothing. Throws out_of_memory and device, and has then taken
  // nothing.
  void start();
  bool started() const;

  class Turn {
   public:
    explicit Turn(WeightStream& stream);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // The weight on the device, for work that this thread queues on the device's current stream
    // before give_back(). Throws what a copy threw. The stream must be started.
    Tensor take(size_t index);
    // No later work reads what the turn has taken.
    void give_back() noexcept;

   private:
    WeightStream& stream_;
    std::vector<size_t> slots_;
  };

 private:
  struct Weight;
  struct Copying;

  Device& device_;
  std::vector<Weight> weights_;
  std::unique_ptr<Copying> copying_;  // null: not started
};

}  // namespace rbee
