#include "workers/common/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool armed = false;
  bool asked = false;
  bool reload = false;
  bool over = false;                               // the server no longer answers
  std::chrono::milliseconds patience = kStopTime;  // the most time from a signal to the end
};

// Never destroyed, because the thread that waits for signals outlives main.
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

// The first stop signal.
int next_stop(bool reloads) {
  sigset_t set = stop_signals();
  if (reloads) sigaddset(&set, SIGHUP);
  while (true) {
    int signal = 0;
    sigwait(&set, &signal);
    if (signal != SIGHUP) return signal;
    const std::lock_guard lock(state().mutex);
    state().reload = true;
    state().changed.notify_all();
  }
}

void wait_for_signals(bool reloads) {
  const int signal = next_stop(reloads);
  log(LogLevel::info, "stopping", {{"signal", signal == SIGINT ? "SIGINT" : "SIGTERM"}});
  std::chrono::milliseconds most{0};
  {
    const std::lock_guard lock(state().mutex);
    if (!state().armed) _exit(0);  // still loading: no client waits
    state().asked = true;
    state().changed.notify_all();
    most = state().patience;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  timespec patience{};
  patience.tv_sec = seconds.count();
  patience.tv_nsec = std::chrono::nanoseconds(most - seconds).count();
  const sigset_t set = stop_signals();
  sigtimedwait(&set, nullptr, &patience);
  const std::unique_lock lock(state().mutex);
  if (!state().over) log(LogLevel::warn, "stopped in the middle of work");
  _exit(0);
}

}  // namespace

void catch_stop_signals(Hangup hangup) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a log at its size limit must not end the process
  const bool reloads = hangup == Hangup::reloads;
  sigset_t set = stop_signals();
  if (reloads) sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);  // inherited by every later thread
  std::thread(wait_for_signals, reloads).detach();
}

void arm_stop_signals(std::chrono::seconds drain) {
  const std::lock_guard lock(state().mutex);
  state().armed = true;
  state().patience = drain + kStopTime;
}

bool take_reload() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().reload, false);
}

bool wait_for_stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(state().mutex);
  state().changed.wait_for(lock, patience, [] { return state().asked || state().reload; });
  return state().asked;
}

void work_is_over() {
  const std::lock_guard lock(state().mutex);
  state().over = true;
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
