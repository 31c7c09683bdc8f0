#pragma once
// The hub's API: which commit a revision is, which files it has, where a file is fetched, and a
// search. Each error is one line with the page to open.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/hub/http.h"
#include "rbee/hub/listing.h"
#include "rbee/hub/settings.h"

namespace rbee::hub {

struct FileInfo {
  std::string commit;
  std::string etag;   // the blob's name, without quotes
  int64_t size = -1;  // bytes; -1 = unknown
  std::string url;    // where the bytes are
};

struct SearchResult {
  std::string repo;
  int64_t downloads = 0;  // of the last month
  int64_t likes = 0;
  std::string task;  // such as "text-generation"; empty = unknown
};

// The token is for the endpoint that was set: a mirror's is not the hub's, and no other host's.
bool takes_token(const Settings& settings, std::string_view url);

// One thread at a time.
class Client {
 public:
  explicit Client(Settings settings) : settings_(std::move(settings)) {}

  const Settings& settings() const { return settings_; }

  // Throw not_found for what is missing, unsupported for what needs permission or a redirect that
  // is not followed, io if the hub cannot be reached or does not answer as a hub does.
  std::string commit_of(std::string_view repo, std::string_view revision);
  std::vector<RepoFile> list_files(std::string_view repo, std::string_view commit);
  FileInfo file_info(std::string_view repo, std::string_view revision, std::string_view file);
  // Models by the words of their names, most downloaded first.
  std::vector<SearchResult> search(std::string_view words, int limit);

  // Bytes [begin, end) of a file, into `sink`. Follows redirects from info.url. False if the server
  // ignored the range and sent the file from its start: then the sink was not called. going_on: as
  // in HttpRequest.
  // Throws as above, and io if the connection breaks; the sink then has what came before.
  bool fetch(const FileInfo& info, int64_t begin, int64_t end, const BodySink& sink,
             const std::function<bool()>& going_on);

 private:
  HttpResponse get(const std::string& url);
  HttpRequest request_to(const std::string& url) const;
  bool is_hub(const std::string& url) const;
  // Sends again what the server was too busy for.
  HttpResponse send(const HttpRequest& request);
  [[noreturn]] void fail_with(const HttpResponse& response, const std::string& url,
                              std::string_view repo, std::string_view file) const;

  Settings settings_;
  HttpClient http_;
};

}  // namespace rbee::hub
