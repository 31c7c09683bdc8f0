#include "workers/common/logging.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>

#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "server/http/clock.h"
#include "server/http/message.h"
#include "workers/common/log_writer.h"

namespace rbee::workers {
namespace {

constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
constexpr std::array<std::string_view, 5> kShown = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"};

// Numeric fields: programs that read the log compute with them.
constexpr std::array<std::string_view, 2> kNumbers = {"status", "ms"};

using Fields = std::span<const LogField>;

std::string json_line(LogLevel level, std::string_view message, Fields fields) {
  using server::json_quote;
  std::string line =
      cat("{\"timestamp\":", json_quote(server::iso8601(std::chrono::system_clock::now())),
          ",\"level\":", json_quote(kShown[static_cast<size_t>(level)]),
          ",\"message\":", json_quote(message));
  for (const LogField& field : fields) {
    const bool number = std::ranges::count(kNumbers, field.key) > 0;
    line += cat(",", json_quote(field.key), ":", number ? field.value : json_quote(field.value));
  }
  return line + "}";
}

std::string pretty_line(LogLevel level, std::string_view message, Fields fields) {
  std::string line = cat(server::iso8601(std::chrono::system_clock::now()), " ",
                         kShown[static_cast<size_t>(level)], " ", message);
  for (const LogField& field : fields) line += cat(" ", field.key, "=", field.value);
  return printable_text(line);
}

// The part of RUST_LOG that applies to all modules; empty optional: log nothing.
std::optional<LogLevel> lowest_level(std::string_view directives) {
  LogLevel lowest = LogLevel::info;
  bool off = false;
  while (!directives.empty()) {
    const size_t comma = std::min(directives.find(','), directives.size());
    std::string name(directives.substr(0, comma));
    directives.remove_prefix(std::min(comma + 1, directives.size()));
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    const auto known = std::find(kLevels.begin(), kLevels.end(), name);
    if (known != kLevels.end()) lowest = static_cast<LogLevel>(known - kLevels.begin());
    if (known != kLevels.end() || name == "off") off = name == "off";
  }
  if (off) return std::nullopt;
  return lowest;
}

class OutputSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  using Line = std::string (*)(LogLevel, std::string_view, Fields);
  explicit OutputSink(Line line)
      : writer_(STDOUT_FILENO, [line](uint64_t count) {
          const LogField field{"records", cat(count)};
          return line(LogLevel::warn, "records of the log were lost", {&field, 1});
        }) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& record) override {
    writer_.write({record.payload.data(), record.payload.size()});
  }
  void flush_() override {}

 private:
  LogWriter writer_;
};

}  // namespace

LogFormat log_format(std::string_view name, LogFormat fallback) {
  if (name == "json") return LogFormat::json;
  return name == "pretty" ? LogFormat::pretty : fallback;
}

void start_logging(LogFormat format, std::string_view level) {
  const std::optional<LogLevel> lowest = lowest_level(level);
  if (!lowest) return set_log_sink(nullptr, LogLevel::error);
  const auto line = format == LogFormat::json ? json_line : pretty_line;
  const auto logger =
      std::make_shared<spdlog::logger>("worker", std::make_shared<OutputSink>(line));
  logger->set_level(spdlog::level::trace);
  set_log_sink([logger, line](LogLevel record_level, std::string_view message,
                              Fields fields) { logger->info(line(record_level, message, fields)); },
               *lowest);
}

}  // namespace rbee::workers
