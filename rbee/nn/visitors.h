#pragma once
// Weights of layers on the host that come to the device for large steps.

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/weight_stream.h"

namespace rbee::nn {

// A step of many rows reads each weight once for all of them: the device then computes the product
// sooner than the host, the way there included. One for all layers of a model.
class Visitors {
 public:
  // Both devices must outlive this. activations: what the device computes in. min_batch: rows from
  // which on weights come; 1 or more.
  Visitors(Device& device, Device& host, DType activations, int64_t min_batch)
      : stream_(device),
        device_(device),
        host_(host),
        activations_(activations),
        min_batch_(min_batch) {}

  // As WeightStream::add().
  size_t add(std::vector<Tensor> parts, const Shape& shape, DType dtype);
  // Of a mixture's stack, of whose experts a token takes `chosen`.
  size_t add_experts(std::vector<Tensor> parts, const Shape& shape, DType dtype, int64_t chosen);
  // Makes room for them, unless the device or the host's memory has none for the files' pages,
  // which it logs. Throws device.
  void start();

  // Whether the weights come for a product of so many rows.
  bool come_for(int64_t rows) const { return stream_.started() && rows >= min_batch_; }
  // The same for experts: each should have min_batch / 4 rows on average. By reckoning a CPU
  // computes about as many in the time that a weight's way takes.
  bool come_for(int64_t rows, int64_t chosen, int64_t experts) const {
    return come_for(rows) && rows * chosen >= experts * min_batch_ / 4;
  }
  // Bytes that come for a step of so many tokens.
  int64_t bytes_for(int64_t tokens) const;

  WeightStream& stream() { return stream_; }
  Device& device() const { return device_; }
  DType activations() const { return activations_; }

  // Gets x on the device, in its activations; its results must be in them too.
  using Work = std::function<std::vector<Tensor>(WeightStream::Turn& turn, const Tensor& x)>;
  // What `work` makes of x, as f32 on the host. x: f32 there. Waits for the device.
  std::vector<Tensor> run(const Tensor& x, const Work& work);

 private:
  Tensor bring(const Tensor& x);
  std::vector<Tensor> fetch(const std::vector<Tensor>& results);

  WeightStream stream_;
  Device& device_;
  Device& host_;
  DType activations_;
  int64_t min_batch_;
  int64_t expert_bytes_ = 0, chosen_ = 1, experts_ = 1;
  HostBuffer there_, back_;  // guarded by the stream's turn
};

// A layer's matrix among them.
struct VisitingMatrix {
  std::shared_ptr<Visitors> visitors;
  size_t index;
  Tensor bias;  // on the device; undefined: none

  // The product of rows that are there.
  Tensor product(WeightStream::Turn& turn, const Tensor& x) const;
};

}  // namespace rbee::nn
