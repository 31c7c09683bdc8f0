#pragma once
// Options of every command that uses a model.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/text_model.h"
#include "workers/common/gpu_layers_flag.h"
#include "workers/common/group_flags.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rbee::tools {

inline constexpr const char* kDeviceHelp =
    "cpu, cuda:N or rocm:N; auto = the GPU with the most free memory on which the model fits, else "
    "the CPU";

struct ModelOptions {
  std::string model;            // path, or a name of the hub
  std::string model_id;         // reported name; empty = the model's own
  std::string mmproj;           // path of a GGUF model's vision tower; empty = none
  std::string device = "auto";  // "auto", "cpu", "cuda:0", ...
  std::string dtype = "auto";   // what layers compute in
  workers::GpuLayerFlags gpu_layers;
  workers::GroupFlags group;          // ranks that hold the model together
  std::string pan_and_scan = "auto";  // on or off: show pictures in parts too
  int64_t context = 0;                // tokens; 0 = the model's own, at most 4096
  int threads = 0;                    // 0 = one for each core
};

struct SamplingFlags {
  engine::SamplingParams params;
  std::vector<std::string> biases;  // "ID=BIAS"
  std::string samplers;             // names separated by semicolons; empty = the default ones
};

// Accepts 0 to 2^64 - 1. A negative value leaves `seed` empty: the engine draws one.
CLI::Option* add_seed_option(CLI::App& app, const std::string& flags, std::optional<uint64_t>& seed,
                             const std::string& help);
void add_model_options(CLI::App& app, ModelOptions& options);
// The device of `--device`: the named one, or for "auto" engine::choose_device()'s, which one line
// on standard error tells. needed: as for that.
Device& device_of(const std::string& device, const std::function<int64_t()>& needed);
void add_sampling_options(CLI::App& app, SamplingFlags& flags);
engine::SamplingParams sampling_of(const SamplingFlags& flags);

// Shows a progress line on standard error if that is a terminal.
// one_device: as in engine::PlaceWanted.
engine::TextModelOptions text_model_options(const ModelOptions& options, bool one_device = false);
// If the leader of a group has started this process, it loads the model as that rank, and ends with
// the group. Call it before anything else. cache_type: "auto" or a type, as of --cache-type.
void follow_if_rank(const ModelOptions& options, const std::string& cache_type = "auto");
// Loads the model, with a progress line as above, and the other ranks of its group. If one is lost,
// the process ends with status 3.
engine::TextModel load(const ModelOptions& options);

}  // namespace rbee::tools
