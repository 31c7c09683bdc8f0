#include "server/front/file_routes.h"

#include <chrono>
#include <future>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "server/apis/ollama/file_requests.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/names.h"
#include "server/apis/ollama/refusals.h"
#include "server/apis/ollama/request.h"
#include "server/apis/ollama/response.h"
#include "server/front/file_answers.h"
#include "server/front/routing.h"
#include "server/http/error_form.h"
#include "server/http/mailbox.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

constexpr std::string_view kStopping = "the server is stopping";
constexpr size_t kThreads = 2;
constexpr size_t kMostWaiting = 64;
constexpr std::chrono::milliseconds kLook{50};  // at whether the front ends

// The work's answer, or what it threw as one. name: of the model that it needs.
Response answered(const std::string& name, const std::function<Response()>& work) {
  Response out;
  (void)tell_problems([&] { out = work(); }, out, name);
  return out;
}

// A worker was started under the spelling of that time.
std::function<bool(const std::string&)> is_called(const std::string& name) {
  return [name](const std::string& served) { return same_model_name(served, name); };
}

Response refuse(const Request& request) {
  return error_response(request, 501,
                        {"NOT_IMPLEMENTED", cat(request.method, " ", request.path,
                                                " is not supported: the files of models come "
                                                "from the hub, and are only read")});
}

}  // namespace

FileRoutes::FileRoutes(const FrontHooks& hooks, Front front)
    : files_(hooks.files),
      may_pull_(hooks.may_pull),
      may_manage_(hooks.may_manage),
      front_(std::move(front)),
      pulls_(files_, front_.serve),
      creations_(files_, [this](const std::string& name) { return drop(is_called(name)); }),
      threads_({.most_waiting = kMostWaiting, .threads = kThreads}) {
  if (files_) uploads_.emplace(files_, hooks);
}

void FileRoutes::stop() {
  stopping_ = true;
  pulls_.stop();
  creations_.stop();
}

Response FileRoutes::pull(const Request& request) {
  if (!may_pull_) return not_allowed(request, "--pull");
  return guarded(ollama_error, [&] {
    const OllamaPull body = parse_ollama_pull(request.body);
    if (body.model.empty()) return plain_error(400, "invalid model name");
    check_name("model", body.model);
    return pulls_.pull(body.model, body.stream);
  });
}

Response FileRoutes::remove(const Request& request) {
  if (!may_manage_) return not_allowed(request, "--manage");
  return guarded(ollama_error, [&] {
    const std::string name = parse_ollama_show(request.body);
    if (name.empty()) return plain_error(400, "invalid model name");
    check_name("model", name);
    return aside(request, [this, name] { return remove_now(name); });
  });
}

// Throws invalid_argument, which names the body's field.
void FileRoutes::check_name(const std::string& field, const std::string& name) const {
  if (const std::string problem = files_->problem_of_name(name); !problem.empty()) {
    fail(Code::invalid_argument, field, problem);
  }
}

// On a thread of its own.
Response FileRoutes::aside(const Request& request, std::function<Response()> work) {
  Response out;
  out.later = threads_.submit({.client = request.sender(), .work = std::move(work), .refusal = [] {
                                 return plain_error(429, "too many requests");
                               }});
  return out.later ? out : plain_error(429, "too many requests");
}

Response FileRoutes::create(const Request& request) {
  if (!may_manage_) return not_allowed(request, "--manage");
  return guarded(ollama_error, [&] {
    const OllamaCreate body = parse_ollama_create(request.body);
    if (body.record.name.empty()) return plain_error(400, "invalid model name");
    check_name("model", body.record.name);
    if (!body.record.from.empty()) check_name("from", body.record.from);
    return creations_.create(body);
  });
}

Response FileRoutes::copy(const Request& request) {
  if (!may_manage_) return not_allowed(request, "--manage");
  return guarded(ollama_error, [&] {
    const OllamaCopy body = parse_ollama_copy(request.body);
    if (body.source.empty()) return plain_error(400, "source is required");
    if (body.destination.empty()) return plain_error(400, "destination is required");
    check_name("source", body.source);
    check_name("destination", body.destination);
    return aside(request, [this, body] { return copy_now(body); });
  });
}

Response FileRoutes::copy_now(const OllamaCopy& body) {
  return answered(body.source, [&] {
    files_->copy(body);
    if (!drop(is_called(body.destination))) return plain_error(503, kStopping);
    log(LogLevel::info, "a client copied a model", {{"model", printable(body.destination)}});
    return json_response(200, "");
  });
}

std::vector<OllamaRecord> FileRoutes::records() const {
  return files_ ? files_->records() : std::vector<OllamaRecord>();
}

std::optional<OllamaRecord> FileRoutes::find_record(const std::string& name) const {
  return files_ && !name.empty() ? files_->find_record(name) : std::nullopt;
}

// Returns when the workers have ended; false if the front ends first.
bool FileRoutes::drop(const std::function<bool(const std::string&)>& which) {
  const auto dropped = std::make_shared<std::promise<void>>();
  front_.drop(which, [dropped] { dropped->set_value(); });
  const std::future<void> over = dropped->get_future();
  while (over.wait_for(kLook) != std::future_status::ready) {
    if (stopping_) return false;
  }
  return true;
}

Response FileRoutes::remove_now(const std::string& name) {
  return answered(name, [&] {
    const std::optional<Removal> removal = files_->removal(name);
    if (!removal) return no_ollama_model(valid_text(name));
    removal->check();
    if (!drop(removal->concerns)) return plain_error(503, kStopping);
    removal->erase();
    log(LogLevel::info, "a client deleted a model", {{"model", printable(name)}});
    return json_response(200, "");
  });
}

void FileRoutes::add_to(Router& router) {
  const auto add = [&](std::string_view method, std::string_view path, Handler handler, Body body) {
    router.add({.method = std::string(method),
                .pattern = std::string(path),
                .handler = std::move(handler),
                .body = body,
                .errors = ErrorForm::ollama});
  };
  for (const OllamaRefusal& refusal : kOllamaRefusals) {
    if (files_ && refusal.of_store) continue;
    add(refusal.method, refusal.path, files_ ? refuse : refuse_ollama, Body::none);
  }
  if (files_ == nullptr) return;
  uploads_->add_to(router);
  add("POST", "/api/create", [this](const Request& request) { return create(request); }, Body::any);
  add("POST", "/api/copy", [this](const Request& request) { return copy(request); }, Body::any);
  add("POST", "/api/pull", [this](const Request& request) { return pull(request); }, Body::any);
  add(
      "DELETE", "/api/delete", [this](const Request& request) { return remove(request); },
      Body::any);
}

}  // namespace rbee::server
