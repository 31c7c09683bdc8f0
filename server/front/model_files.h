#pragma once
// What the front asks of whoever keeps the models' files. Implementations are for any thread, and
// take as long as files take.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "server/front/config.h"

namespace rbee::server {

// A file of a model that is fetched.
struct ModelPart {
  std::string digest;  // "sha256:" and its digits; empty: nobody promised one
  std::string name;
  int64_t done = 0, total = 0;  // bytes
};

struct PullWatch {
  std::function<void(const ModelPart& part)> part;  // from any thread, one at a time
  std::function<void()> fetched;  // all bytes are here; the last file's sum may not be checked yet
};

struct Removal {
  std::function<bool(const std::string& served)> concerns;  // whether a served model is of these
  std::function<void()> check;  // throws Error if erase() would; called before models are unloaded
  std::function<void()> erase;  // throws Error
};

class ModelFiles {
 public:
  ModelFiles() = default;
  virtual ~ModelFiles() = default;
  ModelFiles(const ModelFiles&) = delete;
  ModelFiles& operator=(const ModelFiles&) = delete;

  // Throws invalid_argument, naming the field "model", for what can be no model's name.
  virtual void check_name(const std::string& name) const = 0;
  // Fetches what is missing of a model. Nothing if the name means none. Throws not_found if the hub
  // has no such model, cancelled if the thread's CancelScope ends it, and others.
  virtual std::optional<ServedModel> pull(const std::string& name, const PullWatch& watch) = 0;
  // Nothing if no such model is here. Throws unsupported if files of others would go too.
  virtual std::optional<Removal> removal(const std::string& name) = 0;
};

}  // namespace rbee::server
