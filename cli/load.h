#pragma once
// Sends requests for streamed texts to a server with OpenAI's API at planned times, and records
// when its answers came.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/http/client.h"

namespace rbee::tools {

struct LoadTarget {
  server::Url url;
  std::string path;         // after the url's own, e.g. "/v1/completions"
  std::string api_key;      // empty: none is sent
  int concurrency = 0;      // most requests at once; 0 = all that are due
  double timeout_s = 3600;  // of one request
};

struct LoadRequest {
  double at = 0;  // seconds after the start; sent later if too many are running
  std::string body;
};

struct LoadAnswer {
  std::string error;             // empty: success
  double due_s = 0;              // after the start, as planned
  double first_s = 0;            // after it was due: the first piece of text; 0 = none came
  double end_s = 0;              // after it was due: the last byte
  std::vector<double> gaps_s{};  // between pieces of text
  int64_t prompt_tokens = 0;     // as the server counts them
  int64_t output_tokens = 0;
};

// One answer for each request, in their order. Throws io if the server cannot be found.
std::vector<LoadAnswer> send_load(const LoadTarget& target, std::span<const LoadRequest> requests);

}  // namespace rbee::tools
