#pragma once
// Where the worker's log goes: standard output, one line for each record.

#include <string_view>

namespace rbee::workers {

enum class LogFormat { json, pretty };

// "json" or "pretty"; anything else is `fallback`.
LogFormat log_format(std::string_view name, LogFormat fallback);

// Installs the sink of rbee/core/log.h. level: a value of RUST_LOG, e.g. "debug" or
// "hyper=off,info": its part without '=' counts; "info" when there is none.
void start_logging(LogFormat format, std::string_view level);

}  // namespace rbee::workers
