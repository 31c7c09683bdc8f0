#include "tests/server/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace rbee::testing {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Process::Process(const std::string& program, std::vector<std::string> arguments,
                 std::vector<std::string> environment) {
  // Writing to a process that has ended must not end the tests.
  ::signal(SIGPIPE, SIG_IGN);
  arguments.insert(arguments.begin(), program);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  output_ = ends[0];
}

Process::~Process() {
  if (!status_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(output_);
}

void Process::signal(int number) const {
  kill(pid_, number);
}

const std::string& Process::read_until(std::string_view mark) {
  while (text_.find(mark) == std::string::npos && fill()) {
  }
  return text_;
}

uint16_t Process::port() {
  static constexpr std::string_view kReady = "\"message\":\"ready\"";
  static constexpr std::string_view kPort = "\"port\":\"";
  read_until(kReady);
  size_t line = text_.find(kReady);
  while (line != std::string::npos && text_.find('\n', line) == std::string::npos && fill()) {
  }
  const size_t at = text_.find(kPort, line);
  if (at == std::string::npos) throw std::runtime_error("not ready: " + text_);
  return static_cast<uint16_t>(std::stoi(text_.substr(at + kPort.size())));
}

int Process::wait() {
  while (fill()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  // Reads what arrived after the patience ran out. Does not block: other processes may hold the
  // pipe open.
  fcntl(output_, F_SETFL, O_NONBLOCK);
  while (fill(0)) {
  }
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *status_;
}

bool Process::fill(int patience_ms) {
  std::array<char, 4096> buffer;
  pollfd readable{.fd = output_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, patience_ms) <= 0) return false;
  const ssize_t count = read(output_, buffer.data(), buffer.size());
  if (count > 0) text_.append(buffer.data(), static_cast<size_t>(count));
  return count > 0;
}

}  // namespace rbee::testing
