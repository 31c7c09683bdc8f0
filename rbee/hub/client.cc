#include "rbee/hub/client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <thread>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/core/percent_encoded.h"
#include "rbee/core/printable.h"
#include "rbee/hub/hub_json.h"
#include "rbee/hub/name.h"
#include "rbee/hub/url.h"

namespace rbee::hub {
namespace {

using nlohmann::json;

constexpr int kMaxRedirects = 20;
constexpr size_t kMaxPages = 1000;  // of a listing
constexpr int kTries = 5;           // of a request
constexpr int kLongestWait = 300;   // seconds, as Retry-After asks

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// What a later try may get.
bool is_busy(int status) {
  return status == 408 || status == 429 || (status >= 500 && status <= 504 && status != 501);
}

int64_t number_of(std::string_view text) {
  int64_t out = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : -1;
}

// The seconds of "Retry-After", or those of the hub's own "RateLimit: ...;t=55"; -1 = none.
int asked_wait(const HttpResponse& response) {
  int64_t seconds = number_of(response.header("retry-after"));
  const std::string& limit = response.header("ratelimit");
  if (const size_t at = limit.find(";t="); seconds < 0 && at != std::string::npos) {
    const std::string_view rest = std::string_view(limit).substr(at + 3);
    seconds = number_of(rest.substr(0, rest.find_first_not_of("0123456789")));
  }
  return static_cast<int>(std::min<int64_t>(seconds, 1 << 20));
}

// The address of the next page in a "Link" header; empty = none.
std::string next_page(const std::string& link) {
  for (size_t at = 0; (at = link.find('<', at)) != std::string::npos; ++at) {
    const size_t end = link.find('>', at);
    if (end == std::string::npos) return {};
    const std::string_view about = std::string_view(link).substr(end, link.find('<', end) - end);
    if (about.find("rel=\"next\"") != std::string_view::npos) {
      return link.substr(at + 1, end - at - 1);
    }
  }
  return {};
}

// Sleeps before another try. False if the hub asks for longer than anybody waits.
bool pause_before_retry(const HttpResponse& response, int tried) {
  const int asked = asked_wait(response);
  if (asked > kLongestWait) return false;
  const int seconds = asked >= 0 ? std::max(asked, 1) : 1 << (tried - 1);
  log(LogLevel::warn, "the hub is busy or limits requests; waiting",
      {{"status", cat(response.status)}, {"seconds", cat(seconds)}});
  for (int second = 0; second < seconds; ++second) {
    check_cancelled("hub");
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return true;
}

// Without the mark of weak ones and the quotes.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

json parsed(const HttpResponse& response, const std::string& url) {
  return parse_json(response.body, cat("the answer of ", url));
}

std::string reason_of(const HttpResponse& response) {
  const std::string& words = response.header("x-error-message");
  return words.empty() ? std::string() : cat(" (", printable_line(words), ")");
}

}  // namespace

bool takes_token(const Settings& settings, std::string_view url) {
  return origin_of(url) == origin_of(settings.endpoint);
}

HttpRequest Client::request_to(const std::string& url) const {
  HttpRequest request{.url = url};
  const bool ours = takes_token(settings_, url);
  if (ours) request.token = settings_.token;
  request.guarded = !ours;
  request.loopback_allowed =
      address_kind(origin_of(settings_.endpoint).host) == AddressKind::loopback;
  return request;
}

// Mirrors send people to the hub itself for what they do not hold.
bool Client::is_hub(const std::string& url) const {
  return origin_of(url) == origin_of(settings_.endpoint) ||
         origin_of(url) == origin_of(Settings{}.endpoint);
}

HttpResponse Client::send(const HttpRequest& request) {
  if (settings_.offline) fail(Code::io, "hub", "HF_HUB_OFFLINE is set, so no request is sent");
  for (int tried = 1;; ++tried) {
    HttpResponse response = http_.send(request);
    if (!is_busy(response.status) || tried == kTries) return response;
    if (!pause_before_retry(response, tried)) return response;
  }
}

void Client::fail_with(const HttpResponse& response, const std::string& url, std::string_view repo,
                       std::string_view file) const {
  const std::string page = cat(settings_.endpoint, "/", repo);
  const std::string& code = response.header("x-error-code");
  const int status = response.status;
  if (code == "GatedRepo") {
    fail(Code::unsupported, "hub", repo, " is gated: open ", page, ", accept its terms, and ",
         settings_.token.empty() ? "set HF_TOKEN" : "use a token of that account in HF_TOKEN",
         reason_of(response));
  }
  if (code == "RevisionNotFound") {
    fail(Code::not_found, "hub", repo, " has no such revision; its branches and tags are at ", page,
         "/tree/main");
  }
  if (code == "EntryNotFound") {
    fail(Code::not_found, "hub", repo, " has no file '", printable_line(file),
         "'; its files are at ", page, "/tree/main");
  }
  if (status == 401 && !settings_.token.empty() && code != "RepoNotFound") {
    fail(Code::unsupported, "hub", "the token of HF_TOKEN or its file is refused; see ",
         settings_.endpoint, "/settings/tokens", reason_of(response));
  }
  if (status == 401 || status == 404) {
    fail(Code::not_found, "hub", repo.empty() ? url : page, " is missing or private",
         settings_.token.empty() ? "; a private repository needs HF_TOKEN"
                                 : "; the token in use may not read it",
         reason_of(response));
  }
  if (status == 403) {
    fail(Code::unsupported, "hub", "access to ", repo.empty() ? url : page,
         " is refused; see the rights of the token at ", settings_.endpoint, "/settings/tokens",
         reason_of(response));
  }
  if (status == 429) {
    const int wait = asked_wait(response);
    fail(Code::io, "hub", "the hub limits requests; try again in ",
         wait > 0 ? cat(wait, " seconds") : std::string("some minutes"), ", see ",
         settings_.endpoint, "/docs/hub/rate-limits");
  }
  fail(Code::io, "hub", url, " answers with status ", status, reason_of(response));
}

HttpResponse Client::get(const std::string& url) {
  HttpRequest request = request_to(url);
  for (int i = 0; i < kMaxRedirects; ++i) {
    HttpResponse response = send(request);
    if (!is_redirect(response.status)) return response;
    request = request_to(resolve_reference(request.url, response.header("location")));
  }
  fail(Code::io, "hub", url, " redirects too often");
}

std::string Client::commit_of(std::string_view repo, std::string_view revision) {
  check_repo(repo);
  check_revision(revision);
  const std::string url =
      cat(settings_.endpoint, "/api/models/", repo, "/revision/", percent_encoded(revision, false));
  const HttpResponse response = get(url);
  if (response.status != 200) fail_with(response, url, repo, {});
  const json answer = parsed(response, url);
  std::string sha = answer.is_object() ? text_of(answer, "sha") : std::string();
  if (!is_commit(sha)) fail(Code::io, "hub", url, " names no commit; is it a hub?");
  return sha;
}

std::vector<RepoFile> Client::list_files(std::string_view repo, std::string_view commit) {
  std::vector<RepoFile> out;
  std::string url =
      cat(settings_.endpoint, "/api/models/", repo, "/tree/", commit, "?recursive=true");
  size_t left_out = 0;
  std::set<std::string> read;
  while (!url.empty()) {
    if (!read.insert(url).second) {
      fail(Code::io, "hub", "the listing of ", repo, " leads back to a page that was read");
    }
    if (read.size() > kMaxPages) fail(Code::io, "hub", repo, " lists its files on too many pages");
    const HttpResponse response = get(url);
    if (response.status != 200) fail_with(response, url, repo, {});
    parse_tree(response.body, out, left_out);
    const std::string next = next_page(response.header("link"));
    url = next.empty() ? next : resolve_reference(url, next);
  }
  log_left_out(left_out);
  return out;
}

FileInfo Client::file_info(std::string_view repo, std::string_view revision,
                           std::string_view file) {
  check_repo(repo);
  check_file(file);
  const std::string url = cat(settings_.endpoint, "/", repo, "/resolve/",
                              percent_encoded(revision, false), "/", percent_encoded(file, true));
  HttpRequest request = request_to(url);
  request.head = true;
  for (int i = 0; i < kMaxRedirects; ++i) {
    const HttpResponse response = send(request);
    if (response.status != 200 && !is_redirect(response.status)) {
      fail_with(response, url, repo, file);
    }
    const std::string next = is_redirect(response.status)
                                 ? resolve_reference(request.url, response.header("location"))
                                 : request.url;
    if (is_redirect(response.status) && is_hub(next)) {
      request = request_to(next);
      request.head = true;
      continue;
    }
    // The hub's own answer describes the file, also where it sends us elsewhere for the bytes.
    const std::string& linked = response.header("x-linked-etag");
    const std::string& size = response.header("x-linked-size");
    FileInfo info{.commit = response.header("x-repo-commit"),
                  .etag = plain_etag(linked.empty() ? response.header("etag") : linked),
                  .size = number_of(size.empty() && !is_redirect(response.status)
                                        ? response.header("content-length")
                                        : size),
                  .url = next};
    if (!is_commit(info.commit) || info.etag.empty()) {
      fail(Code::io, "hub", url, " tells no commit and ETag; is it a hub?");
    }
    return info;
  }
  fail(Code::io, "hub", url, " redirects too often");
}

std::vector<SearchResult> Client::search(std::string_view words, int limit) {
  const std::string url =
      cat(settings_.endpoint, "/api/models?search=", percent_encoded(words, false),
          "&sort=downloads&limit=", limit);
  const HttpResponse response = get(url);
  if (response.status != 200) fail_with(response, url, {}, {});
  const json answer = parsed(response, url);
  std::vector<SearchResult> out;
  if (!answer.is_array()) fail(Code::io, "hub", url, " lists no models; is it a hub?");
  for (const json& row : answer) {
    if (!row.is_object()) continue;
    out.push_back({.repo = text_of(row, "id"),
                   .downloads = integer_of(row, "downloads"),
                   .likes = integer_of(row, "likes"),
                   .task = text_of(row, "pipeline_tag")});
  }
  return out;
}

bool Client::fetch(const FileInfo& info, int64_t begin, int64_t end, const BodySink& sink,
                   const std::function<bool()>& going_on) {
  const bool ranged = begin > 0 || end < info.size;
  HttpRequest request = request_to(info.url);
  for (int i = 0; i < kMaxRedirects; ++i) {
    bool ignored = false;
    if (ranged) {
      request.begin = begin;
      request.end = end;
    }
    request.sink = sink;
    request.going_on = going_on;
    request.on_headers = [&](const HttpResponse& response) {
      ignored = ranged && response.status == 200;
      return !ignored;
    };
    const HttpResponse response = send(request);
    if (ignored) return false;
    if (is_redirect(response.status)) {
      request = request_to(resolve_reference(request.url, response.header("location")));
      continue;
    }
    const std::string expected = cat("bytes ", begin, "-", end - 1, "/");
    if (response.status == 206 && !response.header("content-range").starts_with(expected)) {
      fail(Code::io, "hub", info.url, " sends another range than was asked for");
    }
    if (response.status == 200 || response.status == 206) return true;
    fail(Code::io, "hub", origin_of(info.url).host, " answers with status ", response.status,
         " instead of the file", reason_of(response));
  }
  fail(Code::io, "hub", info.url, " redirects too often");
}

}  // namespace rbee::hub
