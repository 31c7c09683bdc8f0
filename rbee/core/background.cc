#include "rbee/core/background.h"

#include <future>
#include <optional>

#include "rbee/core/cancel.h"

namespace rbee {

void run_in_background(const std::function<void()>& work) {
  const std::atomic<bool>* const cancelled = cancel_flag();
  std::async(std::launch::async, [&] {
    lower_priority();
    std::optional<CancelScope> scope;
    if (cancelled != nullptr) scope.emplace(*cancelled);
    work();
  }).get();
}

}  // namespace rbee
