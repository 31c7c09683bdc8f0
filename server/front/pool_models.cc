// The pool's models: which one a request means, and what their workers take.

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/ollama/names.h"
#include "server/front/pool.h"

namespace rbee::server {
namespace {

std::vector<std::string> command_of(const ServedModel& model, int index) {
  std::vector<std::string> command{model.program};
  if (!model.worker.empty()) command.push_back(model.worker);
  command.insert(command.end(), {"--model", model.model, "--model-ref", model.name});
  if (!model.devices.empty()) {
    const size_t turn = static_cast<size_t>(index) % model.devices.size();
    command.insert(command.end(), {"--cuda-device", cat(model.devices[turn])});
  }
  command.insert(command.end(), model.flags.begin(), model.flags.end());
  return command;
}

}  // namespace

std::shared_ptr<Replica> Pool::make_replica(const ServedModel& model, int index) {
  return std::make_shared<Replica>(io_, config_,
                                   ReplicaOptions{.name = cat(model.name, "-", index),
                                                  .command = command_of(model, index),
                                                  .environment = environment_,
                                                  .token = token_,
                                                  .on_demand = model.on_demand()},
                                   [this] { on_change(); });
}

size_t Pool::add(ServedModel model) {
  const std::optional<size_t> place = free_place();
  const size_t index = place.value_or(models_.size());
  if (place) {
    // Both are on demand, with one worker.
    std::ranges::find(members_, index, &Member::model)->replica = make_replica(model, 0);
  } else {
    models_.emplace_back();
    for (int replica = 0; replica < model.replicas; ++replica) {
      members_.push_back({.model = index, .replica = make_replica(model, replica)});
    }
  }
  const auto keep_alive = model.keep_alive.value_or(std::chrono::milliseconds(0));
  const auto worker = std::ranges::find(members_, index, &Member::model)->replica;
  const auto only = model.on_demand() ? worker : nullptr;
  models_[index] = {.served = std::move(model), .replica = only, .keep_alive = keep_alive};
  note_limits();
  return index;
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
      if (!counts) continue;
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

std::optional<size_t> Pool::find_model(const Wanted& wanted) const {
  if (wanted.model.empty()) return first_of_kind(wanted);
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i].gone && models_[i].served.name == wanted.model) return i;
  }
  for (size_t i = 0; i < models_.size(); ++i) {
    if (models_[i].gone) continue;
    if (std::ranges::count(models_[i].served.adapters, wanted.model) > 0) return i;
  }
  return wanted.ollama ? find_ollama(wanted.model) : std::nullopt;
}

// A name that Ollama's clients write in another way: "llama3.2:latest".
std::optional<size_t> Pool::find_ollama(const std::string& name) const {
  const auto is_it = [&](const std::string& known) { return same_model_name(known, name); };
  for (size_t i = 0; i < models_.size(); ++i) {
    const ServedModel& model = models_[i].served;
    if (models_[i].gone) continue;
    if (is_it(model.name) || std::ranges::any_of(model.adapters, is_it)) return i;
  }
  return std::nullopt;
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
    if (models_[i].gone || (wanted.kind && models_[i].served.kind != *wanted.kind)) continue;
    if (!first) first = i;
    if (!wanted.ranks) break;
    const std::optional<bool> known = ranks(i);
    if (known == wanted.ranks) return i;
    if (!known && !may) may = i;
  }
  return may ? may : first;
}

// Asks for a model that is not served yet.
void Pool::look_for(const Held& exchange) {
  const bool asked = finder_.ask(exchange->wanted.model, [this, exchange](const FoundModel& found) {
    on_found(exchange, found);
  });
  if (!asked) refuse(exchange, 429, {"OVERLOADED", "Too many models are looked for"});
}

void Pool::on_found(const Held& exchange, const FoundModel& found) {
  if (exchange->over) return;
  if (!found.model) {
    const std::string message =
        found.problem.empty() ? no_such_model(exchange->wanted) : valid_text(found.problem);
    if (found.retriable) return refuse(exchange, 503, {"MODEL_UNAVAILABLE", message});
    return refuse(exchange, 404, {"model_not_found", message, "model"});
  }
  const std::optional<size_t> index = offer(*found.model);
  if (!index) return refuse(exchange, 503, {"MODEL_UNAVAILABLE", "Too many models are served"});
  take(exchange, *index);
}

}  // namespace rbee::server
