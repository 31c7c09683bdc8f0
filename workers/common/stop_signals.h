#pragma once
// SIGTERM and SIGINT as something to wait for.

#include <chrono>

namespace rbee::workers {

// Within this time of a signal the process ends, whatever hangs. Hives kill after two seconds.
inline constexpr std::chrono::milliseconds kStopTime{1500};

// Call first in main, before any thread exists. Until arm_stop_signals(), a signal ends the process
// at once with status 0.
void catch_stop_signals();
// From here on a signal makes wait_for_stop() return true; the process must end within kStopTime,
// or it is ended then, or at a second signal, with status 0.
void arm_stop_signals();
// True once a stop was asked for; false after `patience`.
bool wait_for_stop(std::chrono::milliseconds patience);
// The process ends with `status` after `patience` at the latest, whatever still runs by then.
void end_within(std::chrono::milliseconds patience, int status);
// As a signal does.
void ask_for_stop();

}  // namespace rbee::workers
