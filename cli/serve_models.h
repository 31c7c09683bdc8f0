#pragma once
// What `rbee serve` knows of models and devices before a worker runs: programs, memory, and the
// models of the hub's cache.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rbee/hub/pull.h"
#include "server/front/config.h"

namespace rbee::tools {

// Fills in the workers' programs. Throws not_found, unsupported.
void find_programs(server::FrontConfig& config);

// Fills in the sizes of the files, and by hub::needed_memory() what is needed.
void count_memory(server::ServedModel& model);

// Bytes free on a device of this kind, of several the one with the most; nothing: unknown.
std::optional<int64_t> free_memory(const std::string& device);

// Models on demand. For any thread.
class HubModels {
 public:
  struct Options {
    std::chrono::milliseconds keep_alive{0};
    bool pull = false;  // models that the cache does not have are fetched
  };
  explicit HubModels(Options options) : options_(options) {}

  // Those that the cache has whole: hf:org/repo, or one for each quantization if it has several.
  // Logs which it leaves out, once for each state of their files. Cheap where nothing changed.
  std::vector<server::ServedModel> list();
  // What a request names: hf:org/repo and its like, also with hf.co/ in front. Nothing for other
  // names. Throws as hub::look_up() and the readers do.
  std::optional<server::ServedModel> find(const std::string& name) const;
  // Of a name that begins with hf: and whose files are in the cache. Throws as find() does.
  server::ServedModel describe(const std::string& name) const;
  // Of a chat model, or one for embeddings, that a client made of files: `model` as workers take
  // it. Throws as the readers do.
  server::ServedModel describe_made(const std::string& name, const std::filesystem::path& model,
                                    const std::filesystem::path& mmproj) const;
  // The names of a repository's models in the cache; empty if it is not there.
  std::vector<std::string> names(const std::string& repo) const;
  // Whether the cache still has the files that this model was loaded from.
  static bool has_files(const server::ServedModel& model);
  // What a request's name means on the hub; nothing: it is none of its names.
  static std::optional<std::string> hub_name(const std::string& name);

 private:
  // A model as it was read from files that may have changed since.
  struct Read {
    std::string state;                         // of its files: sizes and times
    std::optional<server::ServedModel> model;  // nothing: it cannot be read
  };

  hub::ModelState look_up(const hub::ModelName& name, bool pull) const;
  server::ServedModel describe(const hub::ModelName& name, const hub::ModelState& state) const;
  Read read(const std::string& name) const;

  const Options options_;
  std::mutex mutex_;
  std::map<std::string, Read> read_;  // by name; guarded by mutex_
};

}  // namespace rbee::tools
