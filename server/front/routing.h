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
  std::string job;                // whose worker is asked; empty: a new request
  bool makes_job = false;         // its answer names a job
};

// Nothing for a path that workers do not have, or that is not for the front's clients.
std::optional<Wanted> wanted_by(const Request& request);

}  // namespace rbee::server
