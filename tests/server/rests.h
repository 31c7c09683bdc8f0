#pragma once
// Workers with scripted engines that tell when they would give memory back.

#include <chrono>
#include <span>
#include <string_view>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"
#include "workers/common/worker.h"

namespace rbee::testing {

// With "--worker-id rests" the program looks often, and its log says when it gives memory back.
inline void log_returned_memory(workers::Program& program, int argc, const char* const* argv) {
  for (const std::string_view argument : std::span(argv, static_cast<size_t>(argc))) {
    if (argument != "rests") continue;
    program.tick = std::chrono::milliseconds(10);
    program.trim_memory = [] {
      static int times = 0;  // of the one thread that looks
      log(LogLevel::info, "memory is given back", {{"times", cat(++times, ".")}});
    };
  }
}

}  // namespace rbee::testing
