#pragma once
// Whose request it is: the model that it names, or the kind of model that its path is for.

#include <optional>
#include <string>

#include "server/front/config.h"
#include "server/http/message.h"

namespace rbee::server {

struct Wanted {
  std::string model;              // as the request names it; empty: it does not
  std::optional<ModelKind> kind;  // of its path or operation; none: any model will do
  std::optional<bool> ranks;      // of an embedding model: whether the path is for ranking
  std::string job;                // whose worker is asked; empty: a new request
  bool makes_job = false;         // its answer names a job
  bool named_events = false;      // a stream's events have names besides their data
};

// Nothing for a path that workers do not have, or that is not for the front's clients.
std::optional<Wanted> wanted_by(const Request& request);

// Of a path of workers; see Router::error_form().
ErrorForm worker_error_form(std::string_view path);

// What a client is told of a name that is not served, in UTF-8 whatever the name holds.
std::string no_such_model(const std::string& name);

}  // namespace rbee::server
