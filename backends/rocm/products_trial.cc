#include "backends/rocm/products_trial.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/rocm/hip_driver.h"
#include "backends/rocm/hipblaslt.h"
#include "rbee/core/error.h"

namespace rbee::rocm {
namespace {

constexpr const char* kVariable = "RBEE_HIPBLASLT_TRIAL";  // of the child: the device's number
constexpr std::chrono::seconds kPatience{60};              // it may load hundreds of files
constexpr std::chrono::milliseconds kLook{5};

// The child's work. The parent's own call reports statuses to it.
void start_products(int ordinal) {
  HipDriver driver;
  driver.use(ordinal);
  const gpu::DynamicLibrary library(kHipblasLtVendor.override_variable, kHipblasLtVendor.files);
  gpu::LtHandle handle = nullptr;
  int (*create)(gpu::LtHandle*) = nullptr;
  create = reinterpret_cast<decltype(create)>(library.find("hipblasLtCreate"));
  if (create != nullptr) create(&handle);
}

// Runs before main().
[[maybe_unused]] const bool kTried = [] {
  const char* ordinal = std::getenv(kVariable);
  if (ordinal == nullptr) return false;
  try {
    start_products(std::atoi(ordinal));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // The parent will meet the fault itself.
  }
  _Exit(0);
}();

class Attributes {
 public:
  Attributes() {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    // Other programs may read standard output as a log.
    posix_spawn_file_actions_adddup2(&files_, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&signals_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&signals_, &none);
    posix_spawnattr_setflags(&signals_, POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&signals_);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  pid_t spawn(const std::string& variable) const {
    std::vector<char*> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    char name[] = "hipblaslt-trial";
    char* const arguments[] = {name, nullptr};
    pid_t child = 0;
    const int error =
        posix_spawn(&child, "/proc/self/exe", &files_, &signals_, arguments, environment.data());
    if (error != 0) fail(Code::device, "hipblaslt", "posix_spawn: ", std::strerror(error));
    return child;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t signals_{};
};

std::string outcome_of(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return cat("did not start within ", kPatience.count(), " s");
    }
    std::this_thread::sleep_for(kLook);
  }
  if (ended > 0 && WIFSIGNALED(status)) {
    return cat("ends a process that starts it by signal ", WTERMSIG(status));
  }
  if (ended > 0 && WEXITSTATUS(status) != 0) {
    return cat("ends a process that starts it with status ", WEXITSTATUS(status));
  }
  return "";
}

}  // namespace

const std::string& why_products_end_processes(int ordinal) {
  static std::mutex mutex;
  static auto* const known = new std::map<int, std::string>;
  const std::scoped_lock lock(mutex);
  const auto found = known->find(ordinal);
  if (found != known->end()) return found->second;
  const pid_t child = Attributes().spawn(cat(kVariable, "=", ordinal));
  return known->emplace(ordinal, outcome_of(child)).first->second;
}

}  // namespace rbee::rocm
