#pragma once
// Logging without an output of its own: a program's main installs a sink (the workers' sink writes
// JSON lines through spdlog). Without a sink, log() drops its records.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rbee/core/cat.h"

namespace rbee {

enum class LogLevel : uint8_t { trace, debug, info, warn, error };

struct LogField {
  std::string_view key;
  std::string value;
};

using LogSink =
    std::function<void(LogLevel, std::string_view message, std::span<const LogField> fields)>;

// Not thread-safe against log(): call it once at the start, and with an empty sink at the end.
void set_log_sink(LogSink sink, LogLevel lowest);
bool log_enabled(LogLevel level);
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace rbee
