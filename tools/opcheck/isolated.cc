#include "tools/opcheck/isolated.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

#include "rbee/core/error.h"
#include "tests/support/device_called.h"

namespace rbee::harness {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;

// Of one operation; behind them its other cases are left out, since a GPU that hangs would take
// --case-seconds for each.
constexpr int kMostEnds = 5;
constexpr int kFailed = 1;              // exit status of a child that threw
constexpr duration<double> kToDie(10);  // a process that waits for the kernel's driver may not end
constexpr auto kPause = std::chrono::milliseconds(5);

// A child's report to its parent, in shared memory.
struct Progress {
  std::atomic<uint64_t> steps = 0;
  std::atomic<size_t> position = 0;
  char implementation[32] = "";
  Tally tally;
};

class SharedProgress {
 public:
  SharedProgress()
      : memory_(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0)) {
    check(memory_ != MAP_FAILED, "opcheck", "no memory to share with a child process");
    progress_ = new (memory_) Progress;
  }
  ~SharedProgress() { munmap(memory_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;

  Progress* operator->() const { return progress_; }

 private:
  void* memory_;
  Progress* progress_;
};

// How a child ended: "" when it did all its work.
std::string reason_of(int status) {
  if (WIFSIGNALED(status)) {
    return cat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ')');
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : cat("exit status ", code);
}

[[noreturn]] void run_as_child(const std::function<void()>& work) {
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &no_core);
  int status = 0;
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = kFailed;
  }
  std::fflush(nullptr);
  _exit(status);
}

bool has_ended(pid_t child, int* status) {
  return waitpid(child, status, WNOHANG) == child;
}

std::string end(pid_t child, double seconds) {
  kill(child, SIGKILL);
  int status = 0;
  for (const auto begin = Clock::now(); !has_ended(child, &status);
       std::this_thread::sleep_for(kPause)) {
    if (Clock::now() - begin > kToDie) {
      return cat("no end within ", seconds, " s, and not when it was killed");
    }
  }
  return cat("no end within ", seconds, " s");
}

// "" when the child did all its work, else what ended it. It may take `seconds` for each step that
// it tells.
std::string run_in_child(const SharedProgress& progress, double seconds,
                         const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  check(child >= 0, "opcheck", "cannot start a child process");
  if (child == 0) run_as_child(work);
  uint64_t steps = progress->steps;
  auto since = Clock::now();
  int status = 0;
  while (!has_ended(child, &status)) {
    std::this_thread::sleep_for(kPause);
    if (const uint64_t now = progress->steps; now != steps) {
      steps = now;
      since = Clock::now();
    }
    if (Clock::now() - since > duration<double>(seconds)) return end(child, seconds);
  }
  return reason_of(status);
}

struct Total {
  Tally tally;
  int ended = 0;    // cases that ended their process, among the failed ones
  int not_run = 0;  // after kMostEnds such cases
};

// Returns how many of the cases are done, the one that ended the child among them.
size_t check_in_child(const OpTable& table, std::span<const size_t> numbers, const Options& options,
                      Tally& tally, int& ended) {
  const SharedProgress progress;
  progress->tally = tally;
  const auto told = [&](size_t position, const char* implementation) {
    std::strncpy(progress->implementation, implementation, sizeof progress->implementation - 1);
    progress->position = position;
    ++progress->steps;
  };
  const std::string reason = run_in_child(progress, options.case_seconds, [&] {
    check_cases(table, numbers, options, device_called(options.device), progress->tally, told);
  });
  tally = progress->tally;
  if (reason.empty()) return numbers.size();
  const size_t position = progress->position;
  std::printf("%s --case %zu, %s: %s: %s\n", table.op().c_str(), numbers[position],
              progress->implementation, reason.c_str(),
              table.cases()[numbers[position]].name.c_str());
  std::fflush(stdout);
  ++ended;
  ++tally.failed;
  return position + 1;
}

void check_table(const OpTable& table, const Options& options, Total& total) {
  const std::vector<size_t> numbers = fitting_cases(table, options);
  std::span<const size_t> left = numbers;
  Tally tally;
  int ended = 0;
  while (!left.empty() && ended < kMostEnds) {
    left = left.subspan(check_in_child(table, left, options, tally, ended));
  }
  if (!left.empty()) {
    std::printf("%s: %zu cases are not run behind %d that ended their process\n",
                table.op().c_str(), left.size(), ended);
  }
  if (options.summary) print_row(table, tally);
  total.tally.passed += tally.passed;
  total.tally.failed += tally.failed;
  total.ended += ended;
  total.not_run += static_cast<int>(left.size());
}

}  // namespace

int check_isolated(const std::vector<const OpTable*>& tables, const Options& options) {
  const SharedProgress progress;
  const std::string reason =
      run_in_child(progress, options.case_seconds, [&] { device_called(options.device); });
  if (!reason.empty()) {
    std::printf("%s cannot be opened: %s\n", options.device.c_str(), reason.c_str());
    return reason == cat("exit status ", kFailed) ? kFailed : kEndedProcess;
  }
  if (options.summary) print_header();
  Total total;
  for (const OpTable* table : tables) check_table(*table, options, total);
  std::printf("%d cases passed, %d failed, %d of them ended their process; %d were not run\n",
              total.tally.passed, total.tally.failed, total.ended, total.not_run);
  if (total.ended > 0) return kEndedProcess;
  return total.tally.failed > 0 ? kFailed : 0;
}

}  // namespace rbee::harness
