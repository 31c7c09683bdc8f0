#pragma once
// What the front asks of whoever keeps the models' files. Implementations are for any thread, and
// take as long as files take.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/error.h"
#include "server/apis/ollama/record.h"
#include "server/front/config.h"

namespace rbee::server {

// A file of a model that is fetched.
struct PulledFile {
  std::string digest;  // "sha256:" and its digits; empty: nobody promised one
  std::string name;
  int64_t done = 0, total = 0;  // bytes
};

struct PullWatch {
  std::function<void(const PulledFile& part)> part;  // from any thread, one at a time
  std::function<void()> fetched;  // all bytes are here; the last file's sum may not be checked yet
};

// What is done for a model that a client makes.
struct CreateStep {
  std::string status;           // in Ollama's words
  std::string digest = {};      // of the part that grows; empty: none
  int64_t done = 0, total = 0;  // bytes; 0: unknown
};

struct CreateWatch {
  std::function<void(const CreateStep& step)> step;
  // What follows may take long. Throws FilesBusy if too much of that runs.
  std::function<void()> begin;
};

struct Removal {
  std::function<bool(const std::string& served)> concerns;  // whether a served model is of these
  std::function<void()> check;  // throws Error if erase() would; called before models are unloaded
  std::function<void()> erase;  // throws Error, FilesBusy
};

// Another process changes the files just now: a later request may succeed.
class FilesBusy : public Error {
 public:
  explicit FilesBusy(std::string_view message) : Error(Code::io, "models", message) {}
};

// The disk is too full for a file.
class NoRoom : public Error {
 public:
  explicit NoRoom(std::string_view message) : Error(Code::io, "models", message) {}
};

// A file that a client uploads. Calls come one at a time, on any thread, and wait for the disk. The
// destructor leaves no trace of one that was not kept.
class Upload {
 public:
  Upload() = default;
  virtual ~Upload() = default;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Throws io, NoRoom.
  virtual void write(std::string_view bytes) = 0;
  // The last call. Throws invalid_argument if its SHA-256 is another, and io.
  virtual void keep() = 0;
};

class ModelStore {
 public:
  ModelStore() = default;
  virtual ~ModelStore() = default;
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;

  // Why this can be no model's name; empty: it can.
  virtual std::string problem_of_name(const std::string& name) const = 0;
  // Fetches what is missing of a model. Nothing if the name means none. Throws not_found if the hub
  // has no such model, cancelled if the thread's CancelScope ends it, and others.
  virtual std::optional<ServedModel> pull(const std::string& name, const PullWatch& watch) = 0;
  // The models that clients made of others, by name. Quick, since requests wait for it.
  virtual std::vector<OllamaRecord> records() = 0;
  virtual std::optional<OllamaRecord> find_record(const std::string& name) = 0;
  // Makes one, in the place of another with this name. Throws not_found if the model that it is
  // made of is not here and may not be fetched, cancelled, FilesBusy, NoRoom, and invalid_argument,
  // unsupported and io.
  virtual void create(const OllamaCreate& create, const CreateWatch& watch) = 0;
  virtual void copy(const OllamaCopy& copy) = 0;
  // Whether a client's file is here, by its SHA-256 in lower-case hexadecimal digits. Quick. If so,
  // it stays for a while.
  virtual bool has_blob(const std::string& digest) = 0;
  // bytes: of the whole file, if they are known. Quick. Throws NoRoom.
  virtual std::unique_ptr<Upload> upload(const std::string& digest,
                                         std::optional<int64_t> bytes) = 0;
  // How often this process has changed which models are here, so that lists are made anew. Quick.
  virtual uint64_t changes() const { return 0; }
  // Nothing if no such model is here. Throws unsupported if files of others would go too.
  virtual std::optional<Removal> removal(const std::string& name) = 0;
};

}  // namespace rbee::server
