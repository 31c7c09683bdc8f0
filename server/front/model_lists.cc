#include "server/front/model_lists.h"

#include <chrono>

#include "rbee/core/cat.h"
#include "server/front/made_models.h"
#include "server/front/ollama_lists.h"
#include "server/http/clock.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Duration = std::chrono::steady_clock::duration;

json facts_of(const Replica& replica) {
  json facts = {{"name", replica.name()},
                {"state", state_name(replica.state())},
                {"restarts", replica.restarts()},
                {"running", replica.busy}};
  if (replica.running()) facts["pid"] = replica.pid();
  if (replica.progress().is_object()) facts["progress"] = replica.progress();
  if (!replica.problem().empty()) facts["last_end"] = replica.problem();
  return facts;
}

// An entry of the list in Anthropic's form.
json anthropic_entry(const json& entry) {
  const auto created = std::chrono::seconds(entry.at("created").get<int64_t>());
  return {{"type", "model"},
          {"id", entry.at("id")},
          {"display_name", entry.at("id")},
          {"created_at", iso8601(std::chrono::system_clock::time_point(created))}};
}

int64_t now_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

ModelLists::ModelLists(const Pool& pool, const FileRoutes& files)
    : pool_(pool), files_(files), created_(now_seconds()) {}

// A number from a worker's /health; 0 if no worker of the model reported it.
int64_t ModelLists::fact(size_t model, const char* name) const {
  for (const Pool::Member& member : pool_.members()) {
    const json& facts = member.replica->facts();
    if (member.model != model || !facts.is_object()) continue;
    const auto found = facts.find(name);
    if (found != facts.end() && found->is_number_integer()) return found->get<int64_t>();
  }
  return 0;
}

json ModelLists::entries() const {
  json list = json::array();
  const Records records = files_.records();
  for (size_t i = 0; i < pool_.models().size(); ++i) {
    const ServedModel& model = pool_.models()[i].served;
    if (pool_.models()[i].gone || is_listed_with_another(records, model.name)) continue;
    json entry = {{"id", model.name},
                  {"object", "model"},
                  {"created", created_},
                  {"owned_by", "rbee"},
                  {"kind", kind_name(model.kind)}};
    if (const int64_t context = fact(i, "context_length"); context > 0) {
      entry["max_model_len"] = context;
    }
    list.push_back(entry);
    for (const std::string& adapter : model.adapters) {
      entry["id"] = adapter;
      entry["parent"] = model.name;
      list.push_back(entry);
    }
    add_made_ids(records, model.name, entry, list);
  }
  return list;
}

json ModelLists::models(bool anthropic) const {
  json list = entries();
  if (!anthropic) return {{"object", "list"}, {"data", std::move(list)}};
  json data = json::array();
  for (const json& entry : list) data.push_back(anthropic_entry(entry));
  return {{"has_more", false},
          {"first_id", list.empty() ? json() : list.front().at("id")},
          {"last_id", list.empty() ? json() : list.back().at("id")},
          {"data", std::move(data)}};
}

std::optional<json> ModelLists::model(const std::string& id, bool anthropic) const {
  for (const json& entry : entries()) {
    if (entry.at("id") == id) return anthropic ? anthropic_entry(entry) : entry;
  }
  return std::nullopt;
}

json ModelLists::names() const {
  json models = json::array();
  const Records records = files_.records();
  for (size_t i = 0; i < pool_.models().size(); ++i) {
    const ServedModel& model = pool_.models()[i].served;
    if (pool_.models()[i].gone || is_listed_with_another(records, model.name)) continue;
    json entry = {{"name", model.name}, {"kind", kind_name(model.kind)}};
    for (const char* name : {"max_pictures", "default_width", "default_height", "default_steps"}) {
      if (const int64_t value = fact(i, name); value > 0) entry[name] = value;
    }
    models.push_back(entry);
    for (const std::string& adapter : model.adapters) {
      entry["name"] = adapter;
      models.push_back(entry);
    }
    add_made_names(records, model.name, entry, models);
  }
  return models;
}

json ModelLists::workers() const {
  std::map<size_t, json> models;
  const Records records = files_.records();
  for (const Pool::Member& member : pool_.members()) {
    const ServedModel& model = pool_.models()[member.model].served;
    if (pool_.models()[member.model].gone) continue;
    json& entry = models[member.model];
    entry["name"] = model.name;
    entry["kind"] = kind_name(model.kind);
    std::vector<std::string> aliases = pool_.models()[member.model].aliases;
    aliases.insert(aliases.end(), model.adapters.begin(), model.adapters.end());
    if (!aliases.empty()) entry["aliases"] = std::move(aliases);
    std::vector<std::string> made = made_names(records, model.name);
    if (!made.empty()) entry["made"] = std::move(made);
    entry["workers"].push_back(facts_of(*member.replica));
  }
  json out = json::array();
  for (auto& [index, entry] : models) out.push_back(std::move(entry));
  return out;
}

// A model that is unloaded is listed as it was when it was loaded.
json ModelLists::tags(const std::vector<Pool::WorkerReply>& replies) {
  const std::map<size_t, json> told = lists_of(pool_, replies);
  const Records records = files_.records();
  std::map<std::string, json> tags;
  json models = json::array();
  for (size_t i = 0; i < pool_.models().size(); ++i) {
    const ServedModel& model = pool_.models()[i].served;
    if (pool_.models()[i].gone || is_listed_with_another(records, model.name)) continue;
    json& known = tags[cat(model.name, " ", model.files)];
    known = std::move(tags_[cat(model.name, " ", model.files)]);
    if (const auto found = told.find(i); found != told.end()) known = found->second;
    const bool unloaded = model.on_demand() && model.kind != ModelKind::image;
    if (known.is_null() && unloaded) known = tags_of(model, created_);
    if (known.is_null() || (!model.on_demand() && !told.contains(i))) continue;
    for (json& tag : known) {
      if (model.modified > 0) tag["modified_at"] = time_text(model.modified);
      if (model.bytes > 0) tag["size"] = model.bytes;
      models.push_back(tag);
    }
    add_made_tags(records, model.name, known.front(), models);
  }
  tags_ = std::move(tags);
  return {{"models", std::move(models)}};
}

// A worker does not know when its model will be unloaded.
json ModelLists::loaded(const std::vector<Pool::WorkerReply>& replies) const {
  const Records records = files_.records();
  json models = json::array();
  for (auto& [index, list] : lists_of(pool_, replies)) {
    const auto end = pool_.expiry(index);
    const auto left = end ? *end - std::chrono::steady_clock::now() : Duration();
    for (json model : list) {
      if (end) model["expires_at"] = iso8601(std::chrono::system_clock::now() + left);
      add_loaded(records, pool_.models()[index].served.name, model, models);
    }
  }
  return {{"models", std::move(models)}};
}

}  // namespace rbee::server
