#include "server/front/uploads.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/ollama/record.h"
#include "server/front/file_answers.h"
#include "server/http/admission.h"
#include "server/http/body_file.h"

namespace rbee::server {
namespace {

constexpr size_t kThreads = 2;  // that wait until a file is on its disk

Response no_digest() {
  return plain_error(400, "digest: must be sha256: and 64 hexadecimal digits");
}

// What the head says; nothing: the body comes in chunks.
std::optional<int64_t> length_of(const Request& head) {
  const std::string_view text = head.header("content-length");
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = error == std::errc() && end == text.data() + text.size() && out >= 0;
  return whole ? std::optional(out) : std::nullopt;
}

}  // namespace

// The uploads that run.
struct Uploads::Shared {
  const size_t most;
  std::mutex mutex;  // guards what follows
  size_t running = 0;
  std::map<std::string, size_t> clients{};  // those that have any
};

// One whose file is here already is read to its end, as clients send it, and not written. Whoever
// has the answer finds the place free and no unfinished file, so both are given back before it.
class Uploads::BlobBody final : public BodyFile {
 public:
  BlobBody(std::shared_ptr<void> slot, std::unique_ptr<Upload> file)
      : slot_(std::move(slot)), file_(std::move(file)) {}

  std::optional<Response> write(std::string_view bytes) override {
    if (!file_) return std::nullopt;
    Response failed;
    if (tell_problems([&] { file_->write(bytes); }, failed)) return std::nullopt;
    give_back();
    return failed;
  }

  Response keep() {
    Response out = json_response(file_ ? 201 : 200, "");
    if (file_) (void)tell_problems([&] { file_->keep(); }, out);
    give_back();
    return out;
  }

 private:
  void give_back() {
    file_.reset();
    slot_.reset();
  }

  std::shared_ptr<void> slot_;
  std::unique_ptr<Upload> file_;  // null: it is here
};

Uploads::Uploads(std::shared_ptr<ModelStore> files, const FrontHooks& hooks)
    : files_(std::move(files)),
      may_manage_(hooks.may_manage),
      max_bytes_(hooks.max_upload_bytes),
      shared_(std::make_shared<Shared>(hooks.max_uploads)),
      threads_({.threads = kThreads, .most_each = 1}) {}

// Null if too many run. A client may have as many as it leaves to others, so that some place is
// always free.
std::shared_ptr<void> Uploads::slot(const std::string& client) const {
  const std::scoped_lock lock(shared_->mutex);
  const size_t own = shared_->clients[client];
  const size_t left = shared_->most - std::min(shared_->most, shared_->running);
  if (left == 0 || (own > 0 && own >= left)) {
    if (own == 0) shared_->clients.erase(client);
    return nullptr;
  }
  ++shared_->running;
  ++shared_->clients[client];
  return {shared_.get(), [shared = shared_, client](void*) {
            const std::scoped_lock held(shared->mutex);
            --shared->running;
            if (--shared->clients[client] == 0) shared->clients.erase(client);
          }};
}

HeadVerdict Uploads::judge(const Request& head) {
  if (!may_manage_) return {.refusal = not_allowed(head, "--manage")};
  const std::optional<std::string> digest = digits_of_digest(head.param("digest"));
  if (!digest) return {.refusal = no_digest()};
  const std::optional<int64_t> length = length_of(head);
  if (length && static_cast<size_t>(*length) > max_bytes_) {
    return {.refusal = plain_error(413, cat("the file exceeds ", max_bytes_, " bytes"))};
  }
  const bool here = files_->has_blob(*digest);
  if (here && expects_continue(head, false)) return {.refusal = json_response(200, "")};
  std::shared_ptr<void> place = slot(head.sender());
  if (!place) {
    Response busy = plain_error(429, "too many files are uploaded at once");
    busy.headers.emplace_back("Retry-After", "1");
    return {.refusal = std::move(busy)};
  }
  HeadVerdict out{.max_body_bytes = max_bytes_};
  std::unique_ptr<Upload> file;
  Response failed;
  const bool good = tell_problems(
      [&] {
        if (!here) file = files_->upload(*digest, length);
      },
      failed);
  if (!good) return {.refusal = std::move(failed)};
  out.file = std::make_shared<BlobBody>(std::move(place), std::move(file));
  return out;
}

Response Uploads::keep(const Request& request) {
  Response out;
  out.later = threads_.submit(
      {.client = request.sender(),
       .work = [body = std::static_pointer_cast<BlobBody>(request.file)] { return body->keep(); }});
  return out;
}

Response Uploads::has(const Request& request) const {
  if (!may_manage_) return not_allowed(request, "--manage");
  const std::optional<std::string> digest = digits_of_digest(request.param("digest"));
  if (!digest) return no_digest();
  if (files_->has_blob(*digest)) return json_response(200, "");
  return plain_error(404, "no such blob is here");
}

void Uploads::add_to(Router& router) {
  router.add({.method = "GET",
              .pattern = "/api/blobs/{digest}",
              .handler = [this](const Request& request) { return has(request); },
              .errors = ErrorForm::ollama});
  router.add({.method = "POST",
              .pattern = "/api/blobs/{digest}",
              .handler = [this](const Request& request) { return keep(request); },
              .errors = ErrorForm::ollama,
              .judge = [this](const Request& head) { return judge(head); }});
}

}  // namespace rbee::server
