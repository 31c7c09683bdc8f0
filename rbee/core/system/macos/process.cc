#include "rbee/core/system/process.h"

#include <crt_externs.h>
#include <fcntl.h>
#include <libproc.h>
#include <mach-o/dyld.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/event.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <utility>

#include "rbee/core/background.h"

namespace rbee {
namespace {

// Makes `queue` readable when the process ends. False: it has ended.
bool watch_end(int queue, pid_t id) {
  struct kevent wanted{};
  EV_SET(&wanted, static_cast<uintptr_t>(id), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
  return kevent(queue, &wanted, 1, nullptr, 0, nullptr) == 0;
}

std::optional<kinfo_proc> kernel_record(pid_t id) {
  int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, id};
  kinfo_proc out{};
  size_t size = sizeof out;
  if (sysctl(name, 4, &out, &size, nullptr, 0) != 0 || size == 0) return std::nullopt;
  return out;
}

}  // namespace

std::string program_path() {
  std::string out(PATH_MAX, '\0');
  auto size = static_cast<uint32_t>(out.size());
  if (_NSGetExecutablePath(out.data(), &size) != 0) {
    out.resize(size);
    _NSGetExecutablePath(out.data(), &size);
  }
  out.resize(out.find('\0'));
  return out;
}

std::vector<std::string> process_arguments() {
  char** const arguments = *_NSGetArgv();
  return {arguments, arguments + *_NSGetArgc()};
}

char* const* process_environment() {
  return *_NSGetEnviron();
}

// Lists show a process by the name that it was started with; a debugger shows the thread's.
void name_process(const char* name) {
  pthread_setname_np(name);
}

void lower_priority() {
  pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
}

// The system has no such signal, so a process in between waits for the parent's end, and for the
// child's, which is its own parent.
void end_with_parent(pid_t parent) {
  const pid_t child = getpid();
  if (fork() != 0) return;  // also where it failed: the child then outlives a parent that crashes
  close_descriptors_from(0);
  setsid();  // signals of a terminal are for the others
  const int queue = kqueue();
  if (!watch_end(queue, child)) _Exit(0);
  if (!watch_end(queue, parent)) {
    ::kill(child, SIGKILL);
    _Exit(0);
  }
  struct kevent ended{};
  while (kevent(queue, nullptr, 0, &ended, 1, nullptr) < 0) {
  }
  if (ended.ident == static_cast<uintptr_t>(parent)) ::kill(child, SIGKILL);
  _Exit(0);
}

void close_descriptors_from(int first) {
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  const auto end = static_cast<int>(std::min<rlim_t>(most.rlim_cur, OPEN_MAX));
  for (int each = first; each < end; ++each) close(each);
}

bool open_pipe(std::array<int, 2>& ends) {
  if (pipe(ends.data()) != 0) return false;
  for (const int each : ends) fcntl(each, F_SETFD, FD_CLOEXEC);
  return true;
}

WatchedProcess::WatchedProcess(pid_t id) : id_(id) {
  if (id <= 0) return;
  descriptor_ = kqueue();
  if (descriptor_ < 0) return;
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  if (watch_end(descriptor_, id)) return;
  // A child that has ended already, and that nobody has waited for, cannot be watched any more.
  struct kevent at_once{};
  EV_SET(&at_once, 0, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, nullptr);
  kevent(descriptor_, &at_once, 1, nullptr, 0, nullptr);
}

void WatchedProcess::kill() const {
  if (none()) return;
  pollfd ended{.fd = descriptor_, .events = POLLIN, .revents = 0};
  if (poll(&ended, 1, 0) == 0) ::kill(id_, SIGKILL);
}

ProcessState process_state(pid_t id) {
  const std::optional<kinfo_proc> record = kernel_record(id);
  if (!record) return ProcessState::none;
  if (record->kp_proc.p_stat == SZOMB) return ProcessState::ended;
  return record->kp_proc.p_stat == SSTOP ? ProcessState::stopped : ProcessState::runs;
}

int64_t process_memory(pid_t id) {
  rusage_info_v0 used{};
  const int told = proc_pid_rusage(id, RUSAGE_INFO_V0, reinterpret_cast<rusage_info_t*>(&used));
  return told == 0 ? static_cast<int64_t>(used.ri_phys_footprint) : 0;
}

ProcessFacts process_facts() {
  constexpr double kMicro = 1e-6;
  ProcessFacts out;
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + kMicro * time.tv_usec;
    };
    out.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  }
  if (const std::optional<kinfo_proc> record = kernel_record(getpid())) {
    const timeval& start = record->kp_proc.p_starttime;
    out.start_time = static_cast<double>(start.tv_sec) + kMicro * start.tv_usec;
  }
  proc_taskinfo task{};
  if (proc_pidinfo(getpid(), PROC_PIDTASKINFO, 0, &task, sizeof task) == sizeof task) {
    out.virtual_bytes = static_cast<int64_t>(task.pti_virtual_size);
    out.resident_bytes = static_cast<int64_t>(task.pti_resident_size);
  }
  // Without a buffer it gives the bytes of the list, with some room for new ones; with one, the
  // list's.
  const int room = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, nullptr, 0);
  if (room > 0) {
    std::vector<proc_fdinfo> list(static_cast<size_t>(room) / sizeof(proc_fdinfo) + 1);
    const int bytes = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, list.data(),
                                   static_cast<int>(list.size() * sizeof(proc_fdinfo)));
    if (bytes > 0) out.open_files = bytes / static_cast<int>(sizeof(proc_fdinfo));
  }
  return out;
}

}  // namespace rbee
