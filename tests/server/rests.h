#pragma once
// Workers with scripted engines that log each time they would give memory back.

#include <chrono>
#include <span>
#include <string_view>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"
#include "workers/common/worker.h"

namespace rbee::testing {

// With "--worker-id rests" the program checks often and logs each time.
inline void log_returned_memory(workers::Program& program, int argc, const char* const* argv) {
  for (const std::string_view argument : std::span(argv, static_cast<size_t>(argc))) {
    if (argument != "rests") continue;
    program.tick = std::chrono::milliseconds(10);
    program.trim_memory = [] {
      static int times = 0;  // only the checking thread uses it
      log(LogLevel::info, "memory is given back", {{"times", cat(++times, ".")}});
    };
  }
}

}  // namespace rbee::testing
