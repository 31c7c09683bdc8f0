#pragma once
// Device memory in use by several processes: a counter in a file that all of them map.

#include <atomic>
#include <cstdint>

namespace rbee::fake {

class SharedUse {
 public:
  // A new file starts at 0. Throws runtime_error if it cannot be mapped.
  explicit SharedUse(const char* path);
  ~SharedUse();
  SharedUse(const SharedUse&) = delete;
  SharedUse& operator=(const SharedUse&) = delete;

  std::atomic<int64_t>& bytes() { return *bytes_; }

 private:
  std::atomic<int64_t>* bytes_;
};

}  // namespace rbee::fake
