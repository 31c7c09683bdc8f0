#pragma once
// How long a model stays loaded after its last request, as Ollama's clients write it: "5m",
// "1h30m", "0", or a number of seconds.

#include <chrono>
#include <optional>
#include <string_view>

namespace rbee::server {

// Stands for durations below 0, and for those too long for our clock.
inline constexpr std::chrono::milliseconds kForEver = std::chrono::milliseconds::max();

// Go's time.ParseDuration, with a number alone for seconds. Nothing for other texts.
std::optional<std::chrono::milliseconds> parse_keep_alive(std::string_view text);
std::chrono::milliseconds keep_alive_of(double seconds);

}  // namespace rbee::server
