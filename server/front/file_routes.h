#pragma once
// Ollama's routes about files of models: /api/pull, /api/delete, /api/create, /api/copy,
// /api/blobs and the refused ones. Internal to server/front.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/front/config.h"
#include "server/front/creations.h"
#include "server/front/pulls.h"
#include "server/front/uploads.h"
#include "server/http/router.h"
#include "server/http/side_threads.h"

namespace rbee::server {

class FileRoutes {
 public:
  // What the front does for it; from any thread.
  struct Front {
    PulledModel serve;
    // Ends the workers of models with such names, then calls `done`.
    std::function<void(const std::function<bool(const std::string&)>& which,
                       std::function<void()> done)>
        drop;
  };
  FileRoutes(const FrontHooks& hooks, Front front);

  void add_to(Router& router);
  // The models that clients made; from any thread.
  std::vector<OllamaRecord> records() const;
  std::optional<OllamaRecord> find_record(const std::string& name) const;
  // Ends all that runs, since the front ends.
  void stop();

 private:
  Response pull(const Request& request);
  Response remove(const Request& request);
  Response remove_now(const std::string& name);
  Response create(const Request& request);
  Response copy(const Request& request);
  Response copy_now(const OllamaCopy& body);
  void check_name(const std::string& field, const std::string& name) const;
  Response aside(const Request& request, std::function<Response()> work);
  bool drop(const std::function<bool(const std::string&)>& which);

  const std::shared_ptr<ModelStore> files_;  // null: all is refused
  const bool may_pull_, may_manage_;
  const Front front_;
  std::atomic<bool> stopping_ = false;
  Pulls pulls_;
  Creations creations_;
  SideThreads threads_;
  std::optional<Uploads> uploads_;  // nothing: all is refused
};

}  // namespace rbee::server
