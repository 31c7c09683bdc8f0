#pragma once
// What `rbee serve` is told to serve: a JSON file.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::server {

enum class ModelKind : uint8_t { chat, image, embedding };
// "chat", "image" or "embedding".
std::string_view kind_name(ModelKind kind);

struct ServedModel {
  std::string name;  // that requests give as `model`
  ModelKind kind = ModelKind::chat;
  std::string device = "cpu";         // whose worker's program it is: cpu, cuda or rocm
  std::string program;                // path; empty = by kind and device, found by the caller
  std::string model;                  // path of the model's files
  std::vector<std::string> flags;     // more of the worker's flags
  std::vector<std::string> adapters;  // other names of it: of the adapters among the flags
  std::vector<int> devices;           // ordinals; replica i takes the one at i modulo their number
  int replicas = 1;
};

struct FrontConfig {
  std::vector<ServedModel> models;
  int max_waiting = 1024;                         // requests that wait for a worker
  std::chrono::seconds wait{120};                 // for a worker that starts or starts again
  int64_t max_answer_bytes = int64_t{256} << 20;  // of an answer that is no event stream
  int max_tries = 3;                        // of a request whose workers end while they work on it
  int max_restarts = 8;                     // one after another; then a worker is given up
  std::chrono::milliseconds back_off{500};  // before the first restart; doubles
  std::chrono::milliseconds max_back_off{60'000};
  std::chrono::seconds stable{60};  // served so long, a worker's restarts are forgotten
  std::chrono::milliseconds health_interval{2'000};
  std::chrono::milliseconds health_timeout{2'000};  // three such in a row: the worker is killed
};

// Throws invalid_argument naming `source`, the field, and what it may be.
FrontConfig parse_front_config(std::string_view json, std::string_view source);

// The pause before restart number `restart` (from 0): doubled each time up to the most.
std::chrono::milliseconds back_off_of(const FrontConfig& config, int restart);

}  // namespace rbee::server
