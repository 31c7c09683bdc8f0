#include "server/worker/loading.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/progress_text.h"
#include "server/http/error_form.h"

namespace rbee::server {
namespace {

constexpr double kLongestRetry = 30;  // seconds
constexpr size_t kBodyBytes = 4096;   // ignored ones of probes

Response with_retry(Response response, const LoadingState& state) {
  const std::optional<LoadProgress> progress = state.progress();
  const double left = progress ? progress->seconds_left.value_or(1) : 1;
  const auto seconds = static_cast<int>(std::ceil(std::clamp(left, 1.0, kLongestRetry)));
  response.headers.emplace_back("Retry-After", cat(seconds));
  return response;
}

Response refused(const Request& request, const LoadingState& state) {
  return with_retry(error_response(request, 503, {"MODEL_LOADING", "The model is loading"}), state);
}

// "Loading the model: 1.25 GB of 4.68 GB (26 %), 35.1 MB/s, 1 min 38 s left".
std::string progress_text(const std::optional<LoadProgress>& progress) {
  if (!progress) return "Starting";
  std::string out = progress->phase == LoadPhase::fetching ? "Fetching" : "Loading";
  out += " the model";
  if (progress->total <= 0) return out;
  return cat(out, ": ",
             progress_to_text(progress->done, progress->total, progress->bytes_per_second,
                              progress->seconds_left));
}

// Asks again until the model's own page is there.
Response page(const LoadingState& state) {
  const std::string text = progress_text(state.progress());
  Response response = text_response(
      503, cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width\">"
               "<meta name=\"color-scheme\" content=\"light dark\">"
               "<meta http-equiv=\"refresh\" content=\"2\"><title>",
               text, "</title></head><body><p role=\"status\">", text, "</p></body></html>\n"));
  response.content_type = "text/html; charset=utf-8";
  response.headers = {{"Content-Security-Policy", "default-src 'none'"},
                      {"Cache-Control", "no-store"}};
  return with_retry(std::move(response), state);
}

}  // namespace

void LoadingState::set(const LoadProgress& progress) {
  bool begins = false;
  {
    const std::scoped_lock lock(mutex_);
    begins = !progress_ || progress_->phase != progress.phase;
    progress_ = progress;
  }
  if (begins && on_phase_) on_phase_();
}

std::optional<LoadProgress> LoadingState::progress() const {
  const std::scoped_lock lock(mutex_);
  return progress_;
}

Router loading_routes(WorkerInfo info, const LoadingState& state,
                      ErrorForm (*error_form)(std::string_view path)) {
  Router router;
  const auto open = [&](const char* method, const char* path, Handler handler) {
    router.add({.method = method,
                .pattern = path,
                .handler = std::move(handler),
                .access = Access::anyone,
                .errors = ErrorForm::by_version,
                .judge = [](const Request&) { return HeadVerdict{.max_body_bytes = kBodyBytes}; }});
  };
  const auto refuse = [&state](const Request& request) { return refused(request, state); };
  const auto health = [&state, info = std::move(info),
                       start = std::chrono::steady_clock::now()](const Request& asked) {
    const std::string_view types = asked.header("accept");
    const bool plain = types.find("text/plain") != std::string_view::npos &&
                       types.find("application/json") == std::string_view::npos;
    if (plain) return with_retry(text_response(503, info.status), state);
    const double uptime =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return with_retry(json_response(503, starting_json(info, state.progress(), uptime)), state);
  };
  for (const char* path : {"/health", "/v1/health", "/health/live"}) open("GET", path, health);
  for (const char* path : {"/ready", "/health/ready"}) {
    open("GET", path, [&state](const Request&) {
      return with_retry(json_response(503, not_loaded_json()), state);
    });
  }
  for (const char* method : {"GET", "POST"}) {
    open(method, "/ping",
         [&state](const Request&) { return with_retry(text_response(503, ""), state); });
  }
  // Whoever may ask later without a key is told the same as the others.
  for (const char* path : {"/version", "/openapi.json"}) open("GET", path, refuse);
  open("GET", "/", [&state, refuse](const Request& request) {
    const bool person = request.header("accept").find("text/html") != std::string_view::npos;
    return person ? page(state) : refuse(request);
  });
  router.set_fallback(
      {.handler = refuse,
       .judge = [refuse](const Request& head) { return HeadVerdict{.refusal = refuse(head)}; },
       .error_form = error_form});
  return router;
}

}  // namespace rbee::server
