#pragma once
// A child process: its output and its end. Internal to server/front.

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
  // Both run on the io_context's thread. A line comes without its end.
  std::function<void(std::string_view line)> on_line;
  // Called once, after the last line. status: 128 + number if a signal ended it.
  std::function<void(int status)> on_exit;
};

// If the thread that started it ends, the process gets SIGKILL.
class Child : public std::enable_shared_from_this<Child> {
 public:
  // Throws io. A program that cannot be run ends with status 127.
  static std::shared_ptr<Child> start(boost::asio::io_context& io, ChildOptions options);
  ~Child();  // kills it if it still runs, and waits for its end
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // No callback is called any more.
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
  boost::asio::posix::stream_descriptor process_;  // readable when the process has ended
  std::array<char, 4096> buffer_;
  std::string text_;  // of an unfinished line
  bool ended_ = false;
};

}  // namespace rbee::server
