#pragma once
// A process of this machine that the leader has started as another rank.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rbee/core/system/process.h"
#include "rbee/group/place.h"
#include "rbee/group/rank_link.h"

namespace rbee::group {

class RankProcess {
 public:
  // program: its path; arguments: the first is the program's name. The process finds its rank and
  // its end of `link` by kLinkVariable; it has this process's standard output and error, and no
  // input. If the thread that started it ends, it gets SIGKILL. Throws io. A program that cannot be
  // run ends with status 127.
  RankProcess(const std::string& program, std::vector<std::string> arguments, int rank, int ranks,
              RankLink link);
  // The same without a link, for a rank that meets the leader; local_rank: of this machine, by
  // kLocalVariable.
  RankProcess(const std::string& program, std::vector<std::string> arguments, int local_rank);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess();  // kills it if it still runs, and waits for its end

  pid_t id() const { return id_; }
  void kill() const;     // may run beside wait()
  bool stopped() const;  // by a signal, as SIGSTOP
  // Waits for its end, at most `patience`. Nothing: it still runs.
  // Else its status, 128 + the number of the signal that ended it.
  std::optional<int> wait(std::chrono::milliseconds patience);

 private:
  void start(const std::string& program, std::vector<std::string> arguments,
             const std::string& variable, int link);

  pid_t id_ = -1;
  WatchedProcess process_;
  std::optional<int> status_;
};

// The other ranks of this process's machine, where it starts them and they meet the leader. They
// end by themselves when the group ends; those that do not within some seconds are killed.
class Neighbours {
 public:
  // None where the place does not start any. Throws io.
  Neighbours(const RankPlace& place, const std::vector<std::string>& arguments,
             const std::string& program = program_path());
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

 private:
  std::vector<RankProcess> all_;
};

}  // namespace rbee::group
