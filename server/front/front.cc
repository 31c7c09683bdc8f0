#include "server/front/front.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "rbee/core/percent_encoded.h"
#include "server/apis/ollama/models.h"
#include "server/apis/pages.h"
#include "server/front/file_routes.h"
#include "server/front/made_models.h"
#include "server/front/model_lists.h"
#include "server/front/openapi.h"
#include "server/front/page_choice.h"
#include "server/front/pool.h"
#include "server/http/cors.h"
#include "server/http/error_form.h"
#include "server/http/process_metrics.h"
#include "server/http/tracer.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
using nlohmann::json;

Response moved_to(std::string address) {
  Response out = text_response(302, {});
  out.headers = {{"Location", std::move(address)}, {"Cache-Control", "no-cache"}};
  return out;
}

// Whether no worker reads the field that is invalid, so that none would refuse it.
bool is_for_front(const Wanted& wanted) {
  const bool unread = wanted.invalid == "model" && wanted.kind == ModelKind::image;
  return unread || wanted.invalid == "keep_alive" || wanted.invalid == "name";
}

}  // namespace

class Front::Impl {
 public:
  explicit Impl(FrontOptions options)
      : options_(std::move(options)),
        pool_(io_, options_.config, options_.hooks, options_.environment),
        files_(options_.hooks,
               {.serve = [this](const auto& model, const auto& name) { serve(model, name); },
                .drop = [this](const auto& which, auto done) { drop(which, std::move(done)); }}),
        lists_(pool_, files_),
        work_(io_.get_executor()) {
    // A worker process ends when the thread that started it ends.
    thread_ = std::thread([this] {
      pool_.start();
      io_.run();
    });
  }
  // Without memory to tell the thread to stop, the process can only end.
  ~Impl() { stop(std::chrono::milliseconds(0)); }  // NOLINT(bugprone-exception-escape)

  Router routes();
  bool busy() {
    return running_ > 0 || ask<bool>([this] { return pool_.has_unread_jobs(); });
  }
  bool given_up() {
    return ask<bool>([this] {
      const auto& members = pool_.members();
      const bool all = std::ranges::all_of(members, [](const Pool::Member& member) {
        return member.replica->state() == ReplicaState::given_up;
      });
      return all && !members.empty();  // models may come by name
    });
  }
  void drain() { draining_ = true; }
  void stop(std::chrono::milliseconds patience) {
    if (!thread_.joinable()) return;
    draining_ = true;
    files_.stop();
    asio::post(io_, [this, patience] {
      pool_.abandon_all();
      pool_.stop(patience, [this] {
        work_.reset();
        io_.stop();
      });
    });
    thread_.join();
  }

 private:
  // Runs `question` on the pool's thread and returns its result.
  template <typename T>
  T ask(std::function<T()> question) {
    std::promise<T> answer;
    asio::post(io_, [&] { answer.set_value(question()); });
    return answer.get_future().get();
  }
  // Of a model whose files are here now, which a client fetched by this name.
  void serve(const ServedModel& model, const std::string& name) {
    asio::post(io_, [this, model, name] { pool_.offer(model, name); });
  }
  // Before the files of such models are deleted.
  void drop(const std::function<bool(const std::string&)>& which, std::function<void()> done) {
    asio::post(io_, [this, which, done = std::move(done)] { pool_.drop(which, done); });
  }
  // A response that the pool's thread makes.
  Response later(std::function<void(const std::shared_ptr<DelayedResponse>&)> step);
  Response listed(std::function<void(const std::shared_ptr<DelayedResponse>&)> step);
  HeadVerdict judge(const Request& head) const;
  Response pass(const Request& request);
  Response welcome(const Request& request);
  Response front_page(std::optional<ModelKind> kind) const;
  Response models(const Request& request);
  Response model(const Request& request);
  Response alive();
  Response health();
  Response kv_publishers();
  Response readiness();
  Response metrics();
  Response ollama_tags_of_all();
  Response ollama_loaded();
  void add_ollama(Router& router);
  Response openapi();
  void keep_documents(std::vector<Pool::WorkerReply> replies);
  const std::string& document();
  std::vector<const Replica*> served_workers() const;
  bool ready() const;

  const FrontOptions options_;
  asio::io_context io_{1};
  std::atomic<int64_t> running_ = 0;  // before the pool, whose requests count here until they end
  Pool pool_;
  FileRoutes files_;
  ModelLists lists_;  // on the pool's thread
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
  std::atomic<bool> draining_ = false;
  // On the pool's thread: the workers' last documents, and their union; empty: not made yet.
  std::map<ModelKind, std::string> documents_;
  std::string document_;
};

Response Front::Impl::later(std::function<void(const std::shared_ptr<DelayedResponse>&)> step) {
  Response response;
  response.later = std::make_shared<DelayedResponse>(nullptr);
  asio::post(io_, [step = std::move(step), later = response.later] { step(later); });
  return response;
}

// The same with the models that came to the hub's cache, and without those that left it.
Response Front::Impl::listed(std::function<void(const std::shared_ptr<DelayedResponse>&)> step) {
  return later([this, step = std::move(step)](const std::shared_ptr<DelayedResponse>& out) {
    pool_.refresh([step, out] { step(out); });
  });
}

// Judges the head of a request for workers; its body will name the model.
HeadVerdict Front::Impl::judge(const Request& head) const {
  const std::optional<Wanted> wanted = wanted_by(head);
  if (!wanted) {
    return {.refusal = error_response(head, 404, {"NOT_FOUND", "There is no such path"})};
  }
  const bool may_load = std::ranges::any_of(options_.config.models, &ServedModel::on_demand) ||
                        options_.hooks.find_model;
  const bool reads = !worker_changes(head.method, head.path);
  if (may_load && reads && is_of_another_site(head, options_.cors_origins)) {
    return {.refusal = error_response(head, 403,
                                      {"FORBIDDEN_ORIGIN",
                                       "A web page of another origin asks for what may load a "
                                       "model; --cors-origin allows such"})};
  }
  return {.max_body_bytes = pool_.max_body_bytes(wanted->kind)};
}

// Whoever has no key, or only looks, loads no model: the page of one on demand is answered here.
// A browser gets the front's own page at once, also while workers start. Of a model whose name the
// address writes in another way it is told that name: pages look it up in the list.
Response Front::Impl::welcome(const Request& request) {
  if (accepts(request, "text/html")) {
    const std::string name = query_value(request.query, "model");
    return listed([this, name, made = files_.find_record(name)](const auto& out) {
      const PageChoice page = choose_page(pool_, name, made);
      if (page.name.empty() || page.name == name) return out->set(front_page(page.kind));
      out->set(moved_to(cat("/?model=", percent_encoded(page.name, false))));
    });
  }
  const std::vector<ServedModel>& fixed = options_.config.models;
  const std::string name = query_value(request.query, "model");
  auto named = std::ranges::find(fixed, name, &ServedModel::name);
  if (named == fixed.end() && !fixed.empty()) named = fixed.begin();
  const bool of_worker = named != fixed.end() && !named->on_demand() && !options_.hooks.find_model;
  return of_worker ? pass(request) : front_page(std::nullopt);
}

// Without a kind, for programs: where to find what.
Response Front::Impl::front_page(std::optional<ModelKind> kind) const {
  if (kind == ModelKind::chat) return chat_page();
  if (kind == ModelKind::image) return image_page();
  return json_response(200, json{{"name", "rbee serve"},
                                 {"version", options_.version},
                                 {"links", {"/health", "/workers", "/v1/models"}}}
                                .dump());
}

Response Front::Impl::pass(const Request& request) {
  // Not on the pool's thread, because the body may be large. judge() has checked the path.
  Wanted wanted = wanted_by(request).value();
  const bool of_job = !wanted.job.empty();  // reads or cancels an earlier request's job
  if (draining_ && !of_job) {
    return error_response(request, 503, {"STOPPING", "The server is stopping"});
  }
  if (is_for_front(wanted)) {
    return error_response(
        request, 400,
        {"INVALID_REQUEST", cat(wanted.invalid, ": ", wanted.why_invalid), wanted.invalid});
  }
  ++running_;
  // The request counts while this lives.
  const std::shared_ptr<Exchange> exchange(new Exchange, [this](Exchange* over) {
    delete over;
    --running_;
  });
  exchange->request = request;
  exchange->wanted = std::move(wanted);
  std::optional<Response> refusal =
      use_record(*exchange, files_.find_record(exchange->wanted.model));
  if (refusal) return std::move(*refusal);
  Response response;
  response.later = exchange->later = std::make_shared<DelayedResponse>(pool_.leaver(exchange));
  asio::post(io_, [this, exchange] { pool_.begin(exchange); });
  return response;
}

// models() and model() answer like workers.
Response Front::Impl::models(const Request& request) {
  return listed([this, anthropic = is_anthropics(request)](const auto& out) {
    out->set(json_response(200, lists_.models(anthropic).dump()));
  });
}

Response Front::Impl::model(const Request& request) {
  return listed([this, request](const auto& out) {
    const std::string id(request.param("id"));
    const std::optional<json> entry = lists_.model(id, is_anthropics(request));
    if (entry) return out->set(json_response(200, entry->dump()));
    out->set(error_response(request, 404, {"model_not_found", no_such_model(id), "model"}));
  });
}

// Needs no key: says that the front is alive, and lists the served models for its page.
Response Front::Impl::alive() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    pool_.refresh([] {});  // whoever asks again sees what came; a probe does not wait for that
    const json models = lists_.names();
    const bool pull = options_.hooks.may_pull && options_.hooks.files != nullptr;
    const json body = {{"status", "healthy"}, {"models", models}, {"pull", pull}};
    out->set(json_response(200, body.dump()));
  });
}

// On the pool's thread. Whether every model has a ready worker, or gets one on demand.
bool Front::Impl::ready() const {
  std::vector<bool> served;
  for (const Pool::Model& model : pool_.models()) served.push_back(model.served.on_demand());
  for (const Pool::Member& member : pool_.members()) {
    if (member.replica->state() == ReplicaState::ready) served[member.model] = true;
  }
  return !draining_ && std::all_of(served.begin(), served.end(), [](bool one) { return one; });
}

// On the pool's thread. Without those of models that are gone.
std::vector<const Replica*> Front::Impl::served_workers() const {
  std::vector<const Replica*> out;
  for (const Pool::Member& member : pool_.members()) {
    if (!pool_.models()[member.model].gone) out.push_back(member.replica.get());
  }
  return out;
}

Response Front::Impl::health() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    const json body = {{"status", ready() ? "healthy" : "degraded"},
                       {"version", options_.version},
                       {"models", lists_.workers()}};
    out->set(json_response(200, body.dump()));
  });
}

Response Front::Impl::kv_publishers() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    out->set(json_response(200, json{{"publishers", pool_.kv_publishers()}}.dump()));
  });
}

Response Front::Impl::readiness() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    const bool all = ready();
    out->set(json_response(all ? 200 : 503, json{{"ready", all}}.dump()));
  });
}

Response Front::Impl::metrics() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    pool_.gather("/metrics", [this, out](std::vector<Pool::WorkerReply> replies) {
      std::vector<std::pair<std::string, std::string>> texts;
      texts.reserve(replies.size());
      for (Pool::WorkerReply& one : replies) {
        texts.emplace_back(pool_.members()[one.member].replica->name(), std::move(one.text));
      }
      // Families of metrics that the workers have too.
      texts.emplace_back("front", process_metrics() + trace_metrics(options_.tracer));
      Response response = text_response(
          200, front_metrics(pool_.counts(), served_workers()) + merge_metrics(texts));
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      out->set(std::move(response));
    });
  });
}

Response Front::Impl::ollama_tags_of_all() {
  return listed([this](const std::shared_ptr<DelayedResponse>& out) {
    pool_.gather("/api/tags", [this, out](const std::vector<Pool::WorkerReply>& replies) {
      out->set(json_response(200, lists_.tags(replies).dump()));
    });
  });
}

Response Front::Impl::ollama_loaded() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    pool_.gather("/api/ps", [this, out](const std::vector<Pool::WorkerReply>& replies) {
      out->set(json_response(200, lists_.loaded(replies).dump()));
    });
  });
}

// Ollama's routes that are about all models, or none.
void Front::Impl::add_ollama(Router& router) {
  const auto add = [&](std::string_view method, std::string_view path, Handler handler) {
    router.add({.method = std::string(method),
                .pattern = std::string(path),
                .handler = std::move(handler),
                .errors = ErrorForm::ollama});
  };
  add("GET", "/api/version", [](const Request&) { return ollama_version(); });
  add("GET", "/api/tags", [this](const Request&) { return ollama_tags_of_all(); });
  add("GET", "/api/ps", [this](const Request&) { return ollama_loaded(); });
  files_.add_to(router);
}

// Keeps the last documents of workers that are down.
void Front::Impl::keep_documents(std::vector<Pool::WorkerReply> replies) {
  for (Pool::WorkerReply& one : replies) {
    const ServedModel& model = pool_.models()[pool_.members()[one.member].model].served;
    if (!one.whole || one.status != 200 || documents_[model.kind] == one.text) continue;
    documents_[model.kind] = std::move(one.text);
    document_.clear();
  }
}

// Made anew only after a worker's document changed, because it takes some ms and needs no key.
const std::string& Front::Impl::document() {
  if (!document_.empty()) return document_;
  std::vector<WorkerDocument> documents;
  for (const Pool::Model& model : pool_.models()) {
    const ModelKind kind = model.served.kind;
    const auto found = documents_.find(kind);
    const bool there = std::ranges::count(documents, kind, &WorkerDocument::kind) > 0;
    if (found != documents_.end() && !there) documents.push_back({kind, found->second});
  }
  document_ = front_openapi(documents, options_.version);
  return document_;
}

Response Front::Impl::openapi() {
  return later([this](const std::shared_ptr<DelayedResponse>& out) {
    pool_.gather("/openapi.json", [this, out](std::vector<Pool::WorkerReply> replies) {
      keep_documents(std::move(replies));
      out->set(json_response(200, document()));
    });
  });
}

Router Front::Impl::routes() {
  Router router;
  const auto get = [&](const std::string& path, Access access, Handler handler) {
    router.add({.method = "GET", .pattern = path, .handler = std::move(handler), .access = access});
  };
  for (const char* path : {"/health", "/v1/health"}) {
    get(path, Access::anyone, [this](const Request&) { return alive(); });
  }
  get("/health/live", Access::anyone,
      [](const Request&) { return json_response(200, R"({"status":"healthy"})"); });
  for (const char* path : {"/health/ready", "/ready"}) {
    get(path, Access::anyone, [this](const Request&) { return readiness(); });
  }
  get("/v1/ready", Access::token, [this](const Request&) { return readiness(); });
  get("/version", Access::anyone, [this](const Request&) {
    return json_response(200, json{{"version", options_.version}}.dump());
  });
  get("/workers", Access::token, [this](const Request&) { return health(); });
  get("/kv-events", Access::token, [this](const Request&) { return kv_publishers(); });
  for (const std::string base : {"/v1/models", "/models"}) {
    const auto get_models = [&](const std::string& path, Handler handler) {
      router.add({.method = "GET",
                  .pattern = path,
                  .handler = std::move(handler),
                  .errors = ErrorForm::by_version});
    };
    get_models(base, [this](const Request& request) { return models(request); });
    get_models(base + "/{+id}", [this](const Request& request) { return model(request); });
  }
  add_ollama(router);
  get("/metrics", Access::token, [this](const Request&) { return metrics(); });
  get("/openapi.json", Access::anyone, [this](const Request&) { return openapi(); });
  // The page itself prompts for the key.
  get("/", Access::anyone, [this](const Request& request) { return welcome(request); });
  get("/page/{version}/{name}", Access::anyone, page_file);
  const Handler passed = [this](const Request& request) { return pass(request); };
  const HeadJudge judged = [this](const Request& head) { return judge(head); };
  router.add({.method = "POST", .pattern = "/", .handler = passed, .judge = judged});  // a worker's
  router.set_fallback({.handler = passed,
                       .judge = judged,
                       .error_form = worker_error_form,
                       .changes = worker_changes});
  return router;
}

Front::Front(FrontOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Front::~Front() = default;

Router Front::routes() {
  return impl_->routes();
}
bool Front::busy() const {
  return impl_->busy();
}
bool Front::given_up() const {
  return impl_->given_up();
}
void Front::drain() {
  impl_->drain();
}
void Front::stop(std::chrono::milliseconds patience) {
  impl_->stop(patience);
}

}  // namespace rbee::server
