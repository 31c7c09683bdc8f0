#include "rbee/core/cancel.h"

#include <utility>

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

}  // namespace rbee
