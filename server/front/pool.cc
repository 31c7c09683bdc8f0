#include "server/front/pool.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/log.h"
#include "server/front/event.h"
#include "server/front/ollama_lists.h"
#include "server/http/error_form.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTick{50};
constexpr milliseconds kGatherPatience{2000};
constexpr size_t kMostName = 4096;                 // bytes of a model's name
constexpr size_t kMostJobs = 10'000;               // the pool remembers their workers
constexpr std::chrono::seconds kJobPatience{300};  // workers give up a job that nobody read
constexpr ErrorText kLost{.code = "WORKER_LOST",
                          .message = "The model's worker ended while it answered this request"};

// Every user of this machine can reach the workers' ports; only the front knows the token.
std::vector<std::string> with_token(std::vector<std::string> environment,
                                    const std::string& token) {
  environment.push_back("LLORCH_API_TOKEN=" + token);
  return environment;
}

}  // namespace

Pool::Pool(boost::asio::io_context& io, const FrontConfig& config, FrontHooks hooks,
           std::vector<std::string> environment)
    : io_(io),
      config_(config),
      hooks_(std::move(hooks)),
      token_(uuid4()),
      environment_(with_token(std::move(environment), token_)),
      finder_(io, hooks_.find_model, hooks_.list_models),
      listed_at_(steady_clock::now()),
      timer_(io),
      idle_timer_(io) {
  for (const ServedModel& model : config.models) add(model);
}

void Pool::start() {
  for (const Member& member : members_) member.replica->start();
}

void Pool::stop(milliseconds patience, std::function<void()> done) {
  stopped_ = std::move(done);
  for (const Member& member : members_) member.replica->stop(patience);
  on_change();
}

void Pool::on_change() {
  const bool all_over = std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return !member.replica->running();
  });
  if (stopped_ && all_over) std::exchange(stopped_, nullptr)();
  note_kinds();
  note_limits();
  end_drops();
  // Posted, because a worker's state may change within a call that walks the waiting requests.
  asio::post(io_, [this] {
    place_waiting();
    unload_idle();
    forget_idle();
  });
}

void Pool::begin(const Held& exchange) {
  if (exchange->over) return;
  running_.insert(exchange);
  if (abandoned_) {
    return refuse(exchange, 503, {"STOPPING", "The server is stopping"});
  }
  exchange->deadline = steady_clock::now() + config_.wait;
  exchange->wanted.job.empty() ? begin_model(exchange) : begin_job(exchange);
}

void Pool::begin_job(const Held& exchange) {
  const std::string& id = exchange->wanted.job;
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) {
    const JobPlace& job = found->second;
    exchange->replica = job.replica.lock();
    found->second.asked = true;
  }
  if (!exchange->replica || exchange->replica->state() == ReplicaState::unloaded) {
    const std::string message = cat("Job ", id, " not found");
    if (exchange->wanted.operation != Operation::stream_job) {
      return refuse(exchange, 404, {"NOT_FOUND", message});
    }
    ++counts_.refused;
    return answer(exchange, text_response(404, message));  // in the workers' words
  }
  for (const Member& member : members_) {
    if (member.replica == exchange->replica) use(exchange, member.model);
  }
  place(exchange);
}

void Pool::begin_model(const Held& exchange) {
  const Wanted& wanted = exchange->wanted;
  const Member* holder = holder_of(wanted.response);
  if (holder != nullptr && wanted.model.empty()) return take(exchange, holder->model);
  std::optional<size_t> model = find_model(wanted);
  while (model && !models_[*model].served.record.empty() && !is_current(models_[*model])) {
    let_go(models_[*model]);  // this front or another one changed its record
    model = find_model(wanted);
  }
  if (model && holder != nullptr && *model != holder->model) {
    const bool talk = !wanted.conversation.empty();
    const std::string message = cat(
        "The ", talk ? "conversation" : "previous response", " is held by a worker of the model '",
        models_[holder->model].served.name, "': name that model, or send the whole chat");
    return refuse(exchange, 400,
                  talk ? ErrorText{"INVALID_REQUEST", message, "conversation"}
                       : ErrorText{"previous_response_not_found", message, "previous_response_id"});
  }
  if (model) return take(exchange, *model);
  if (wanted.model.size() > kMostName) {  // not to repeat it
    return refuse(
        exchange, 400,
        {"INVALID_REQUEST", cat("model: must have at most ", kMostName, " bytes"), "model"});
  }
  if (wanted.invalid == "model") {
    return refuse(exchange, 400, {"INVALID_REQUEST", cat("model: ", wanted.why_invalid), "model"});
  }
  if (!wanted.model.empty() && hooks_.find_model) return look_for(exchange, wanted.model);
  if (!wanted.model.empty()) {
    return refuse(exchange, 404, {"model_not_found", no_such_model(wanted), "model"});
  }
  if (!hooks_.list_models) {
    return refuse(exchange, 404,
                  {"model_not_found", "No model of this kind is served here", "model"});
  }
  if (std::exchange(exchange->listed, true)) {
    return refuse(exchange, 404,
                  {"model_not_found",
                   "The hub's cache holds no model of this kind: rbee pull hf:org/repo fetches one",
                   "model"});
  }
  refresh([this, exchange] {
    if (!exchange->over) begin_model(exchange);
  });
}

void Pool::take(const Held& exchange, size_t model) {
  const ServedModel& served = models_[model].served;
  const Replica* replica = on_demand(model);
  const bool loads = replica != nullptr && replica->state() != ReplicaState::ready;
  if (answered_early(exchange, served, loads)) return;
  if (exchange->wanted.only_unloads && replica != nullptr) return unload(exchange, model);
  const bool of_hub = !served.files.empty() && hooks_.find_model;
  if (of_hub && replica->state() == ReplicaState::unloaded) {
    return look_for(exchange, known_name(models_[model], exchange->wanted.model));
  }
  if (of_hub) refresh([] {});  // another process may have deleted its files
  enter(exchange, model);
}

void Pool::enter(const Held& exchange, size_t model) {
  use(exchange, model);
  place(exchange);
}

// The ready worker that this response's id names; null: none, or its process has ended since.
const Pool::Member* Pool::holder_of(const std::string& response) const {
  if (response.empty()) return nullptr;
  const auto holds = [&](const Member& member) {
    const auto& facts = member.replica->facts();
    if (member.replica->state() != ReplicaState::ready || !facts.is_object()) return false;
    const auto prefix = facts.find("response_prefix");
    return prefix != facts.end() && prefix->is_string() &&
           response.starts_with(prefix->get_ref<const std::string&>());
  };
  const auto found = std::ranges::find_if(members_, holds);
  return found == members_.end() ? nullptr : &*found;
}

// A ready worker for the request, which is sent to it; null: there is none.
std::shared_ptr<Replica> Pool::choose(const Exchange& exchange) {
  const std::vector<uint64_t>& prefixes = exchange.wanted.prefixes;
  const bool aware = config_.routing == RoutingPolicy::prefix_aware;
  std::vector<Member*> ready;
  std::vector<PrefixCandidate> candidates;
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[(i + turn_) % members_.size()];
    if (member.model != exchange.model || member.replica->state() != ReplicaState::ready) continue;
    if (std::exchange(member.run, member.replica->runs()) != member.run) member.prefixes.clear();
    ready.push_back(&member);
    candidates.push_back(
        {.busy = member.replica->busy, .matched = aware ? member.prefixes.match(prefixes) : 0});
  }
  ++turn_;
  if (ready.empty()) return nullptr;
  const size_t best = choose_by_prefix(candidates, prefixes.size());
  if (ready.size() > 1 && candidates[best].matched > 0) ++counts_.matched;
  if (aware) ready[best]->prefixes.note(prefixes);
  return ready[best]->replica;
}

// Whether no worker will ever take the request.
bool Pool::hopeless(const Exchange& exchange) const {
  return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
    const bool bound = !exchange.wanted.job.empty();
    const bool may = bound ? member.replica == exchange.replica : member.model == exchange.model;
    const ReplicaState state = member.replica->state();
    return !may || state == ReplicaState::given_up || (bound && state == ReplicaState::unloaded);
  });
}

void Pool::place(const Held& exchange) {
  if (exchange->model && models_[*exchange->model].gone) {
    if (look_again(exchange)) return;
    return refuse(exchange, 404, {"model_not_found", no_such_model(exchange->wanted), "model"});
  }
  if (hopeless(*exchange)) {
    return refuse(exchange, 503,
                  {"MODEL_UNAVAILABLE", "The model's workers cannot be started; the log says why"});
  }
  const bool bound = !exchange->wanted.job.empty();
  if (Replica* only = bound ? nullptr : on_demand(*exchange->model)) {
    return place_on_demand(exchange, *only);
  }
  const Member* holder = holder_of(exchange->wanted.response);
  const std::shared_ptr<Replica> replica = bound               ? exchange->replica
                                           : holder != nullptr ? holder->replica
                                                               : choose(*exchange);
  const bool takes =
      replica && (bound ? replica->answers() : replica->state() == ReplicaState::ready);
  takes ? send(exchange, replica) : wait(exchange);
}

void Pool::wait(const Held& exchange) {
  if (waiting_.size() >= static_cast<size_t>(config_.max_waiting)) {
    return refuse(exchange, 429, {"OVERLOADED", "Too many requests wait for a worker"});
  }
  waiting_.push_back(exchange);
  tick();
}

// Places waiting requests, and repeats while any wait.
void Pool::tick() {
  if (ticking_) return;
  ticking_ = true;
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    ticking_ = false;
    if (!error) place_waiting();
  });
}

void Pool::place_waiting() {
  for (Model& model : models_) model.leaving = false;
  asked_.clear();
  const std::list<Held> waiting = std::exchange(waiting_, {});
  placing_ = true;
  for (const Held& exchange : waiting) {
    if (exchange->over) continue;
    steady_clock::now() < deadline_of(*exchange) ? place(exchange) : give_up_waiting(exchange);
  }
  placing_ = false;
}

void Pool::send(const Held& exchange, const std::shared_ptr<Replica>& replica) {
  exchange->replica = replica;
  ++replica->busy;
  exchange->head = {};
  exchange->body.clear();
  exchange->opening.clear();
  exchange->upstream = start_upstream(
      io_, {.port = replica->port(),
            .head = upstream_head(*exchange, *replica),
            .body = exchange->request.body,  // the callbacks below keep it
            .head_only = upstream_method(*exchange) == "HEAD",
            .on_head = [exchange](UpstreamHead head) { exchange->head = std::move(head); },
            .on_data = [this, exchange](const std::string& data) { on_data(exchange, data); },
            .on_end = [this, exchange](UpstreamEnd end) { on_end(exchange, end); }});
}

void Pool::on_data(const Held& exchange, const std::string& data) {
  exchange->body += data;
  const std::optional<StreamForm> form = exchange->stream();
  if (!form) {
    if (exchange->body.size() > static_cast<size_t>(config_.max_answer_bytes)) too_large(exchange);
    return;
  }
  // Passes on whole events only, because the connection may put comments between them.
  const std::string_view mark = end_of_event(*form);
  while (exchange->upstream) {
    const size_t end = exchange->begun ? exchange->body.rfind(mark) : exchange->body.find(mark);
    if (end == std::string::npos) return;
    const std::string events = exchange->body.substr(0, end + mark.size());
    exchange->body.erase(0, events.size());
    exchange->begun ? exchange->events->push_text(events) : on_event(exchange, events);
  }
}

// For a stream that has not begun.
void Pool::on_event(const Held& exchange, std::string_view event) {
  const EventKind kind = exchange->wanted.job.empty() ? kind_of_event(event, *exchange->stream())
                                                      : EventKind::substance;
  if (kind == EventKind::comment) {
    if (!exchange->events) open_events(exchange);
    return exchange->events->push_text(event);
  }
  if (kind == EventKind::unserved && exchange->tries + 1 < config_.max_tries) {
    ++exchange->tries;
    const std::shared_ptr<Replica> replica = exchange->replica;
    release(*exchange);
    if (replica) replica->doubt();
    return try_again(exchange);
  }
  exchange->opening += event;
  if (kind != EventKind::opening) begin_events(exchange);
}

// Opens the client's stream; no part of the answer is in it yet.
void Pool::open_events(const Held& exchange) {
  exchange->events = std::make_shared<EventQueue>(leaver(exchange));
  exchange->events->set_form(*exchange->stream());
  Response response = response_of(exchange->head);
  response.events = exchange->events;
  exchange->later->set(std::move(response));
}

void Pool::begin_events(const Held& exchange) {
  if (!exchange->events) open_events(exchange);
  exchange->begun = true;
  exchange->events->push_text(std::exchange(exchange->opening, {}));
}

void Pool::break_off(const Held& exchange, const ErrorText& error) {
  ++counts_.broken;
  exchange->events->push_text(
      error_event(exchange->request, exchange->wanted, exchange->events->form(), error));
  exchange->events->fail();
  finish(exchange);
}

void Pool::too_large(const Held& exchange) {
  release(*exchange);
  refuse(exchange, 502,
         {"ANSWER_TOO_LARGE",
          cat("The worker's answer has more than ", config_.max_answer_bytes, " bytes")});
}

std::function<void()> Pool::leaver(const Held& exchange) {
  return [this, weak = std::weak_ptr(exchange)] {
    asio::post(io_, [this, weak] {
      if (const Held held = weak.lock()) leave(held);
    });
  };
}

void Pool::on_end(const Held& exchange, UpstreamEnd end) {
  const std::shared_ptr<Replica> replica = exchange->replica;
  release(*exchange);
  if (end != UpstreamEnd::whole) return on_broken(exchange, end);
  // The worker is stopping or has lost its device: another one may take the request.
  const bool refused = exchange->head.status == 503 && exchange->wanted.job.empty();
  if (refused) replica->doubt();
  if (refused && ++exchange->tries < config_.max_tries) return try_again(exchange);
  // Its client waits for events.
  if (exchange->events && !exchange->stream()) return break_off(exchange, kLost);
  ++counts_.answered;
  if (exchange->stream()) {
    if (!exchange->begun) begin_events(exchange);
    exchange->events->push_text(exchange->body);
    exchange->events->close();
    return finish(exchange);
  }
  if (exchange->wanted.operation == Operation::create_job) note_job(exchange->body, replica);
  Response response = response_of(exchange->head);
  response.body = std::move(exchange->body);
  const bool shows = exchange->wanted.operation == Operation::ollama_show && response.status == 200;
  const int64_t modified = exchange->model ? models_[*exchange->model].served.modified : 0;
  if (shows && modified > 0) response.body = shown_with_time(response.body, modified);
  if (shows && exchange->record) response.body = shown_of_record(*exchange->record, response.body);
  answer(exchange, std::move(response));
}

void Pool::on_broken(const Held& exchange, UpstreamEnd end) {
  if (exchange->begun) return break_off(exchange, kLost);
  if (end == UpstreamEnd::broken) ++exchange->tries;
  if (exchange->tries < config_.max_tries) return try_again(exchange);
  refuse(exchange, 502,
         {"WORKER_LOST", cat("The model's worker ended while it worked on this request, ",
                             exchange->tries, " times")});
}

void Pool::try_again(const Held& exchange) {
  ++counts_.retries;
  wait(exchange);
}

void Pool::note_job(const std::string& text, const std::shared_ptr<Replica>& replica) {
  const json body = json::parse(text, nullptr, false);
  if (!body.is_object() || !body.contains("job_id") || !body["job_id"].is_string()) return;
  const auto& id = body["job_id"].get_ref<const std::string&>();
  jobs_[id] = {.replica = replica, .run = replica->runs(), .made = steady_clock::now()};
  job_order_.push_back(id);
  if (job_order_.size() <= kMostJobs) return;
  jobs_.erase(job_order_.front());
  job_order_.pop_front();
}

bool Pool::has_unread_jobs(const Replica* of) const {
  const auto oldest = steady_clock::now() - kJobPatience;
  return std::ranges::any_of(jobs_, [&](const auto& entry) {
    const JobPlace& job = entry.second;
    const std::shared_ptr<Replica> replica = job.replica.lock();
    return !job.asked && job.made > oldest && replica && replica->answers() &&
           replica->runs() == job.run && (of == nullptr || of == replica.get());
  });
}

void Pool::refuse(const Held& exchange, int status, const ErrorText& error) {
  if (exchange->events) return break_off(exchange, error);
  ++counts_.refused;
  Response response = error_response(exchange->request, status, error);
  if (status == 429) response.headers.emplace_back("Retry-After", "1");
  answer(exchange, std::move(response));
}

void Pool::answer(const Held& exchange, Response response) {
  exchange->later->set(std::move(response));
  finish(exchange);
}

void Pool::finish(const Held& exchange) {
  if (std::exchange(exchange->over, true)) return;
  if (exchange->looked_for) finder_.leave(*exchange->looked_for);
  if (exchange->model) {
    Model& model = models_[*exchange->model];
    --model.users;
    model.used = steady_clock::now();
    const bool served = exchange->head.status >= 200 && exchange->head.status < 300;
    if (exchange->wanted.keep_alive && served && !model.gone)
      model.keep_alive = *exchange->wanted.keep_alive;
    if (model.served.on_demand()) unload_idle();
    forget_idle();
  }
  running_.erase(exchange);
}

// Frees the request's worker.
void Pool::release(Exchange& exchange) {
  if (!exchange.upstream) return;
  exchange.upstream->cancel();
  exchange.upstream.reset();
  --exchange.replica->busy;
  if (exchange.wanted.job.empty()) exchange.replica.reset();
}

void Pool::leave(const Held& exchange) {
  if (exchange->over) return;
  ++counts_.left;
  release(*exchange);
  finish(exchange);
}

void Pool::abandon_all() {
  abandoned_ = true;
  const std::set<Held> running = running_;
  for (const Held& exchange : running) {
    release(*exchange);
    refuse(exchange, 503, {"STOPPING", "The server is stopping"});
  }
  waiting_.clear();
}

FrontCounts Pool::counts() const {
  FrontCounts counts = counts_;
  counts.running = static_cast<int64_t>(running_.size());
  counts.waiting = static_cast<int64_t>(waiting_.size());
  return counts;
}

namespace {

// Collects all workers' answers to one request.
struct Gather {
  explicit Gather(asio::io_context& io) : timer(io) {}
  std::vector<Pool::WorkerReply> replies;
  std::vector<std::shared_ptr<Upstream>> open;
  size_t missing = 0;
  asio::steady_timer timer;
  std::function<void(std::vector<Pool::WorkerReply>)> done;

  void end() {
    if (!done) return;
    for (const auto& upstream : open) upstream->cancel();
    open.clear();  // they hold a pointer to this
    timer.cancel();
    std::exchange(done, nullptr)(std::move(replies));
  }
};

}  // namespace

void Pool::gather(const std::string& path, std::function<void(std::vector<WorkerReply>)> done) {
  const auto gather = std::make_shared<Gather>(io_);
  gather->done = std::move(done);
  for (size_t i = 0; i < members_.size(); ++i) {
    const Replica& replica = *members_[i].replica;
    if (replica.state() != ReplicaState::ready) continue;
    const size_t at = gather->replies.size();
    gather->replies.push_back({.member = i});
    ++gather->missing;
    gather->open.push_back(start_upstream(
        io_,
        {.port = replica.port(),
         .head = cat("GET ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n",
                     "Authorization: Bearer ", replica.token(), "\r\n\r\n"),
         .on_head = [gather,
                     at](const UpstreamHead& head) { gather->replies[at].status = head.status; },
         .on_data = [gather, at](const std::string& data) { gather->replies[at].text += data; },
         .on_end =
             [gather, at](UpstreamEnd end) {
               gather->replies[at].whole = end == UpstreamEnd::whole;
               if (--gather->missing == 0) gather->end();
             }}));
  }
  if (gather->missing == 0) return gather->end();
  gather->timer.expires_after(kGatherPatience);
  gather->timer.async_wait([gather](const boost::system::error_code& error) {
    if (!error) gather->end();
  });
}

}  // namespace rbee::server
