#include "server/front/child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/system/process.h"

namespace rbee::server {
namespace {

using boost::system::error_code;

// Longer lines are cut here.
constexpr size_t kMaxLine = 64 * 1024;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void give_up(const char* call) {
  fail(Code::io, "serve", call, ": ", std::strerror(errno));
}

// After fork: only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, char* const* envp, int output, pid_t parent) {
  // A worker's clients are gone with its front anyway.
  end_with_parent(parent);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  // No sockets: the child would hold client connections open that the front has closed.
  close_descriptors_from(STDERR_FILENO + 1);
  execve(argv[0], argv, envp);
  _Exit(127);
}

}  // namespace

std::shared_ptr<Child> Child::start(boost::asio::io_context& io, ChildOptions options) {
  std::shared_ptr<Child> child(new Child(io, std::move(options)));
  child->read();
  child->watch();
  return child;
}

Child::Child(boost::asio::io_context& io, ChildOptions options)
    : options_(std::move(options)), output_(io), process_(io) {
  const std::vector<char*> argv = pointers(options_.command);
  const std::vector<char*> envp = pointers(options_.environment);
  std::array<int, 2> ends{};
  if (!open_pipe(ends)) give_up("pipe");
  output_.assign(ends[0]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(argv.data(), envp.data(), ends[1], parent);
  close(ends[1]);
  if (pid_ < 0) give_up("fork");
  WatchedProcess process(pid_);
  if (process.none()) give_up("to watch a process");
  process_.assign(process.release());
}

Child::~Child() {
  if (pid_ <= 0 || reaped_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::signal(int number) const {
  if (!reaped_) kill(pid_, number);
}

void Child::forget() {
  options_.on_line = nullptr;
  options_.on_exit = nullptr;
}

void Child::read() {
  output_.async_read_some(boost::asio::buffer(buffer_),
                          [self = shared_from_this()](const error_code& error, size_t bytes) {
                            self->text_.append(self->buffer_.data(), bytes);
                            self->take_lines();
                            if (!error) return self->read();
                            self->ended_ = true;
                            self->over();
                          });
}

void Child::take_lines() {
  size_t begin = 0;
  size_t end = 0;
  while ((end = text_.find('\n', begin)) != std::string::npos) {
    if (options_.on_line) options_.on_line(std::string_view(text_).substr(begin, end - begin));
    begin = end + 1;
  }
  text_.erase(0, begin);
  if (text_.size() > kMaxLine) text_.clear();
}

void Child::watch() {
  process_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const error_code& error) {
                        if (error) return;
                        int status = 0;
                        // A reactor may wake up spuriously.
                        if (waitpid(self->pid_, &status, WNOHANG) == 0) return self->watch();
                        self->reaped_ = true;
                        self->status_ =
                            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                        self->over();
                      });
}

// A child of the child may hold the pipe open; its further output is dropped then.
void Child::over() {
  if (!reaped_) return;
  if (!ended_) {
    // The child's output is in the pipe already, so one read without waiting takes all of it.
    output_.non_blocking(true);
    error_code error;
    while (const size_t bytes = output_.read_some(boost::asio::buffer(buffer_), error)) {
      text_.append(buffer_.data(), bytes);
    }
    take_lines();
    output_.close(error);
  }
  const auto on_exit = std::exchange(options_.on_exit, nullptr);
  options_.on_line = nullptr;
  if (on_exit) on_exit(status_);
}

}  // namespace rbee::server
