// The pool's models: which one a request means, and what their workers take.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/ollama/names.h"
#include "server/front/pool.h"
#include "server/front/worker_command.h"

namespace rbee::server {

std::shared_ptr<Replica> Pool::make_replica(const ServedModel& model, int index) {
  return std::make_shared<Replica>(io_, config_,
                                   ReplicaOptions{.name = cat(model.name, "-", index),
                                                  .command = worker_command(model, index),
                                                  .environment = environment_,
                                                  .token = token_,
                                                  .on_demand = model.on_demand()},
                                   [this] { on_change(); });
}

// Returns its index: the place of a model on demand that is gone, if there is one.
size_t Pool::add(ServedModel model) {
  const bool may_reuse = model.on_demand();
  size_t index = models_.size();
  for (size_t i = 0; may_reuse && i < models_.size(); ++i) {
    if (models_[i].gone && is_idle(i)) index = i;
  }
  if (index < models_.size()) {
    const auto member = std::ranges::find(members_, index, &Member::model);
    member->replica = make_replica(model, 0);
  }
  for (int i = 0; index == models_.size() && i < model.replicas; ++i) {
    members_.push_back({.model = index, .replica = make_replica(model, i)});
  }
  Model added{.served = std::move(model), .used = std::chrono::steady_clock::now()};
  if (added.served.on_demand()) {
    added.replica = std::ranges::find(members_, index, &Member::model)->replica;
    added.keep_alive = *added.served.keep_alive;
  }
  if (index < models_.size()) {
    models_[index] = std::move(added);
  } else {
    models_.push_back(std::move(added));
  }
  note_limits();
  return index;
}

// Where routers hear what the workers' caches hold.
nlohmann::json Pool::kv_publishers() const {
  nlohmann::json out = nlohmann::json::array();
  std::map<size_t, int> seen;  // replicas of a model
  for (const Member& member : members_) {
    const ServedModel& model = models_[member.model].served;
    const auto publisher = kv_publisher(model, seen[member.model]++);
    if (!publisher) continue;
    out.push_back({{"model", model.name},
                   {"worker", member.replica->name()},
                   {"state", state_name(member.replica->state())},
                   {"endpoint", publisher->endpoint},
                   {"replay_endpoint", publisher->replay_endpoint},
                   {"topic", publisher->topic}});
  }
  return out;
}

// Of models whose files were not here when their workers were started.
void Pool::note_kinds() {
  for (const Member& member : members_) {
    ServedModel& served = models_[member.model].served;
    const auto& facts = member.replica->facts();
    const bool tells = member.replica->state() == ReplicaState::ready && facts.is_object();
    if (served.kind_known || !tells) continue;
    served.kind = facts.contains("ranks") ? ModelKind::embedding : ModelKind::chat;
    served.kind_known = true;
  }
}

void Pool::note_limits() {
  std::vector<size_t> of_models(models_.size());
  for (const Member& member : members_) {
    size_t& most = of_models[member.model];
    most = std::max(most, member.replica->max_body_bytes());
  }
  for (size_t slot = 0; slot < max_bodies_.size(); ++slot) {
    size_t most = 0;
    for (size_t i = 0; i < models_.size(); ++i) {
      const bool counts =
          slot == max_bodies_.size() - 1 || slot == static_cast<size_t>(models_[i].served.kind);
      if (!counts || models_[i].gone) continue;
      most = std::max(most, of_models[i]);
      if (of_models[i] == 0) {
        most = 0;
        break;
      }
    }
    max_bodies_[slot] = most;
  }
}

std::optional<size_t> Pool::max_body_bytes(const std::optional<ModelKind>& kind) const {
  const size_t bytes = max_bodies_[kind ? static_cast<size_t>(*kind) : max_bodies_.size() - 1];
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

// The first model that is served and for which this is true.
std::optional<size_t> Pool::find_if_served(const std::function<bool(const Model&)>& is_it) const {
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i].gone && is_it(models_[i])) return i;
  }
  return std::nullopt;
}

std::optional<size_t> Pool::find_model(const Wanted& wanted) const {
  return wanted.model.empty() ? first_of_kind(wanted) : find_named(wanted.model, wanted.ollama);
}

std::optional<size_t> Pool::find_named(const std::string& name, bool as_ollama) const {
  auto found = find_if_served([&](const Model& model) { return model.served.name == name; });
  const auto has = [&](const std::vector<std::string>& names) {
    return std::ranges::count(names, name) > 0;
  };
  if (!found)
    found = find_if_served([&](const Model& model) { return has(model.served.adapters); });
  if (!found) found = find_if_served([&](const Model& model) { return has(model.aliases); });
  return !found && as_ollama ? find_ollama(name) : found;
}

// A name that Ollama's clients write in another way: "llama3.2:latest".
std::optional<size_t> Pool::find_ollama(const std::string& name) const {
  const auto is_it = [&](const std::string& known) { return same_model_name(known, name); };
  return find_if_served([&](const Model& model) {
    return is_it(model.served.name) || std::ranges::any_of(model.served.adapters, is_it) ||
           std::ranges::any_of(model.aliases, is_it);
  });
}

// Whether the model ranks documents, as its worker reported. Nothing if none was ready yet.
std::optional<bool> Pool::ranks(size_t model) const {
  for (const Member& member : members_) {
    const auto& facts = member.replica->facts();
    if (member.model != model || !facts.is_object()) continue;
    const auto found = facts.find("ranks");
    if (found != facts.end() && found->is_boolean()) return found->get<bool>();
  }
  return std::nullopt;
}

// The first embedding model that is known to do what the request needs (rank or embed), else the
// first that may.
std::optional<size_t> Pool::first_of_kind(const Wanted& wanted) const {
  std::optional<size_t> first, may;
  for (size_t i = 0; i < models_.size(); ++i) {
    const ServedModel& served = models_[i].served;
    const bool other = wanted.kind && (!served.kind_known || served.kind != *wanted.kind);
    if (models_[i].gone || other) continue;
    if (!first) first = i;
    if (!wanted.ranks) break;
    const std::optional<bool> known = ranks(i);
    if (known == wanted.ranks) return i;
    if (!known && !may) may = i;
  }
  return may ? may : first;
}

}  // namespace rbee::server
