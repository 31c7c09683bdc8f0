#pragma once
// Ollama's POST /api/create: models that clients have made, each on a thread of its own. What takes
// long tells how far it is, and ends when its client leaves. Internal to server/front: for any
// thread.

#include <functional>
#include <memory>
#include <string>

#include "server/front/model_store.h"
#include "server/http/message.h"

namespace rbee::server {

// Ends the workers of an older model of this name; false: the front ends.
using MadeModel = std::function<bool(const std::string& name)>;

class Creations {
 public:
  // made: called on a creation's thread.
  Creations(std::shared_ptr<ModelStore> files, MadeModel made);
  ~Creations();  // stop()
  Creations(const Creations&) = delete;
  Creations& operator=(const Creations&) = delete;

  Response create(const OllamaCreate& body);
  // Ends all, and waits for a moment until their files are gone. `made` is not called any more.
  void stop();

 private:
  struct Run;
  struct Shared;

  static Response make(Shared& shared, const std::shared_ptr<Run>& run);
  static void work(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Run>& run);

  const std::shared_ptr<Shared> shared_;  // of the threads too
};

}  // namespace rbee::server
