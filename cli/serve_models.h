#pragma once
// What `rbee serve` knows of models and devices before a worker runs: programs, memory, and the
// models of the hub's cache.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  // Logs which it leaves out.
  std::vector<server::ServedModel> list() const;
  // What a request names: hf:org/repo and its like, also with hf.co/ in front. Nothing for other
  // names. Throws as hub::look_up() and the readers do.
  std::optional<server::ServedModel> find(const std::string& name) const;
  // Of a name that begins with hf: and whose files are in the cache. Throws as find() does.
  server::ServedModel describe(const std::string& name) const { return describe(name, false); }
  // The names of a repository's models in the cache; empty if it is not there.
  std::vector<std::string> names(const std::string& repo) const;
  // What a request's name means on the hub; nothing: it is none of its names.
  static std::optional<std::string> hub_name(const std::string& name);

 private:
  server::ServedModel describe(const std::string& name, bool pull) const;

  const Options options_;
};

}  // namespace rbee::tools
