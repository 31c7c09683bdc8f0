#pragma once
// Memory that a thread keeps between operations, so that a decode step allocates nothing.

#include <cstddef>
#include <new>

namespace rbee::cpu {

class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least `bytes`, aligned to 64. If it grows, its contents are lost.
  std::byte* reserve(size_t bytes) {
    if (bytes > bytes_) {
      release();
      data_ = static_cast<std::byte*>(::operator new(bytes, kAlignment));
      bytes_ = bytes;
    }
    return data_;
  }

  // Frees the memory if it has more than `most` bytes.
  void limit(size_t most) {
    if (bytes_ > most) release();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};

  void release() {
    ::operator delete(data_, kAlignment);
    data_ = nullptr;
    bytes_ = 0;
  }

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Hands out pieces of one block of memory; with a null base it only counts the bytes needed.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <typename T>
  T* take(int64_t count) {
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

}  // namespace rbee::cpu
