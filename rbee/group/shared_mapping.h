#pragma once
// Memory that processes share, and its mapping.

#include <cstddef>

namespace rbee::group {

// An open descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return number_; }
  int release();

 private:
  int number_ = -1;
};

class SharedMapping {
 public:
  // New memory of `bytes` zeros. Throws io.
  explicit SharedMapping(size_t bytes);
  // That of another process; the descriptor is the caller's. Throws io, and invalid_argument if it
  // has another size.
  SharedMapping(int descriptor, size_t bytes);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::byte* data() const { return data_; }
  int descriptor() const { return own_.get(); }  // of new memory

 private:
  void map(int descriptor, size_t bytes);

  Descriptor own_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace rbee::group
