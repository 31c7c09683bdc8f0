#pragma once
// Lets a program wait for SIGTERM and SIGINT, and check for SIGHUP.

#include <chrono>
#include <cstdint>

namespace rbee::workers {

// The process ends within this time of a signal, even if something hangs. Hives kill after two
// seconds.
inline constexpr std::chrono::milliseconds kStopTime{1500};

enum class Hangup : uint8_t {
  ends,     // SIGHUP ends the process, as by default
  reloads,  // SIGHUP makes take_reload() return true
};
// Call it first in main, before any thread exists. Until arm_stop_signals(), SIGTERM and SIGINT end
// the process at once with status 0.
void catch_stop_signals(Hangup hangup);
// From now on a signal makes wait_for_stop() return true. The process must end within `drain` and
// kStopTime; at that time, or at a second signal, it is ended with status 0.
void arm_stop_signals(std::chrono::seconds drain);
// True once for all hangups since the last call.
bool take_reload();
// True after a stop request; false after `patience`, or if there is a reload to take.
bool wait_for_stop(std::chrono::milliseconds patience);
// Call it after all answers: if the rest of the process takes too long, it ends without a message.
void work_is_over();
// The process ends with `status` after at most `patience`, even if something still runs.
void end_within(std::chrono::milliseconds patience, int status);
// Requests a stop, as a signal does.
void ask_for_stop();

}  // namespace rbee::workers
