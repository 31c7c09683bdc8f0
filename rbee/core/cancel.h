#pragma once
// Whether anybody still waits for what a thread does.

#include <atomic>

namespace rbee {

// While it lives, work of its thread that asks is cancelled once the flag is set. The flag outlives
// it. The innermost one counts.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* const outer_;
};

bool is_cancelled();

}  // namespace rbee
