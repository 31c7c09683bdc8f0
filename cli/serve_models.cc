#include "cli/serve_models.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "backends/api/registry.h"
#include "rbee/core/error.h"
#include "rbee/core/experimental.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/core/system/process.h"
#include "rbee/core/written_at.h"
#include "rbee/engine/embedding/source.h"
#include "rbee/engine/image/model_memory.h"
#include "rbee/engine/text/model_memory.h"
#include "rbee/hub/cache.h"
#include "rbee/hub/gguf_names.h"
#include "rbee/hub/library.h"
#include "rbee/hub/pull.h"
#include "workers/programs/programs.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using server::ModelKind;
using server::ServedModel;

// Tokens whose keys and values a worker of a model on demand keeps: by default it would take a part
// of all free memory. A model whose files are not here yet gets what hub::needed_memory() counts.
constexpr int64_t kCacheTokens = 16'384, kFirstCacheTokens = 4'096;

constexpr size_t kCommitDigits = 40;

bool is_program(const fs::path& path) {
  return access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path);
}

std::string worker_name(ModelKind kind, const std::string& device) {
  return cat(kind == ModelKind::image ? "sd-worker-" : "llm-worker-rbee-", device);
}

// This program holds the workers; another one is the configuration's.
void find_program(ServedModel& model) {
  model.worker = worker_name(model.kind, model.device);
  const std::string why = workers::why_not_held(model.worker);
  if (!why.empty()) fail(Code::unsupported, "serve", "model ", model.name, ": ", why);
  // Not its path, where another version may be by the time a worker starts.
  model.program = program_path();
}

int64_t bytes_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const auto bytes = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  }
  int64_t out = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, error)) {
    const std::string ending = entry.path().extension().string();
    const bool weights = ending == ".safetensors" || ending == ".gguf";
    if (weights && entry.is_regular_file(error)) out += bytes_of(entry.path().string());
  }
  return out;
}

// Of a device of this kind that has the most of it; nothing: unknown.
std::optional<int64_t> most_memory(const std::string& device, int64_t MemoryInfo::* which) {
  std::optional<int64_t> out;
  for (const BackendInfo& backend : backends()) {
    if (rbee::name(backend.kind) != device) continue;
    for (int i = 0; i < backend.device_count(); ++i) {
      try {
        out = std::max(out.value_or(0), backend.offer(i).memory.*which);
      } catch (const Error& error) {
        log(LogLevel::warn, "a device's memory cannot be read",
            {{"device", cat(DeviceId{backend.kind, i})}, {"error", error.what()}});
      }
    }
  }
  return out;
}

// A GPU whose memory holds the model and that is not experimental; else the CPU.
void choose_device(ServedModel& model) {
  for (const BackendInfo& backend : backends()) {
    const std::string kind(rbee::name(backend.kind));
    const bool fits = backend.kind != DeviceKind::cpu && experimental(backend.kind).empty() &&
                      most_memory(kind, &MemoryInfo::total).value_or(0) >= model.memory;
    if (!fits) continue;
    model.device = kind;
    model.flags.insert(model.flags.end(), {"--device", "auto"});
    break;
  }
  find_program(model);
}

bool has_file(const hub::Choice& choice, std::string_view part) {
  return std::ranges::any_of(choice.files, [&](const hub::RepoFile& file) {
    return file.path.find(part) != std::string::npos;
  });
}

void keep_tokens(ServedModel& model, int64_t tokens) {
  if (model.kind != ModelKind::chat) return;
  model.flags.insert(model.flags.end(), {"--cache-tokens", cat(tokens)});
}

// Its workers must know them too.
void add_names(ServedModel& model, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    model.adapters.push_back(name);
    model.flags.insert(model.flags.end(), {"--alias", name});
  }
}

// Of a model whose files are in the cache.
void describe_files(ServedModel& model, const std::string& mmproj) {
  if (model.kind == ModelKind::image) {
    model.memory = engine::image_model_memory(model.model, {});
    return;
  }
  if (engine::is_for_embeddings(model.model)) model.kind = ModelKind::embedding;
  const int64_t context = model.kind == ModelKind::chat ? kCacheTokens : 0;
  model.memory = engine::text_model_memory(model.model, {.mmproj = mmproj, .context = context});
  keep_tokens(model, kCacheTokens);
  if (!mmproj.empty()) model.flags.insert(model.flags.end(), {"--mmproj", mmproj});
}

// The same, with an error that names the model and not the server's paths, which are in the log.
void read_files(ServedModel& model, const std::string& mmproj) {
  try {
    describe_files(model, mmproj);
  } catch (const Error& error) {
    log(LogLevel::warn, "a model of the cache cannot be read",
        {{"model", model.name}, {"error", printable_line(error.what())}});
    const bool other = error.code() == Code::unsupported;
    fail(other ? Code::unsupported : Code::io, "serve", "the files of ", model.name,
         other ? " are of a kind that is not read here"
               : " in the cache are damaged or incomplete: rbee pull fetches what is missing, and "
                 "after rbee rm all of them");
  }
}

bool is_whole(const hub::ModelState& state) {
  return std::ranges::all_of(state.choice.files, [&](const hub::RepoFile& file) {
    return std::ranges::count(state.in_cache, file.path, &hub::RepoFile::path) > 0;
  });
}

fs::path snapshot_of(const hub::ModelName& name, const hub::ModelState& state) {
  return hub::Cache(hub::read_settings().cache).snapshot(name.repo, state.commit);
}

// Seconds since 1970 of the newest file; 0: unknown.
int64_t newest_of(const hub::ModelName& name, const hub::ModelState& state) {
  int64_t out = 0;
  const fs::path folder = snapshot_of(name, state);
  for (const hub::RepoFile& file : state.choice.files) {
    out = std::max(out, written_at((folder / file.path).string()));
  }
  return out;
}

// Differs when a file was put into the place of another.
std::string state_of_files(const hub::ModelName& name, const hub::ModelState& state) {
  std::string out = state.commit;
  const fs::path folder = snapshot_of(name, state);
  for (const hub::RepoFile& file : state.choice.files) {
    std::error_code error;
    const auto written = fs::last_write_time(folder / file.path, error);
    out += cat(" ", file.path, ":", file.size, ":", written.time_since_epoch().count());
  }
  return out;
}

// The names of a repository's models in the cache.
std::vector<std::string> names_of(const hub::CachedRepo& repo) {
  std::vector<std::string> out;
  for (const hub::CachedRevision& revision : repo.revisions) {
    const bool is_main = std::ranges::count(revision.refs, "main") > 0;
    if (!is_main && repo.revisions.size() > 1) continue;
    const std::string other = revision.refs.empty() ? revision.commit : revision.refs.front();
    const std::string at = is_main ? "" : cat("@", other);
    std::set<std::string> quantizations;
    for (const hub::RepoFile& file : revision.files) {
      if (!hub::is_gguf_model(file.path)) continue;
      if (auto found = hub::quantization_of(file.path); !found.empty()) quantizations.insert(found);
    }
    if (quantizations.size() < 2) out.push_back(cat("hf:", repo.repo, at));
    if (quantizations.size() < 2) continue;
    for (const std::string& one : quantizations) {
      out.push_back(cat("hf:", repo.repo, ":", one, at));
    }
  }
  return out;
}

}  // namespace

void find_programs(server::FrontConfig& config) {
  for (ServedModel& model : config.models) {
    if (model.program.empty()) {
      find_program(model);
    } else if (!is_program(model.program)) {
      fail(Code::not_found, "serve", "the program of ", model.name,
           " cannot be run: ", model.program);
    }
  }
}

void count_memory(ServedModel& model) {
  model.bytes = bytes_of(model.model);
  model.modified = written_at(model.model);
  if (model.memory == 0 && model.bytes > 0) model.memory = hub::needed_memory(model.bytes);
}

std::optional<int64_t> free_memory(const std::string& device) {
  return most_memory(device, &MemoryInfo::free);
}

hub::ModelState HubModels::look_up(const hub::ModelName& name, bool pull) const {
  hub::PullOptions how{.settings = hub::read_settings()};
  how.settings.offline = how.settings.offline || !pull;
  if (!pull && !hub::Cache(how.settings.cache).find(name.repo)) {
    fail(Code::not_found, "serve", hub::to_text(name),
         " is not in the cache: rbee pull fetches it, or rbee serve --pull");
  }
  return hub::look_up(name, how);
}

ServedModel HubModels::describe(const hub::ModelName& name, const hub::ModelState& state) const {
  const hub::Choice& choice = state.choice;
  ServedModel out{.name = hub::to_text(name),
                  .model = hub::to_text(name),
                  .keep_alive = options_.keep_alive,
                  .files = cat(name.repo, "@", state.commit, "/", choice.model, "+", choice.mmproj),
                  .bytes = choice.bytes()};
  if (has_file(choice, "adapter_config.json")) {
    fail(Code::unsupported, "serve", out.name, " is an adapter, which needs its model");
  }
  if (has_file(choice, "model_index.json")) out.kind = ModelKind::image;
  if (is_whole(state)) {
    const fs::path folder = snapshot_of(name, state);
    out.modified = newest_of(name, state);
    out.model = (choice.model.empty() ? folder : folder / choice.model).string();
    read_files(out, choice.mmproj.empty() ? "" : (folder / choice.mmproj).string());
  } else {
    const bool embeds = has_file(choice, "_Pooling/");
    if (embeds) out.kind = ModelKind::embedding;
    out.kind_known = embeds || out.kind == ModelKind::image;
    out.memory = hub::needed_memory(choice.bytes());
    keep_tokens(out, kFirstCacheTokens);
  }
  if (!choice.model.empty() && out.kind != ModelKind::image) {
    add_names(out, hub::library_names_of(name.repo, hub::quantization_of(choice.model)));
  }
  choose_device(out);
  return out;
}

ServedModel HubModels::describe_made(const std::string& name, const fs::path& model,
                                     const fs::path& mmproj) const {
  ServedModel out{.name = name, .model = model.string(), .keep_alive = options_.keep_alive};
  out.bytes = bytes_of(out.model);
  describe_files(out, mmproj.string());
  choose_device(out);
  return out;
}

HubModels::Read HubModels::read(const std::string& name) const {
  Read out;
  try {
    const hub::ModelName parsed = hub::parse_model_name(name);
    const hub::ModelState state = look_up(parsed, false);
    out.state = state_of_files(parsed, state);
    const auto known = read_.find(name);
    if (known != read_.end() && known->second.state == out.state) return known->second;
    out.model = describe(parsed, state);
  } catch (const Error& error) {
    const auto known = read_.find(name);
    const bool told = known != read_.end() && known->second.state == out.state;
    if (told) return out;
    log(LogLevel::warn, "a model of the cache is left out",
        {{"model", name}, {"error", printable_line(error.what())}});
  }
  return out;
}

std::vector<ServedModel> HubModels::list() {
  const std::scoped_lock lock(mutex_);
  std::vector<ServedModel> out;
  std::map<std::string, Read> all;
  for (const hub::CachedRepo& repo : hub::Cache(hub::read_settings().cache).list()) {
    for (const std::string& name : names_of(repo)) {
      const Read& one = all.emplace(name, read(name)).first->second;
      if (one.model) out.push_back(*one.model);
    }
  }
  read_ = std::move(all);
  return out;
}

std::vector<std::string> HubModels::names(const std::string& repo) const {
  const auto found = hub::Cache(hub::read_settings().cache).find(repo);
  return found ? names_of(*found) : std::vector<std::string>();
}

bool HubModels::has_files(const ServedModel& model) {
  const std::string repo = model.files.substr(0, model.files.find('@'));
  const std::string commit = model.files.substr(repo.size() + 1, kCommitDigits);
  std::error_code error;
  return fs::exists(hub::Cache(hub::read_settings().cache).snapshot(repo, commit), error);
}

std::optional<std::string> HubModels::hub_name(const std::string& name) {
  hub::check_written_name(name);
  if (const auto found = hub::model_of_library_name(name)) return found;
  if (const auto found = hub::model_of_address(name)) return found;
  std::string text = name;
  constexpr std::string_view kTag = ":latest";  // Ollama's clients write it
  if (text.ends_with(kTag)) text.resize(text.size() - kTag.size());
  return hub::is_hub_name(text) ? std::optional(text) : std::nullopt;
}

ServedModel HubModels::describe(const std::string& name) const {
  const hub::ModelName parsed = hub::parse_model_name(name);
  return describe(parsed, look_up(parsed, false));
}

std::optional<ServedModel> HubModels::find(const std::string& name) const {
  const std::optional<std::string> text = hub_name(name);
  if (!text) return std::nullopt;
  const hub::ModelName parsed = hub::parse_model_name(*text);
  return describe(parsed, look_up(parsed, options_.pull));
}

}  // namespace rbee::tools
