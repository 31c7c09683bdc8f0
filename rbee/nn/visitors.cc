#include "rbee/nn/visitors.h"

#include <utility>

#include "rbee/core/log.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/linear.h"

namespace rbee::nn {
namespace {

size_t bytes_of(const Tensor& x) {
  return static_cast<size_t>(x.bytes());
}

// A tensor of the host in page-locked memory, which lives as long as the buffer.
Tensor over(std::byte* data, const Shape& shape, DType dtype, size_t bytes, Device& host) {
  return from_memory({data, bytes}, shape, dtype, host, nullptr);
}

}  // namespace

size_t Visitors::add(std::vector<Tensor> parts, const Shape& shape, DType dtype) {
  return stream_.add(std::move(parts), shape, dtype);
}

size_t Visitors::add_experts(std::vector<Tensor> parts, const Shape& shape, DType dtype,
                             int64_t chosen) {
  const int64_t before = stream_.bytes();
  const size_t index = stream_.add(std::move(parts), shape, dtype);
  expert_bytes_ += stream_.bytes() - before;
  chosen_ = chosen;
  experts_ = shape[0];
  return index;
}

// Pages that do not stay in memory would come from the disk for every prompt.
void Visitors::start() {
  if (stream_.started() || stream_.bytes() == 0) return;
  const auto stay = [&](const char* why) {
    log(LogLevel::info, cat("the CPU computes its layers of large steps too: ", why),
        {{"bytes", cat(stream_.bytes())},
         {"free_bytes", cat(host_.memory().free)},
         {"device_bytes", cat(stream_.device_bytes())}});
  };
  if (stream_.bytes() > host_.memory().free) {
    return stay("memory has no room for the file's pages");
  }
  try {
    stream_.start();
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    stay("the device has no room for their weights");
  }
}

int64_t Visitors::bytes_for(int64_t tokens) const {
  if (!come_for(tokens)) return 0;
  return stream_.bytes() - (come_for(tokens, chosen_, experts_) ? 0 : expert_bytes_);
}

Tensor Visitors::bring(const Tensor& x) {
  const Tensor narrow = cast(contiguous(x), activations_);
  there_.reserve(device_, bytes_of(narrow));
  Tensor locked =
      over(there_.as<std::byte>(), narrow.shape(), activations_, bytes_of(narrow), host_);
  copy_(locked, narrow);
  Tensor out = empty(x.shape(), activations_, device_);
  device_.copy(out.view().data, locked.view().data, bytes_of(narrow), CopyKind::host_to_device,
               out.stream());
  return out;
}

std::vector<Tensor> Visitors::fetch(const std::vector<Tensor>& results) {
  std::vector<Tensor> locked, out;
  std::vector<Tensor> dense;
  size_t bytes = 0;
  for (const Tensor& result : results) {
    dense.push_back(contiguous(result));
    bytes += bytes_of(dense.back());
  }
  back_.reserve(device_, bytes);
  auto* at = back_.as<std::byte>();
  for (const Tensor& x : dense) {
    device_.copy(at, x.view().data, bytes_of(x), CopyKind::device_to_host, x.stream());
    locked.push_back(over(at, x.shape(), x.dtype(), bytes_of(x), host_));
    at += bytes_of(x);
  }
  device_.synchronize(dense.front().stream());
  for (const Tensor& x : locked) {
    Tensor wide = cast(x, DType::f32);
    if (x.dtype() == DType::f32) {  // cast() gave x itself
      wide = empty(x.shape(), DType::f32, host_);
      copy_(wide, x);
    }
    out.push_back(std::move(wide));
  }
  return out;
}

std::vector<Tensor> Visitors::run(const Tensor& x, const Work& work) {
  WeightStream::Turn turn(stream_);
  const std::vector<Tensor> results = work(turn, bring(x));
  turn.give_back();
  return fetch(results);
}

Tensor VisitingMatrix::product(WeightStream::Turn& turn, const Tensor& x) const {
  return linear(x, turn.take(index), bias);
}

}  // namespace rbee::nn
