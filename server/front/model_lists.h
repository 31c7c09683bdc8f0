#pragma once
// The front's lists of models, in the form of each API that has one. Internal to server/front: used
// on the pool's thread, except for the constructor.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/front/file_routes.h"
#include "server/front/pool.h"

namespace rbee::server {

class ModelLists {
 public:
  // Both must outlive it. files: has the models that clients made of others.
  ModelLists(const Pool& pool, const FileRoutes& files);

  // GET /v1/models and an entry of it; nothing: no model has this id. anthropic: in Anthropic's
  // form.
  nlohmann::json models(bool anthropic) const;
  std::optional<nlohmann::json> model(const std::string& id, bool anthropic) const;
  // Of GET /health, which needs no key.
  nlohmann::json names() const;
  // Of GET /workers: models with their processes.
  nlohmann::json workers() const;
  // GET /api/tags and /api/ps, from the workers' answers. The first keeps what a model listed, for
  // the time after it is unloaded.
  nlohmann::json tags(const std::vector<Pool::WorkerReply>& replies);
  nlohmann::json loaded(const std::vector<Pool::WorkerReply>& replies) const;

 private:
  nlohmann::json entries() const;
  int64_t fact(size_t model, const char* name) const;

  const Pool& pool_;
  const FileRoutes& files_;
  const int64_t created_;                       // when the front began; seconds since 1970
  std::map<std::string, nlohmann::json> tags_;  // of a model and its files
};

}  // namespace rbee::server
