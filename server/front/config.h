#pragma once
// The models that `rbee serve` serves: a JSON file.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::server {

enum class ModelKind : uint8_t { chat, image, embedding };
// "chat", "image" or "embedding".
std::string_view kind_name(ModelKind kind);

struct ServedModel {
  std::string name;  // the name that requests give as `model`
  ModelKind kind = ModelKind::chat;
  // False for a model of text whose files are not here yet: its worker will tell whether it chats.
  bool kind_known = true;
  std::string device = "cpu";         // which worker program to use: a kind of device
  std::string program;                // path; empty = by kind and device, set by the caller
  std::string worker;                 // first word of the program's arguments; empty = none
  std::string model;                  // path of the model's files
  std::vector<std::string> flags;     // more flags for the worker
  std::vector<std::string> adapters;  // also answers to these names: adapters, aliases
  // Ordinals of a replica's devices; replica i takes those at i modulo their number. Several of one
  // replica hold its model together.
  std::vector<std::vector<int>> devices;
  int replicas = 1;
  // Given: a model on demand, loaded at its first request, and unloaded when it had none for so
  // long (keep_alive.h) or another model needs its memory. Absent: it is loaded from the start.
  std::optional<std::chrono::milliseconds> keep_alive;
  // Of a model of the hub's cache: which files of which commit, the same for all names of one
  // model. Empty: it is of a file of models.
  std::string files;
  // Of a model that a client made: what of its record the worker depends on. Empty: it is none.
  std::string record;
  int64_t bytes = 0;     // of its files; 0 = unknown
  int64_t modified = 0;  // seconds since 1970, of its newest file; 0 = unknown
  int64_t memory = 0;    // bytes that a worker of it needs; 0 = unknown

  bool on_demand() const { return keep_alive.has_value(); }
};

// How a request finds one of its model's workers.
enum class RoutingPolicy : uint8_t {
  prefix_aware,    // prefix.h
  least_requests,  // the one with the fewest running requests
};

struct FrontConfig {
  std::vector<ServedModel> models;
  int64_t max_memory = 0;  // bytes of a device that all models together may need; 0 = as are free
  int max_waiting = 1024;  // requests that wait for a worker
  std::chrono::seconds wait{120};                 // for a worker that starts or restarts
  int64_t max_answer_bytes = int64_t{256} << 20;  // of an answer that is no event stream
  RoutingPolicy routing = RoutingPolicy::prefix_aware;
  int max_tries = 3;     // tries of a request whose worker ends while working on it
  int max_restarts = 8;  // in a row; then the front gives the worker up
  std::chrono::milliseconds back_off{500};  // before the first restart; doubles
  std::chrono::milliseconds max_back_off{60'000};
  std::chrono::seconds stable{60};  // after serving so long, earlier restarts do not count
  std::chrono::milliseconds health_interval{2'000};
  std::chrono::milliseconds health_timeout{2'000};  // after three in a row, the worker is killed
};

class ModelStore;

// What the front asks of whoever runs it.
struct FrontHooks {
  // Bytes free on a kind of device, such as "cuda"; nothing, or null: unknown.
  std::function<std::optional<int64_t>(const std::string& device)> free_memory{};
  // The model on demand that a name stands for now, with `files`; nothing: none. Called before each
  // load, on a thread of its own, since it may take long. Throws Error with what is wrong: io for
  // what a later request may find. Null: there is none.
  std::function<std::optional<ServedModel>(const std::string& name)> find_model{};
  // Fetches and deletes models for clients; null: clients get 501.
  std::shared_ptr<ModelStore> files{};
  bool may_pull = false;                        // clients may fetch
  bool may_manage = false;                      // clients may delete and make models
  size_t max_upload_bytes = size_t{128} << 30;  // of a file of a model that a client makes
  size_t max_uploads = 64;                      // at once
  // The models on demand that are there whether a request names them or not, each with `files`.
  // Called on a thread of its own. Null: those of the configuration.
  std::function<std::vector<ServedModel>()> list_models{};
  // Whether the files of a loaded model with `files` are still there, and its record is the same.
  // Quick, since requests for models with a `record` wait for it. Null: it is so.
  std::function<bool(const ServedModel& model)> has_files{};
};

// Throws invalid_argument naming `source`, the field and its allowed values.
FrontConfig parse_front_config(std::string_view json, std::string_view source);

// The pause before restart number `restart` (from 0): doubles up to max_back_off.
std::chrono::milliseconds back_off_of(const FrontConfig& config, int restart);

}  // namespace rbee::server
