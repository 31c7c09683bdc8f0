#include "rbee/ops/input_watch.h"

#include <atomic>

namespace rbee {
namespace {

std::atomic<InputWatch*> current = nullptr;

}  // namespace

void set_input_watch(InputWatch* watch) {
  current.store(watch);
}

InputWatch* input_watch() {
  return current.load(std::memory_order_relaxed);
}

}  // namespace rbee
