#pragma once
// Models by name: from hf:org/repo to a path that the readers open.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/hub/choose.h"
#include "rbee/hub/download.h"
#include "rbee/hub/name.h"
#include "rbee/hub/settings.h"

namespace rbee::hub {

struct PullOptions {
  Settings settings;
  int64_t memory = 0;           // bytes of the device, for the choice; 0 = unknown
  ProgressCallback progress{};  // of all files together
  // Told before the first byte; to_fetch: bytes that the cache does not have.
  std::function<void(const Choice& choice, int64_t to_fetch)> chosen{};
  // Told when a file's turn comes: in_cache: it needs no download.
  std::function<void(const RepoFile& file, bool in_cache)> next_file{};
  DownloadOptions download{};
};

struct PulledModel {
  std::string commit;
  std::filesystem::path path;    // file, or folder of the snapshot
  std::filesystem::path mmproj;  // the vision tower of a GGUF model; empty = none
  Choice choice;
};

// Chooses the files, fetches what the cache does not have, and logs both. A hub that cannot be
// reached is no error where the cache has the model. Throws as Client, choose_files() and
// download_file() do.
PulledModel pull(const ModelName& name, const PullOptions& options);

struct ModelState {
  std::string commit;
  std::vector<RepoFile> files;     // all of the commit
  std::vector<RepoFile> in_cache;  // of these
  Choice choice;                   // what pull() would take
};
// What the hub has, or the cache where the hub is not asked or cannot be. Fetches no file.
ModelState look_up(const ModelName& name, const PullOptions& options);

struct ModelPath {
  std::string path;
  std::string mmproj;  // as PulledModel's; empty for other names
  std::string name;    // of the file without its ending, or of the repository; empty: see `path`

  // What the text means as a vision tower: a repository has it beside its model.
  const std::string& tower() const { return mmproj.empty() ? path : mmproj; }
};

// The hub's name that --model and its like mean: what begins with hf:, and what a short name, an
// address or a name of library.h stands for unless there is such a file; empty for every other
// text. Throws not_found for "org/repo" without hf:, unless there is such a path, and as
// model_of_library_name() does.
std::optional<std::string> name_on_hub(const std::string& text);

// Pulls what name_on_hub() finds; returns every other text as it is. The one function for all
// places where a model's, an adapter's or another network's path is opened.
ModelPath resolve_model_path(const std::string& text, const PullOptions& options);

}  // namespace rbee::hub
