#pragma once
// Ollama's routes /api/blobs/{digest}: files that clients upload for the models that they make.
// Internal to server/front: for any thread.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/front/config.h"
#include "server/front/model_store.h"
#include "server/http/router.h"
#include "server/http/side_threads.h"

namespace rbee::server {

class Uploads {
 public:
  Uploads(std::shared_ptr<ModelStore> files, const FrontHooks& hooks);

  void add_to(Router& router);

 private:
  class BlobBody;
  struct Shared;

  HeadVerdict judge(const Request& head);
  Response has(const Request& request) const;
  Response keep(const Request& request);
  std::shared_ptr<void> slot(const std::string& client) const;

  const std::shared_ptr<ModelStore> files_;
  const bool may_manage_;
  const size_t max_bytes_;
  const std::shared_ptr<Shared> shared_;  // of the bodies too
  SideThreads threads_;
};

}  // namespace rbee::server
