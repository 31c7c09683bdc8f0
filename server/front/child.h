#pragma once
// A child process: what it writes, and how it ends. Internal to server/front.

#include <sys/types.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::server {

struct ChildOptions {
  std::vector<std::string> command;      // path of the program, then its arguments
  std::vector<std::string> environment;  // "NAME=value"
  // Both on the io_context's thread. A line comes without its end.
  std::function<void(std::string_view line)> on_line;
  // Once, after the last line. status: 128 + number when a signal ended it.
  std::function<void(int status)> on_exit;
};

// Ends with the thread that started it, by SIGKILL.
class Child : public std::enable_shared_from_this<Child> {
 public:
  // Throws io. A program that cannot be run ends with status 127.
  static std::shared_ptr<Child> start(boost::asio::io_context& io, ChildOptions options);
  ~Child();  // kills it when it still runs, and waits for its end
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Nothing is called any more.
  void forget();

 private:
  Child(boost::asio::io_context& io, ChildOptions options);
  void read();
  void watch();
  void take_lines();
  void over();

  ChildOptions options_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  boost::asio::posix::stream_descriptor output_;
  boost::asio::posix::stream_descriptor process_;  // a pidfd: readable when the process is over
  std::array<char, 4096> buffer_;
  std::string text_;  // of a line that has not ended
  bool ended_ = false;
};

}  // namespace rbee::server
