#pragma once
// Host memory for blocks of a KV cache, and the copies between both.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "rbee/engine/text/step/kv_blocks.h"
#include "rbee/nn/kv_cache.h"
#include "rbee/tensor/host_buffer.h"

namespace rbee::engine {

class HostBlocks {
 public:
  // slots: blocks that it holds, at least 1. Cache and device must outlive this. Throws
  // out_of_memory naming the bytes.
  HostBlocks(nn::KvCache& cache, Device& device, int64_t slots);
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  // As BlockCopier. Blocks and slots must be there.
  void copy(std::span<const BlockCopy> copies);
  // The copies have a stream of their own on the device. They come after the steps so far, and
  // steps after the next call come after them.
  void copy_beside(std::span<const BlockCopy> copies);

  int64_t slots() const { return slots_; }
  int64_t block_bytes() const { return static_cast<int64_t>(block_bytes_); }

 private:
  // A tensor of the cache, whose first axis is the blocks.
  struct Part {
    Tensor tensor;
    size_t bytes;   // of a block
    size_t offset;  // in a slot
  };

  void add(const Tensor& tensor, int64_t blocks);
  void allocate();
  std::byte* slot(int32_t index) const;
  void copy(const BlockCopy& copy, Stream& stream) const;

  Device& device_;
  const int64_t slots_;
  std::vector<Part> parts_;
  size_t block_bytes_ = 0;
  int64_t slots_each_ = 1;  // slots in a piece of memory
  std::deque<HostBuffer> memory_;
  Stream beside_;
  void* event_ = nullptr;  // the end of steps, then of the copies beside them
  bool under_way_ = false;
};

}  // namespace rbee::engine
