#pragma once
// All workers of the front, and the requests on their way to them. Internal to server/front: used
// on the io_context's thread.
//
// A request goes to the ready worker of its model with the fewest running requests. If the worker
// ends before the answer is whole, or before a stream's first event with model output, the request
// goes to another worker, or to the same one when it is back. If model output has already been
// sent, the stream breaks off. Without a ready worker the request waits. A request that goes on
// from a stored response goes to the worker that holds it; if none does, any worker says so.

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/front/exchange.h"
#include "server/front/metrics.h"
#include "server/http/error_form.h"

namespace rbee::server {

class Pool {
 public:
  // environment: of the workers, without a token.
  Pool(boost::asio::io_context& io, const FrontConfig& config,
       std::vector<std::string> environment);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void start();
  // Sends SIGTERM to all, SIGKILL after `patience`; calls `done` when all have ended.
  void stop(std::chrono::milliseconds patience, std::function<void()> done);
  // Finds the worker for the request and sends it.
  void begin(const std::shared_ptr<Exchange>& exchange);
  // A mailbox's callback for a client that leaves; from any thread.
  std::function<void()> leaver(const std::shared_ptr<Exchange>& exchange);
  // The client has left.
  void leave(const std::shared_ptr<Exchange>& exchange);
  // The largest body that some worker accepts for such a request; nothing if there is no model of
  // this kind, or one has not reported its limit yet. From any thread.
  std::optional<size_t> max_body_bytes(const std::optional<ModelKind>& kind) const;
  // Some job's stream is unread and may still be read.
  bool has_unread_jobs() const;
  // Ends all running and waiting requests with 503.
  void abandon_all();

  // A worker's answer, as far as it came in time.
  struct WorkerReply {
    size_t member;   // index in members()
    int status = 0;  // 0: none
    bool whole = false;
    std::string text = {};
  };
  // GETs this path from each ready worker.
  void gather(const std::string& path, std::function<void(std::vector<WorkerReply>)> done);
  FrontCounts counts() const;
  struct Member {
    size_t model;
    std::shared_ptr<Replica> replica;
  };
  const std::vector<Member>& members() const { return members_; }

 private:
  using Held = std::shared_ptr<Exchange>;

  std::optional<size_t> find_model(const Wanted& wanted) const;
  std::optional<size_t> find_ollama(const std::string& name) const;
  std::optional<size_t> first_of_kind(const Wanted& wanted) const;
  std::optional<bool> ranks(size_t model) const;
  const Member* holder_of(const std::string& response) const;
  void place(const Held& exchange);
  std::shared_ptr<Replica> choose(size_t model) const;
  bool hopeless(const Exchange& exchange) const;
  void send(const Held& exchange, const std::shared_ptr<Replica>& replica);
  void on_data(const Held& exchange, const std::string& data);
  void on_event(const Held& exchange, std::string_view event);
  void on_end(const Held& exchange, UpstreamEnd end);
  void on_broken(const Held& exchange, UpstreamEnd end);
  void try_again(const Held& exchange);
  void too_large(const Held& exchange);
  void open_events(const Held& exchange);
  void begin_events(const Held& exchange);
  void break_off(const Held& exchange, const ErrorText& error);
  void note_job(const std::string& body, const std::shared_ptr<Replica>& replica);
  void wait(const Held& exchange);
  void refuse(const Held& exchange, int status, const ErrorText& error);
  void answer(const Held& exchange, Response response);
  void finish(const Held& exchange);
  void release(Exchange& exchange);
  void place_waiting();
  void tick();
  void on_change();

  boost::asio::io_context& io_;
  const FrontConfig& config_;
  std::vector<Member> members_;
  std::vector<std::atomic<size_t>> max_bodies_;  // by model; 0: unknown
  std::set<Held> running_;
  std::list<Held> waiting_;
  boost::asio::steady_timer timer_;  // for waiting requests
  bool ticking_ = false;
  bool abandoned_ = false;
  struct JobPlace {
    std::weak_ptr<Replica> replica;
    int run = 0;  // restarts() at that time: a job is lost with its process
    std::chrono::steady_clock::time_point made;
    bool asked = false;  // a client read its stream, or cancelled it
  };
  std::unordered_map<std::string, JobPlace> jobs_;
  std::deque<std::string> job_order_;  // oldest first
  mutable size_t turn_ = 0;            // among workers that are equally busy
  FrontCounts counts_;
  std::function<void()> stopped_;
};

}  // namespace rbee::server
