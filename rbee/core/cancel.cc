#include "rbee/core/cancel.h"

#include <utility>

#include "rbee/core/error.h"

namespace rbee {
namespace {

thread_local const std::atomic<bool>* cancel_flag = nullptr;

}  // namespace

CancelScope::CancelScope(const std::atomic<bool>& flag)
    : outer_(std::exchange(cancel_flag, &flag)) {}

CancelScope::~CancelScope() {
  cancel_flag = outer_;
}

bool is_cancelled() {
  return cancel_flag != nullptr && cancel_flag->load(std::memory_order_relaxed);
}

void check_cancelled(std::string_view subject) {
  if (is_cancelled()) fail(Code::cancelled, subject, "nobody waits for it any more");
}

}  // namespace rbee
