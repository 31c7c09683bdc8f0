#include "rbee/core/system/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <utility>

#include "rbee/core/background.h"
#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/core/input_file.h"

namespace rbee {
namespace {

// Empty: there is no such file, since the process has ended.
std::string text_of(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

// The fields of /proc/ID/stat (proc(5)) from the third on, because the name before may have blanks.
// None: there is no such process.
std::vector<std::string> stat_fields(const std::string& id) {
  const std::string all = text_of("/proc/" + id + "/stat");
  const size_t end = all.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(all.substr(end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

// Seconds since 1970 at which the machine started.
std::optional<double> boot_time() {
  std::istringstream file(text_of("/proc/stat"));
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

}  // namespace

// Also when the file was replaced since.
std::string program_path() {
  return "/proc/self/exe";
}

std::vector<std::string> process_arguments() {
  const std::string all = read_file("/proc/self/cmdline");
  std::vector<std::string> out;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\0', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

char* const* process_environment() {
  return environ;
}

void name_process(const char* name) {
  prctl(PR_SET_NAME, name);
}

void lower_priority() {
  constexpr int kNiceness = 10;
  setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux of the thread alone
}

void end_with_parent(pid_t parent) {
  // Not SIGTERM, which a stopped process never handles.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _Exit(0);
}

void close_descriptors_from(int first) {
  syscall(SYS_close_range, first, ~0U, 0);
}

bool open_pipe(std::array<int, 2>& ends) {
  return pipe2(ends.data(), O_CLOEXEC) == 0;
}

WatchedProcess::WatchedProcess(pid_t id)
    : descriptor_(id > 0 ? static_cast<int>(syscall(SYS_pidfd_open, id, 0)) : -1), id_(id) {}

void WatchedProcess::kill() const {
  if (!none()) syscall(SYS_pidfd_send_signal, descriptor_, SIGKILL, nullptr, 0);
}

ProcessState process_state(pid_t id) {
  const std::vector<std::string> fields = stat_fields(std::to_string(id));
  if (fields.empty()) return ProcessState::none;
  const std::string& letter = fields.front();
  if (letter == "Z") return ProcessState::ended;
  return letter == "T" || letter == "t" ? ProcessState::stopped : ProcessState::runs;
}

int64_t process_memory(pid_t id) {
  std::istringstream numbers(text_of(cat("/proc/", id, "/statm")));
  int64_t all = 0, resident = 0, shared = 0;  // pages; shared: of files
  if (!(numbers >> all >> resident >> shared)) return 0;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

ProcessFacts process_facts() {
  ProcessFacts out;
  if (const std::vector<std::string> fields = stat_fields("self"); fields.size() >= 22) {
    const auto field = [&](size_t number) { return std::stod(fields[number - 3]); };
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    out.cpu_seconds = (field(14) + field(15)) / ticks;
    if (const std::optional<double> boot = boot_time()) out.start_time = *boot + field(22) / ticks;
    out.virtual_bytes = std::stoll(fields[23 - 3]);
    out.resident_bytes = std::stoll(fields[24 - 3]) * sysconf(_SC_PAGESIZE);
  }
  std::error_code error;
  const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd", error), {});
  if (!error) out.open_files = open - 1;  // one of them is this open folder
  return out;
}

}  // namespace rbee
