#include "rbee/group/rank_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::group {
namespace {

// The link's place among the child's descriptors.
constexpr int kLinkDescriptor = STDERR_FILENO + 1;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// variable: "NAME=value"
std::vector<std::string> environment_with(const std::string& variable) {
  const std::string_view name = std::string_view(variable).substr(0, variable.find('=') + 1);
  std::vector<std::string> out;
  for (char* const* at = process_environment(); *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with(name)) out.emplace_back(*at);
  }
  out.push_back(variable);
  return out;
}

[[noreturn]] void give_up(const char* call) {
  fail(Code::io, "group", call, ": ", std::strerror(errno));
}

// After fork: only async-signal-safe calls. link: -1 for none.
[[noreturn]] void become(const char* program, char* const* argv, char* const* envp, int link,
                         pid_t parent) {
  end_with_parent(parent);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = open("/dev/null", O_RDONLY);
  if (link == kLinkDescriptor) {
    fcntl(link, F_SETFD, 0);
  } else if (link >= 0) {
    dup2(link, kLinkDescriptor);
  }
  dup2(input, STDIN_FILENO);
  // No sockets: the child would hold clients' connections open.
  close_descriptors_from(kLinkDescriptor + (link >= 0 ? 1 : 0));
  execve(program, argv, envp);
  _Exit(127);
}

}  // namespace

RankProcess::RankProcess(const std::string& program, std::vector<std::string> arguments, int rank,
                         int ranks, RankLink link) {
  start(program, std::move(arguments),
        cat(kLinkVariable, '=', rank, '/', ranks, '/', kLinkDescriptor), link.descriptor());
}

RankProcess::RankProcess(const std::string& program, std::vector<std::string> arguments,
                         int local_rank) {
  start(program, std::move(arguments), cat(kLocalVariable, '=', local_rank), -1);
}

void RankProcess::start(const std::string& program, std::vector<std::string> arguments,
                        const std::string& variable, int link) {
  std::vector<std::string> environment = environment_with(variable);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ == 0) become(program.c_str(), argv.data(), envp.data(), link, parent);
  if (id_ < 0) give_up("fork");
  process_ = WatchedProcess(id_);
  if (process_.none()) {
    const int error = errno;
    ::kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    errno = error;
    give_up("to watch a process");
  }
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      process_(std::move(other.process_)),
      status_(other.status_) {}

RankProcess::~RankProcess() {
  if (id_ <= 0 || status_) return;
  kill();
  waitpid(id_, nullptr, 0);
}

void RankProcess::kill() const {
  process_.kill();
}

bool RankProcess::stopped() const {
  siginfo_t info{};
  const int options = WSTOPPED | WNOHANG | WNOWAIT;
  const bool told = waitid(P_PID, static_cast<id_t>(id_), &info, options) == 0;
  return told && info.si_pid == id_ && (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED);
}

std::optional<int> RankProcess::wait(std::chrono::milliseconds patience) {
  if (status_) return status_;
  pollfd wanted{.fd = process_.descriptor(), .events = POLLIN, .revents = 0};
  if (poll(&wanted, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
  int status = 0;
  if (waitpid(id_, &status, WNOHANG) != id_) return std::nullopt;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

Neighbours::Neighbours(const RankPlace& place, const std::vector<std::string>& arguments,
                       const std::string& program) {
  if (!place.starts_neighbours()) return;
  for (int local = 1; local < place.local_ranks; ++local) {
    all_.emplace_back(program, arguments, local);
  }
}

Neighbours::~Neighbours() {
  constexpr std::chrono::seconds kEndTime{3};
  const auto end = std::chrono::steady_clock::now() + kEndTime;
  for (RankProcess& each : all_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    each.wait(std::max(left, std::chrono::milliseconds(0)));
  }
}

}  // namespace rbee::group
