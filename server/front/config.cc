#include "server/front/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"
#include "rbee/core/served_name.h"
#include "server/front/keep_alive.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr int64_t kMostBytes = int64_t{1} << 50;

// An object of the file. Reading removes its fields one by one; what is left is unknown.
class Fields {
 public:
  Fields(const json& object, std::string where, std::string_view source)
      : object_(object), where_(std::move(where)), source_(source) {
    require(object.is_object(), where_.empty() ? "the file" : where_, "must be an object");
    for (const auto& [key, value] : object.items()) left_.insert(key);
  }

  [[noreturn]] void wrong(std::string_view field, std::string_view what) const {
    fail(Code::invalid_argument, "serve", source_, ": ", field, " ", what);
  }
  void require(bool holds, std::string_view field, std::string_view what) const {
    if (!holds) wrong(field, what);
  }
  std::string path(std::string_view key) const {
    return cat(where_, where_.empty() ? "" : ".", key);
  }
  // Null when absent.
  const json* take(const std::string& key) {
    left_.erase(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  std::optional<std::string> text(const std::string& key) {
    const json* value = take(key);
    if (value == nullptr) return std::nullopt;
    require(value->is_string() && !value->get_ref<const std::string&>().empty(), path(key),
            "must be a string that is not empty");
    return value->get<std::string>();
  }
  std::string one_of(const std::string& key, const std::vector<std::string>& allowed,
                     const std::string& otherwise) {
    const std::string value = text(key).value_or(otherwise);
    std::string all;
    for (const std::string& name : allowed) all += cat(all.empty() ? "" : ", ", name);
    require(std::find(allowed.begin(), allowed.end(), value) != allowed.end(), path(key),
            cat("must be one of ", all));
    return value;
  }
  template <typename T>
  void number(const std::string& key, int64_t low, int64_t high, T& out) {
    const json* value = take(key);
    if (value == nullptr) return;
    out = static_cast<T>(integer(*value, path(key), low, high));
  }
  int64_t integer(const json& value, std::string_view field, int64_t low, int64_t high) const {
    const bool fits = value.is_number_integer() && value.get<double>() >= double(low) &&
                      value.get<double>() <= double(high);
    require(fits, field, cat("must be an integer from ", low, " to ", high));
    return value.get<int64_t>();
  }
  const json& list(const std::string& key, const json& value, size_t most) const {
    require(value.is_array() && value.size() <= most, path(key),
            cat("must be an array of at most ", most));
    return value;
  }
  void finish() const {
    if (!left_.empty()) wrong(path(*left_.begin()), "is not known");
  }

 private:
  const json& object_;
  const std::string where_;
  const std::string_view source_;
  std::set<std::string> left_;
};

ModelKind kind_of(std::string_view name) {
  if (name == "image") return ModelKind::image;
  return name == "embedding" ? ModelKind::embedding : ModelKind::chat;
}

std::optional<std::chrono::milliseconds> keep_alive_in(const json& value) {
  if (value.is_number()) return keep_alive_of(value.get<double>());
  return value.is_string() ? parse_keep_alive(value.get_ref<const std::string&>()) : std::nullopt;
}

// A number for each replica, or a list for each.
void parse_devices(const Fields& fields, const json& devices, ServedModel& model) {
  const auto ordinal = [&](const json& value) {
    return static_cast<int>(fields.integer(value, fields.path("devices[]"), 0, 1023));
  };
  bool several = false;
  for (const json& replica : fields.list("devices", devices, 64)) {
    std::vector<int>& own = model.devices.emplace_back();
    if (!replica.is_array()) {
      own.push_back(ordinal(replica));
      continue;
    }
    fields.require(!replica.empty() && replica.size() <= 64, fields.path("devices[]"),
                   "must be a number, or an array of 1 to 64");
    for (const json& device : replica) own.push_back(ordinal(device));
    const std::set<int> different(own.begin(), own.end());
    fields.require(different.size() == own.size(), fields.path("devices[]"),
                   "must not have a device twice: each rank needs its own");
    several = several || own.size() > 1;
  }
  if (!several) return;
  fields.require(model.kind == ModelKind::chat, fields.path("devices"),
                 "must have one device for each replica, where kind is not chat");
  fields.require(model.device != "cpu", fields.path("devices"),
                 "must have one device for each replica, where device is cpu");
  for (const char* flag : {"-tp", "--tensor-parallel-size", "--device", "--cuda-device",
                           "--rocm-device", "--metal-device"}) {
    const bool given = std::ranges::any_of(model.flags, [&](const std::string& word) {
      return word == flag || word.starts_with(cat(flag, "="));
    });
    fields.require(!given, fields.path("flags"),
                   cat("must not have ", flag, ", which devices decides"));
  }
}

ServedModel parse_model(const json& object, const std::string& where, std::string_view source) {
  Fields fields(object, where, source);
  ServedModel model;
  const std::optional<std::string> name = fields.text("name");
  fields.require(name && is_served_name(*name), fields.path("name"),
                 cat("must be ", kServedNameRule));
  model.name = *name;
  model.kind = kind_of(fields.one_of("kind", {"chat", "image", "embedding"}, "chat"));
  model.device = fields.one_of("device", {"cpu", "cuda", "rocm", "metal"}, "cpu");
  model.program = fields.text("program").value_or("");
  const std::optional<std::string> path = fields.text("model");
  fields.require(path.has_value(), fields.path("model"), "is required: the path of the model");
  model.model = *path;
  if (const json* flags = fields.take("flags")) {
    for (const json& flag : fields.list("flags", *flags, 256)) {
      fields.require(flag.is_string(), fields.path("flags"), "must hold strings");
      model.flags.push_back(flag.get<std::string>());
    }
  }
  if (const json* devices = fields.take("devices")) parse_devices(fields, *devices, model);
  fields.number("replicas", 1, 64, model.replicas);
  fields.number("memory_bytes", 0, kMostBytes, model.memory);
  if (const json* value = fields.take("keep_alive")) {
    model.keep_alive = keep_alive_in(*value);
    fields.require(model.keep_alive.has_value(), fields.path("keep_alive"),
                   "must be a duration such as \"5m\", or a number of seconds");
    fields.require(model.replicas == 1, fields.path("replicas"), "must be 1 beside keep_alive");
  }
  fields.finish();
  return model;
}

void parse_policy(Fields& fields, FrontConfig& config) {
  const auto duration = [&](const char* key, int64_t low, int64_t high, auto& out) {
    int64_t count = out.count();
    fields.number(key, low, high, count);
    out = std::decay_t<decltype(out)>(count);
  };
  fields.number("max_memory_bytes", 0, kMostBytes, config.max_memory);
  fields.number("max_waiting", 0, 1'000'000, config.max_waiting);
  fields.number("max_answer_bytes", 1024, int64_t{1} << 40, config.max_answer_bytes);
  fields.number("max_tries", 1, 100, config.max_tries);
  const std::string routing =
      fields.one_of("routing", {"prefix_aware", "least_requests"}, "prefix_aware");
  config.routing =
      routing == "least_requests" ? RoutingPolicy::least_requests : RoutingPolicy::prefix_aware;
  fields.number("max_restarts", 0, 1'000'000, config.max_restarts);
  duration("wait_seconds", 0, 86'400, config.wait);
  duration("back_off_ms", 1, 3'600'000, config.back_off);
  duration("max_back_off_ms", 1, 3'600'000, config.max_back_off);
  duration("stable_seconds", 0, 86'400, config.stable);
  duration("health_interval_ms", 10, 3'600'000, config.health_interval);
  duration("health_timeout_ms", 10, 3'600'000, config.health_timeout);
}

}  // namespace

std::string_view kind_name(ModelKind kind) {
  switch (kind) {
    case ModelKind::image:
      return "image";
    case ModelKind::embedding:
      return "embedding";
    default:
      return "chat";
  }
}

FrontConfig parse_front_config(std::string_view text, std::string_view source) {
  json file;
  try {
    file = json::parse(text);
  } catch (const json::exception&) {
    fail(Code::invalid_argument, "serve", source, " is not JSON: ", json_fault(text));
  }
  Fields fields(file, "", source);
  FrontConfig config;
  const json* models = fields.take("models");
  fields.require(
      models != nullptr && models->is_array() && !models->empty() && models->size() <= 64, "models",
      "must be an array of 1 to 64 objects");
  std::set<std::string> names;
  for (size_t i = 0; i < models->size(); ++i) {
    const std::string where = cat("models[", i, "]");
    config.models.push_back(parse_model((*models)[i], where, source));
    fields.require(names.insert(config.models.back().name).second, where + ".name",
                   "is another model's too");
  }
  parse_policy(fields, config);
  fields.finish();
  return config;
}

std::chrono::milliseconds back_off_of(const FrontConfig& config, int restart) {
  std::chrono::milliseconds pause = config.back_off;
  for (int i = 0; i < restart && pause < config.max_back_off; ++i) pause *= 2;
  return std::min(pause, config.max_back_off);
}

}  // namespace rbee::server
