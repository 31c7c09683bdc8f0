#include "workers/common/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool armed = false;
  bool asked = false;
};

// Never destroyed: the thread that waits for signals outlives main.
State& state() {
  static State* const instance = new State;
  return *instance;
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void wait_for_signals() {
  const sigset_t set = stop_signals();
  int signal = 0;
  sigwait(&set, &signal);
  log(LogLevel::info, "stopping", {{"signal", signal == SIGINT ? "SIGINT" : "SIGTERM"}});
  {
    const std::lock_guard lock(state().mutex);
    if (!state().armed) _exit(0);  // still loading: nobody waits for anything
    state().asked = true;
    state().changed.notify_all();
  }
  constexpr auto kSeconds = std::chrono::duration_cast<std::chrono::seconds>(kStopTime);
  timespec patience{};
  patience.tv_sec = kSeconds.count();
  patience.tv_nsec = std::chrono::nanoseconds(kStopTime - kSeconds).count();
  sigtimedwait(&set, nullptr, &patience);
  log(LogLevel::warn, "stopped in the middle of work");
  _exit(0);
}

}  // namespace

void catch_stop_signals() {
  signal(SIGPIPE, SIG_IGN);
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);  // inherited by every later thread
  std::thread(wait_for_signals).detach();
}

void arm_stop_signals() {
  const std::lock_guard lock(state().mutex);
  state().armed = true;
}

bool wait_for_stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(state().mutex);
  return state().changed.wait_for(lock, patience, [] { return state().asked; });
}

void end_within(std::chrono::milliseconds patience, int status) {
  std::thread([patience, status] {
    std::this_thread::sleep_for(patience);
    log(LogLevel::warn, "ended in the middle of work");
    _exit(status);
  }).detach();
}

void ask_for_stop() {
  kill(getpid(), SIGTERM);
}

}  // namespace rbee::workers
