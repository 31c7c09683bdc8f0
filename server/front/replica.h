#pragma once
// A worker's process that is kept alive: started, watched, restarted after a growing pause, and
// given up after too many ends in a row. That of a model on demand runs from load() to unload(), or
// until it ends. Internal to server/front: used on the io_context's thread.

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "server/front/child.h"
#include "server/front/config.h"
#include "server/front/upstream.h"

namespace rbee::server {

enum class ReplicaState : uint8_t {
  unloaded,  // of a model on demand: it has no process
  starting,  // its process loads the model, or serves nothing now
  ready,
  ending,    // unload() or someone other than the front stops its process: it accepts nothing new
  paused,    // its process ended; a restart follows
  given_up,  // no restart follows
};
std::string_view state_name(ReplicaState state);

struct ReplicaOptions {
  std::string name;                      // e.g. "chat-0"
  std::vector<std::string> command;      // of the worker; id, host and port are added
  std::vector<std::string> environment;  // of the worker, with its token
  std::string token;                     // the token that the worker requires
  bool on_demand = false;                // it has a process only while its model is wanted
};

class Replica : public std::enable_shared_from_this<Replica> {
 public:
  // config must outlive it. on_change: called after each change of state().
  Replica(boost::asio::io_context& io, const FrontConfig& config, ReplicaOptions options,
          std::function<void()> on_change);

  // Does nothing for a model on demand.
  void start();
  // For a model on demand that is unloaded.
  void load();
  // For a model on demand: SIGTERM, and after `patience` SIGKILL; then it is unloaded.
  void unload(std::chrono::milliseconds patience);
  // For good: SIGTERM, and after `patience` SIGKILL; on_change follows when the process has ended.
  void stop(std::chrono::milliseconds patience);
  // It has answered that it serves nothing now: it gets no requests until its health is well.
  void doubt();

  const std::string& name() const { return options_.name; }
  const std::string& token() const { return options_.token; }
  ReplicaState state() const { return state_; }
  // Whether its port is open.
  bool answers() const { return state_ == ReplicaState::ready || state_ == ReplicaState::ending; }
  bool running() const { return child_ != nullptr; }
  // What its next process runs.
  void set_command(std::vector<std::string> command) { options_.command = std::move(command); }
  uint16_t port() const { return port_; }
  // Limit of a request's body, as its last process reported it; 0 before.
  size_t max_body_bytes() const { return max_body_bytes_; }
  pid_t pid() const { return child_ ? child_->pid() : 0; }
  int restarts() const { return restarts_; }
  int runs() const { return runs_; }  // processes that were started
  // Loads of a model on demand that ended before it was ready.
  int failures() const { return failures_; }
  // How far its process is that loads the model, as a worker's /health tells it; null: unknown.
  const nlohmann::json& progress() const { return progress_; }
  // When its last process last got further: load() was called, it told of more progress, or it was
  // ready.
  std::chrono::steady_clock::time_point further_at() const { return further_at_; }
  // What its last process reported about its model; null before.
  const nlohmann::json& facts() const { return facts_; }
  // Why its last process ended; empty before.
  const std::string& problem() const { return problem_; }

  int busy = 0;  // requests that it works on; the sender keeps this count

 private:
  void run();
  void on_line(std::string_view line);
  void on_listening(const nlohmann::json& record);
  void on_ready(const nlohmann::json& record);
  void on_exit(int status);
  void after(std::chrono::milliseconds pause, void (Replica::*step)());
  void stand();
  bool is_asked() const;  // for its health: it has said that it is ready, and has not ended
  void check_health();
  void on_health(bool healthy);
  void on_progress(const nlohmann::json& health);
  void on_unloaded();
  void kill_now();
  void change(ReplicaState state);

  boost::asio::io_context& io_;
  const FrontConfig& config_;
  ReplicaOptions options_;
  const std::function<void()> on_change_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer health_timer_;
  std::shared_ptr<Child> child_;
  std::shared_ptr<Upstream> probe_;
  ReplicaState state_ = ReplicaState::paused;
  std::chrono::steady_clock::time_point ready_at_;
  std::chrono::steady_clock::time_point further_at_;
  nlohmann::json facts_;
  nlohmann::json progress_;
  int answer_status_ = 0;  // of probe_
  std::string answer_;     // to probe_
  std::string problem_;
  std::string last_line_;
  uint16_t port_ = 0;
  size_t max_body_bytes_ = 0;
  int restarts_ = 0;  // in all
  int in_a_row_ = 0;  // ends since it last served for long
  int runs_ = 0;
  int failures_ = 0;
  int silent_ = 0;           // unanswered probes in a row
  bool said_ready_ = false;  // its process
  bool was_ready_ = false;   // its process, in state()
  bool unloading_ = false;   // unload() was called for its process
  bool stopping_ = false;
};

}  // namespace rbee::server
