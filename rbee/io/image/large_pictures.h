#pragma once
// Bounds the memory of pictures that are decoded, changed or encoded at the same time.

#include <cstdint>
#include <mutex>

namespace rbee::io {

// Lets one large picture at a time be decoded and made: each takes hundreds of MiB. Smaller ones
// never wait. Thread-safe.
class LargePictures {
 public:
  static constexpr int64_t kLarge = int64_t{8} << 20;  // pixels

  // The place of work on this many pixels: those of all pictures that it is given, or of what it
  // makes, whichever are more. The lock's destructor gives it back. While another has the place,
  // asks check_cancelled(), which throws cancelled.
  std::unique_lock<std::timed_mutex> enter(int64_t pixels);

 private:
  std::timed_mutex one_;
};

}  // namespace rbee::io
