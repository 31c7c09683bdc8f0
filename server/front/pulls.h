#pragma once
// Ollama's POST /api/pull: fetches of models that clients wait for, each on a thread of its own.
// Clients that name one model share its fetch, which ends when the last of them has left. Internal
// to server/front: for any thread.

#include <functional>
#include <memory>
#include <string>

#include "server/front/model_store.h"
#include "server/http/message.h"

namespace rbee::server {

// Gets a model whose files are here, and the name that a client fetched it by.
using PulledModel = std::function<void(const ServedModel& model, const std::string& name)>;

// Ollama's words for a file that is fetched.
std::string pulling_status(const PulledFile& part);

class Pulls {
 public:
  // pulled: called on a fetch's thread.
  Pulls(std::shared_ptr<ModelStore> files, PulledModel pulled);
  ~Pulls();  // stop()
  Pulls(const Pulls&) = delete;
  Pulls& operator=(const Pulls&) = delete;

  // stream: lines that tell how far it is; else one answer at the end.
  Response pull(const std::string& name, bool stream);
  // Ends all; what came stays for the next time. `pulled` is not called any more.
  void stop();

 private:
  struct Run;
  struct Shared;
  struct Result;

  static Result fetch(Shared& shared, Run& run);
  static void run(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Run>& run);

  const std::shared_ptr<Shared> shared_;  // of the threads too, which may wait for a server
};

}  // namespace rbee::server
