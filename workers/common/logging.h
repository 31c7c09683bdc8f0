#pragma once
// The worker's log: standard output, one line for each record.

#include <string_view>

namespace rbee::workers {

enum class LogFormat { json, pretty };

// "json" or "pretty"; `fallback` for anything else.
LogFormat log_format(std::string_view name, LogFormat fallback);

// Installs the sink of rbee/core/log.h. level: a value of RUST_LOG, e.g. "debug" or
// "hyper=off,info", of which the part without '=' counts; "info" if there is none.
void start_logging(LogFormat format, std::string_view level);

}  // namespace rbee::workers
