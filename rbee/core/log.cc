#include "rbee/core/log.h"

#include <atomic>

namespace rbee {
namespace {

// Never destroyed: threads may still log while the program's statics go away.
LogSink& sink() {
  static LogSink* const instance = new LogSink;
  return *instance;
}
constexpr int kOff = 1000;
std::atomic<int> lowest_level{kOff};

}  // namespace

void set_log_sink(LogSink new_sink, LogLevel lowest) {
  lowest_level.store(kOff);
  sink() = std::move(new_sink);
  if (sink()) lowest_level.store(static_cast<int>(lowest));
}

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) >= lowest_level.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!log_enabled(level)) return;
  sink()(level, message, std::span<const LogField>(fields.begin(), fields.size()));
}

}  // namespace rbee
