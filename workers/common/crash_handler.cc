#include "workers/common/crash_handler.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "rbee/core/launch_trail.h"

namespace rbee::workers {
namespace {

struct Fault {
  int number;
  const char* name;
  struct sigaction before;
};

constinit const char* program_name = "";
constinit std::array<Fault, 4> faults = {{{SIGABRT, "SIGABRT", {}},
                                          {SIGSEGV, "SIGSEGV", {}},
                                          {SIGILL, "SIGILL", {}},
                                          {SIGFPE, "SIGFPE", {}}}};

// In a signal handler it may call only write(), sigaction() and raise() of the system.
void say(const char* fault) {
  static std::array<char, 4096> line;
  size_t used = 0;
  const auto add = [&](const char* text) {
    const size_t taken = std::min(std::strlen(text), line.size() - 1 - used);
    std::memcpy(line.data() + used, text, taken);
    used += taken;
  };
  for (const char* part : {program_name, ": ended by ", fault, "; kernels under way: "}) add(part);
  const size_t named = describe_launches(line.data() + used, line.size() - 1 - used);
  used += named;
  if (named == 0) add("none");
  line[used++] = '\n';
  // The process ends: nothing can be done if standard error takes less.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), used);
}

void on_fault(int number) {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  for (const Fault& fault : faults) {
    if (fault.number != number) continue;
    if (!said.test_and_set()) say(fault.name);
    ::sigaction(number, &fault.before, nullptr);
    ::raise(number);  // comes when this handler returns
  }
}

}  // namespace

void install_crash_handler(const char* program) {
  program_name = program;
  for (Fault& fault : faults) {
    struct sigaction now = {};
    now.sa_handler = on_fault;
    now.sa_flags = SA_ONSTACK;
    sigemptyset(&now.sa_mask);
    ::sigaction(fault.number, &now, &fault.before);
  }
}

}  // namespace rbee::workers
