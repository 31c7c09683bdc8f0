// The pool's models of the hub's cache: which files a name stands for now, and which models come
// and go.

#include <algorithm>
#include <utility>

#include "rbee/core/log.h"
#include "server/apis/ollama/names.h"
#include "server/front/model_store.h"
#include "server/front/paths.h"
#include "server/front/pool.h"
#include "server/front/worker_command.h"

namespace rbee::server {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMostAliases = 16;  // of a model
constexpr std::chrono::seconds kListEvery{2};

}  // namespace

// Its name or alias that a request wrote, perhaps as Ollama's clients do.
std::string Pool::known_name(const Model& model, const std::string& written) {
  for (const std::string& alias : model.aliases) {
    if (alias == written) return alias;
  }
  if (written.empty() || same_model_name(model.served.name, written)) return model.served.name;
  const auto alias = std::ranges::find_if(
      model.aliases, [&](const std::string& one) { return same_model_name(one, written); });
  return alias == model.aliases.end() ? model.served.name : *alias;
}

std::string Pool::listed_name(const ServedModel& model, const std::string& written) {
  if (model.name == written || std::ranges::count(model.adapters, written) == 1) return written;
  const auto adapter = std::ranges::find_if(
      model.adapters, [&](const std::string& one) { return same_model_name(one, written); });
  const bool own = same_model_name(model.name, written) || adapter == model.adapters.end();
  return own ? model.name : *adapter;
}

// Nothing runs for it, and no request waits for it.
bool Pool::is_idle(size_t model) const {
  const Replica* replica = on_demand(model);
  return replica != nullptr && replica->state() == ReplicaState::unloaded &&
         models_[model].users == 0;
}

void Pool::look_for(const Held& exchange, const std::string& name) {
  exchange->looked_for = finder_.ask(name, exchange->request.sender(),
                                     [this, exchange, name](const FoundModel& found) {
                                       exchange->looked_for.reset();
                                       on_found(exchange, name, found);
                                     });
  if (!exchange->looked_for) {
    refuse(exchange, 429, {"OVERLOADED", "Too many models are looked for"});
  }
}

void Pool::on_found(const Held& exchange, const std::string& name, const FoundModel& found) {
  if (exchange->over) return;
  const auto known = find_if_served([&](const Model& model) { return model.served.name == name; });
  const bool loaded = known && on_demand(*known)->state() != ReplicaState::unloaded;
  if (loaded) return enter(exchange, *known);  // another request was first
  if (!found.model) {
    const bool left = known && !found.retriable && is_idle(*known);
    if (left) models_[*known].gone = true;
    if (left && exchange->wanted.model.empty()) return begin_model(exchange);  // another one
    const std::string problem = valid_text(found.problem);
    const std::string message =
        problem.empty() ? no_such_model(exchange->wanted) : without_folders(problem);
    if (message != problem) {  // the log may have the paths
      log(LogLevel::warn, "a model is not found", {{"model", name}, {"problem", problem}});
    }
    if (found.invalid) return refuse(exchange, 400, {"INVALID_REQUEST", message, "model"});
    if (found.retriable) return refuse(exchange, 503, {"MODEL_UNAVAILABLE", message});
    return refuse(exchange, 404, {"model_not_found", message, "model"});
  }
  if (answered_early(exchange, *found.model, true)) return;
  std::optional<size_t> index = settle(*found.model);
  if (!index) {
    index = add(*found.model);
    models_[*index].listed = false;
  }
  note_alias(*index, name);
  if (exchange->wanted.only_unloads) return unload(exchange, *index);
  enter(exchange, *index);
}

// Puts what was found into the place of the model that has its files, or its name; nothing if
// there is none. A model that is loaded stays as it is.
std::optional<size_t> Pool::settle(const ServedModel& found) {
  const auto named =
      find_if_served([&](const Model& model) { return model.served.name == found.name; });
  const auto same =
      find_if_served([&](const Model& model) { return model.served.files == found.files; });
  const std::optional<size_t> index = same ? same : named;
  if (same && named && *same != *named && is_idle(*named)) models_[*named].gone = true;
  if (index && on_demand(*index)->state() == ReplicaState::unloaded) replace(*index, found);
  return index;
}

// Its files are other ones, or lie elsewhere. Its name stays.
void Pool::replace(size_t index, ServedModel found) {
  Model& model = models_[index];
  if (found.files != model.served.files) model.aliases.clear();
  found.name = model.served.name;
  model.served = std::move(found);
  on_demand(index)->set_command(worker_command(model.served, 0));
}

void Pool::note_alias(size_t index, const std::string& name) {
  for (Model& model : models_) std::erase(model.aliases, name);
  std::vector<std::string>& aliases = models_[index].aliases;
  if (name == models_[index].served.name) return;
  if (aliases.size() >= kMostAliases) aliases.erase(aliases.begin());
  aliases.push_back(name);
}

// A model that only a request named, which could not be loaded, or was unloaded, or left the cache:
// the next request that names it looks it up anyway.
void Pool::forget_idle() {
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i].listed && is_idle(i)) models_[i].gone = true;
  }
}

// Its files are there, and its record is the same.
bool Pool::is_current(const Model& model) const {
  return model.served.files.empty() || !hooks_.has_files || hooks_.has_files(model.served);
}

// It gets no new requests, and is unloaded after those that run.
void Pool::let_go(Model& model) {
  log(LogLevel::info, "a model's files or record changed", {{"model", model.served.name}});
  model.gone = true;
  model.keep_alive = std::chrono::milliseconds(0);
  unload_idle();
}

// A client changed a made model while the request waited for it: its name is looked up again, as
// often as it changes before the request has waited too long (deadline_of()).
bool Pool::look_again(const Held& exchange) {
  Model& model = models_[*exchange->model];
  if (model.served.record.empty()) return false;
  --model.users;
  exchange->model.reset();
  begin_model(exchange);
  return true;
}

// Another process deleted the files of a loaded model, or changed its record.
void Pool::drop_deleted() {
  for (size_t i = 0; i < models_.size(); ++i) {  // one that goes may make place for more
    Model& model = models_[i];
    const bool candidate = !model.gone && !model.listed && !model.served.files.empty();
    if (!candidate || model.replica->state() != ReplicaState::ready) continue;
    if (!is_current(model)) let_go(model);
  }
}

void Pool::refresh(std::function<void()> done) {
  const uint64_t changes = hooks_.files ? hooks_.files->changes() : 0;
  const bool fresh = changes == listed_changes_ && steady_clock::now() - listed_at_ < kListEvery;
  if (!hooks_.list_models || fresh) return done();
  listing_.push_back(std::move(done));
  if (listing_.size() > 1) return;
  finder_.list([this, changes](const std::optional<std::vector<ServedModel>>& models) {
    listed_at_ = steady_clock::now();
    listed_changes_ = changes;
    if (models) on_listed(*models);
    for (const auto& step : std::exchange(listing_, {})) step();
  });
}

void Pool::on_listed(const std::vector<ServedModel>& found) {
  for (Model& model : models_) {
    if (!model.served.files.empty()) model.listed = false;
  }
  for (const ServedModel& one : found) {
    std::optional<size_t> index = settle(one);
    if (!index) index = add(one);
    Model& model = models_[*index];
    if (model.served.name != one.name) note_alias(*index, one.name);
    model.listed = true;
    if (model.served.files == one.files) model.served.modified = one.modified;  // was not fetched
  }
  drop_deleted();
  forget_idle();
}

}  // namespace rbee::server
