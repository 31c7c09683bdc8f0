#pragma once
// SIGTERM and SIGINT as something to wait for, and SIGHUP as something to look for.

#include <chrono>
#include <cstdint>

namespace rbee::workers {

// Within this time of a signal the process ends, whatever hangs. Hives kill after two seconds.
inline constexpr std::chrono::milliseconds kStopTime{1500};

enum class Hangup : uint8_t {
  ends,     // SIGHUP ends the process, as it does by itself
  reloads,  // SIGHUP makes take_reload() give true
};
// Call first in main, before any thread exists. Until arm_stop_signals(), SIGTERM and SIGINT end
// the process at once with status 0.
void catch_stop_signals(Hangup hangup);
// From here on a signal makes wait_for_stop() return true; the process must end within `drain` and
// kStopTime, or it is ended then, or at a second signal, with status 0.
void arm_stop_signals(std::chrono::seconds drain);
// True once for all hangups since the last call.
bool take_reload();
// True once a stop was asked for; false after `patience`, or where there is a reload to take.
bool wait_for_stop(std::chrono::milliseconds patience);
// All answers were given: what is left of the process ends within its time without a word.
void work_is_over();
// The process ends with `status` after `patience` at the latest, whatever still runs by then.
void end_within(std::chrono::milliseconds patience, int status);
// As a signal does.
void ask_for_stop();

}  // namespace rbee::workers
