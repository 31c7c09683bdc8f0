#include "rbee/core/cancel.h"

#include <utility>

#include "rbee/core/error.h"

namespace rbee {
namespace {

thread_local const std::atomic<bool>* innermost = nullptr;

}  // namespace

CancelScope::CancelScope(const std::atomic<bool>& flag) : outer_(std::exchange(innermost, &flag)) {}

CancelScope::~CancelScope() {
  innermost = outer_;
}

const std::atomic<bool>* cancel_flag() {
  return innermost;
}

bool is_cancelled() {
  return innermost != nullptr && innermost->load(std::memory_order_relaxed);
}

void check_cancelled(std::string_view subject) {
  if (is_cancelled()) fail(Code::cancelled, subject, "nobody waits for it any more");
}

}  // namespace rbee
