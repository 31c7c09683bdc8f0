#pragma once
// Processes, as the system has them. One folder of sources for each system: linux/, macos/.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rbee {

// Of this process: the path of its program, for execve(), and what it was started with.
std::string program_path();
std::vector<std::string> process_arguments();
// "NAME=value", ends with a null pointer.
char* const* process_environment();
// What lists of processes show, where the system lets a process say it.
void name_process(const char* name);

// Between fork() and execve(): these make async-signal-safe calls only.
// When `parent`, which has forked, ends, this process gets SIGKILL. On Linux: when the thread that
// has forked ends.
void end_with_parent(pid_t parent);
// Closes all descriptors from `first` on.
void close_descriptors_from(int first);

// Both ends close at execve(). False: errno tells why.
bool open_pipe(std::array<int, 2>& ends);

// A process that somebody waits for or kills. Its id may go to another process when it has ended;
// kill() never meets that one.
class WatchedProcess {
 public:
  WatchedProcess() = default;  // none
  // None if it is not there, where errno tells why; or one that has ended, on macOS.
  explicit WatchedProcess(pid_t id);
  WatchedProcess(WatchedProcess&& other) noexcept;
  WatchedProcess& operator=(WatchedProcess&& other) noexcept;
  ~WatchedProcess();

  bool none() const { return descriptor_ < 0; }
  // poll() finds it readable when the process has ended. -1: none.
  int descriptor() const { return descriptor_; }
  int release();      // the descriptor is the caller's now
  void kill() const;  // SIGKILL; also while others wait for its end

 private:
  int descriptor_ = -1;
  pid_t id_ = -1;
};

enum class ProcessState { none, runs, stopped, ended };  // ended: nobody has waited for it yet
ProcessState process_state(pid_t id);

// Bytes of memory that belong to this process alone, not pages of files; 0: unknown.
int64_t process_memory(pid_t id);

// Of this process. Nothing: the system does not tell.
struct ProcessFacts {
  std::optional<double> cpu_seconds = {};  // of all threads
  std::optional<double> start_time = {};   // seconds since 1970
  std::optional<int64_t> virtual_bytes = {};
  std::optional<int64_t> resident_bytes = {};
  std::optional<int64_t> open_files = {};
};
ProcessFacts process_facts();

}  // namespace rbee
