#pragma once
// All workers of the front, and the requests on their way to them. Internal to server/front: used
// on the io_context's thread.
//
// A request goes to the ready worker of its model with the fewest running requests, or to a busier
// one that had more of its prompt's beginning (prefix.h). If the worker ends before the answer is
// whole, or before a stream's first event with model output, the request goes to another worker, or
// to the same one when it is back. If model output has already been
// sent, the stream breaks off. Without a ready worker the request waits. A request that goes on
// from a stored response goes to the worker that holds it; if none does, any worker says so.
//
// A model on demand is loaded for the first request that waits for it, if it fits into the memory
// of its device (room.h). If it does not, other models on demand are unloaded: idle ones at once, a
// busy one after its requests, while new ones for it wait. Requests that wait go in the order in
// which they came, so that each model gets its turn.
//
// Models of the hub's cache change while the front runs. Before each load the name is looked up
// again. Several names of one set of files are one model. A model that the list of the cache lacks
// is gone once it is unloaded; its place, which requests know by its index, is then another one's.

#include <array>
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
#include "server/front/finder.h"
#include "server/front/metrics.h"
#include "server/front/prefix.h"
#include "server/front/room.h"
#include "server/http/error_form.h"

namespace rbee::server {

class Pool {
 public:
  // environment: of the workers, without a token. config must outlive it.
  Pool(boost::asio::io_context& io, const FrontConfig& config, FrontHooks hooks,
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
  // The request's client has left.
  void leave(const std::shared_ptr<Exchange>& exchange);
  // The largest body that some worker accepts for such a request; nothing if there is no model of
  // this kind, or one has not reported its limit yet. From any thread.
  std::optional<size_t> max_body_bytes(const std::optional<ModelKind>& kind) const;
  // Whether a job's stream is unread and may still be read. of: the job's worker; null: any.
  bool has_unread_jobs(const Replica* of = nullptr) const;
  // An object for each worker that publishes KV events, see GET /kv-events.
  nlohmann::json kv_publishers() const;
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
    PrefixIndex prefixes{};  // of its process
    int run = 0;             // runs() of that process
  };
  // Of all models, also those that are gone.
  const std::vector<Member>& members() const { return members_; }
  struct Model {
    ServedModel served;
    int users = 0;      // requests for it that are not over
    bool gone = false;  // it is no longer served; its place is free once nothing uses it
    // The rest but the last is about models of the hub's cache.
    bool listed = true;                // the configuration or the cache has it; else a request did
    std::vector<std::string> aliases;  // more names of its files
    // The rest is about models on demand.
    std::shared_ptr<Replica> replica;  // the only one; null for other models
    std::chrono::milliseconds keep_alive{0};
    std::chrono::steady_clock::time_point used;  // end of its last request
    bool leaving = false;  // gets no new requests, since another model needs its memory
  };
  const std::deque<Model>& models() const { return models_; }
  // The model that has this name: its own, an adapter's, or another one of its files. as_ollama:
  // also as Ollama's clients write names.
  std::optional<size_t> find_named(const std::string& name, bool as_ollama) const;
  // The name by which lists have the model, or its adapter, of which `written` is some name.
  static std::string listed_name(const ServedModel& model, const std::string& written);
  // Serves this model, whose files are in the cache now; a client fetched it by this name.
  void offer(const ServedModel& model, const std::string& name);
  // Models on demand of these names are not served any more; calls `done` when their workers have
  // ended.
  void drop(const std::function<bool(const std::string&)>& which, std::function<void()> done);
  // Looks for models that came or went since the last time, unless that was just now; then `done`.
  void refresh(std::function<void()> done);
  // When a model on demand will be unloaded unless it gets requests; nothing: never, or not loaded.
  std::optional<std::chrono::steady_clock::time_point> expiry(size_t model) const;

 private:
  using Held = std::shared_ptr<Exchange>;

  static std::string known_name(const Model& model, const std::string& written);
  size_t add(ServedModel model);
  std::shared_ptr<Replica> make_replica(const ServedModel& model, int index);
  void end_drops();
  void note_kinds();
  void note_limits();
  bool is_idle(size_t model) const;
  std::optional<size_t> find_if_served(const std::function<bool(const Model&)>& is_it) const;
  void replace(size_t model, ServedModel found);
  void note_alias(size_t model, const std::string& name);
  std::optional<size_t> settle(const ServedModel& found);
  bool is_current(const Model& model) const;
  void let_go(Model& model);
  bool look_again(const Held& exchange);
  void drop_deleted();
  void forget_idle();
  void on_listed(const std::vector<ServedModel>& found);
  Replica* on_demand(size_t model) const { return models_[model].replica.get(); }
  std::optional<std::string> make_room(size_t model);
  std::vector<Resident> residents(const std::string& device) const;
  bool is_quiet(size_t model) const;
  void unload_idle();
  std::chrono::steady_clock::time_point deadline_of(const Exchange& exchange) const;
  void place_on_demand(const Held& exchange, Replica& replica);
  void give_up_waiting(const Held& exchange);
  void use(const Held& exchange, size_t model);
  void begin_job(const Held& exchange);
  void begin_model(const Held& exchange);
  void take(const Held& exchange, size_t model);
  bool answered_early(const Held& exchange, const ServedModel& model, bool loads);
  void unload(const Held& exchange, size_t model);
  void enter(const Held& exchange, size_t model);
  void look_for(const Held& exchange, const std::string& name);
  void on_found(const Held& exchange, const std::string& name, const FoundModel& found);
  std::optional<size_t> find_model(const Wanted& wanted) const;
  std::optional<size_t> find_ollama(const std::string& name) const;
  std::optional<size_t> first_of_kind(const Wanted& wanted) const;
  std::optional<bool> ranks(size_t model) const;
  const Member* holder_of(const std::string& response) const;
  void place(const Held& exchange);
  std::shared_ptr<Replica> choose(const Exchange& exchange);
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
  const FrontHooks hooks_;
  const std::string token_;  // of the workers
  const std::vector<std::string> environment_;
  std::deque<Model> models_;
  std::vector<Member> members_;
  // Of each kind of model, then of all: the largest; 0: some model's is unknown, or there is none.
  std::array<std::atomic<size_t>, 4> max_bodies_{};
  std::set<Held> running_;
  std::list<Held> waiting_;
  std::set<size_t> asked_;  // models that found no room in this pass over waiting_
  Finder finder_;
  std::vector<std::function<void()>> listing_;  // wait for the list; empty: nobody asks for it
  std::chrono::steady_clock::time_point listed_at_;
  std::optional<uint64_t> listed_changes_;  // ModelStore::changes() before; none: no list yet
  boost::asio::steady_timer timer_;         // for waiting requests
  boost::asio::steady_timer idle_timer_;    // for models that nobody asks for
  bool ticking_ = false;
  bool placing_ = false;  // walks the waiting requests
  bool abandoned_ = false;
  struct JobPlace {
    std::weak_ptr<Replica> replica;
    int run = 0;  // runs() at that time: a job is lost with its process
    std::chrono::steady_clock::time_point made;
    bool asked = false;  // a client read its stream, or cancelled it
  };
  std::unordered_map<std::string, JobPlace> jobs_;
  std::deque<std::string> job_order_;  // oldest first
  size_t turn_ = 0;                    // among workers that are equally busy
  FrontCounts counts_;
  struct Drop {
    std::vector<size_t> models;
    std::function<void()> done;
  };
  std::vector<Drop> drops_;
  std::function<void()> stopped_;
};

}  // namespace rbee::server
