#include "server/front/worker_command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr std::string_view kFlag = "--kv-events-config";
constexpr int kMostPorts = 65'535;

// The flag's value among a model's flags, to be changed; null: it is not there.
struct FlagPlace {
  std::string* word = nullptr;
  size_t begin = 0;  // of the value in the word
};
FlagPlace find_flag(std::vector<std::string>& flags) {
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string& word = flags[i];
    if (word == kFlag && i + 1 < flags.size()) return {&flags[i + 1], 0};
    if (word.starts_with(kFlag) && word.size() > kFlag.size() && word[kFlag.size()] == '=') {
      return {&flags[i], kFlag.size() + 1};
    }
  }
  return {};
}

std::string text_in(const json& config, const char* key, std::string otherwise) {
  const auto found = config.find(key);
  const bool text = found != config.end() && found->is_string();
  return text ? found->get<std::string>() : std::move(otherwise);
}

// As the worker decides it: others are connected, and many may be to one.
bool is_bound(std::string_view endpoint) {
  return endpoint.find('*') != std::string_view::npos ||
         endpoint.find("::") != std::string_view::npos || endpoint.starts_with("ipc://");
}

std::string moved(const std::string& endpoint, int index) {
  if (index == 0 || !is_bound(endpoint)) return endpoint;
  if (endpoint.starts_with("ipc://")) return cat(endpoint, "_dp", index);
  const size_t colon = endpoint.rfind(':');
  int port = 0;
  const char* const end = endpoint.data() + endpoint.size();
  const auto [ptr, error] = std::from_chars(endpoint.data() + colon + 1, end, port);
  if (error != std::errc{} || ptr != end) return endpoint;  // "tcp://*:*"
  check(port + index <= kMostPorts, kFlag, "the endpoint ", endpoint, " of replica ", index,
        " has a port above ", kMostPorts);
  return cat(endpoint.substr(0, colon + 1), port + index);
}

// Null: nothing is published.
json publisher_config(const std::vector<std::string>& flags) {
  std::vector<std::string> all = flags;
  const FlagPlace place = find_flag(all);
  if (place.word == nullptr) return nullptr;
  json config = json::parse(place.word->substr(place.begin), nullptr, false);
  if (!config.is_object()) return nullptr;
  const auto enabled = config.find("enable_kv_cache_events");
  const bool on = enabled != config.end() && enabled->is_boolean() && enabled->get<bool>();
  return on && text_in(config, "publisher", "zmq") == "zmq" ? config : json(nullptr);
}

PublisherPlace publisher_of(const json& config, int index) {
  return {.endpoint = moved(text_in(config, "endpoint", "tcp://*:5557"), index),
          .replay_endpoint = moved(text_in(config, "replay_endpoint", ""), index),
          .topic = text_in(config, "topic", "")};
}

void move_publisher(std::vector<std::string>& flags, int index) {
  json config = publisher_config(flags);
  if (index == 0 || config.is_null()) return;
  const PublisherPlace publisher = publisher_of(config, index);
  config["endpoint"] = publisher.endpoint;
  if (!publisher.replay_endpoint.empty()) config["replay_endpoint"] = publisher.replay_endpoint;
  const FlagPlace place = find_flag(flags);
  place.word->replace(place.begin, std::string::npos, config.dump());
}

void add_devices(const ServedModel& model, int index, std::vector<std::string>& command) {
  if (model.devices.empty()) return;
  const std::vector<int>& own = model.devices[static_cast<size_t>(index) % model.devices.size()];
  if (own.size() == 1) {
    command.insert(command.end(), {"--cuda-device", cat(own.front())});
    return;
  }
  std::string list;
  for (const int device : own) list += cat(list.empty() ? "" : ",", model.device, ":", device);
  command.insert(command.end(), {"--device", list, "--tensor-parallel-size", cat(own.size())});
}

}  // namespace

std::vector<std::string> worker_command(const ServedModel& model, int index) {
  std::vector<std::string> command{model.program};
  if (!model.worker.empty()) command.push_back(model.worker);
  command.insert(command.end(), {"--model", model.model, "--model-ref", model.name});
  add_devices(model, index, command);
  std::vector<std::string> flags = model.flags;
  move_publisher(flags, index);
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

std::optional<PublisherPlace> kv_publisher(const ServedModel& model, int index) {
  const json config = publisher_config(model.flags);
  return config.is_null() ? std::nullopt : std::optional(publisher_of(config, index));
}

void check_kv_publishers(const std::vector<ServedModel>& models) {
  std::map<std::string, std::string> binder;  // of an endpoint
  for (const ServedModel& model : models) {
    for (int i = 0; i < model.replicas; ++i) {
      const std::optional<PublisherPlace> publisher = kv_publisher(model, i);
      if (!publisher) continue;
      for (const std::string& endpoint : {publisher->endpoint, publisher->replay_endpoint}) {
        if (endpoint.ends_with(":*") || !is_bound(endpoint)) continue;
        const std::string name = cat(model.name, "-", i);
        const auto [found, is_new] = binder.emplace(endpoint, name);
        check(is_new, kFlag, found->second, " and ", name, " would both bind ", endpoint,
              ": each replica takes the next port");
      }
    }
  }
}

}  // namespace rbee::server
