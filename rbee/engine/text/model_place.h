#pragma once
// The device of a language model, and how many of its layers are there.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "backends/api/registry.h"
#include "rbee/engine/text/model_memory.h"

namespace rbee::engine {

// What a command line says.
struct PlaceWanted {
  std::optional<DeviceId> device;     // absent: auto
  std::optional<int64_t> gpu_layers;  // absent: as many as fit; 0: the CPU computes all
  // Layers whose experts are on the host. Absent: as few as make all layers fit, where gpu_layers
  // leaves it open too; else none.
  std::optional<int64_t> cpu_moe_layers;
  int64_t beside = 0;       // bytes of a draft model on the same device
  bool one_device = false;  // all layers stay together: a model for embeddings
};

struct ModelPlace {
  DeviceId device;
  int64_t gpu_layers = models::kAllLayers;  // for TextModelOptions; 1 or more
  int64_t cpu_moe_layers = 0;               // likewise; 0 or more
  // Free and needed bytes of the device, where they were asked for; else 0.
  int64_t free = 0, needed = 0;
  std::string reason;  // what was chosen and why, in one line; empty: there was no choice
  std::string faults;  // as in DeviceChoice
};

// options: as for text_model_memory(), without layers. Opens a named GPU if it has to look at its
// memory, no other device. Throws as choose_device() and text_model_memory() do; not_found and
// device for a named device that is not there or cannot be used; invalid_argument for a number of
// layers below 0; and unsupported for a part of a model that stays on one device.
ModelPlace place_text_model(std::span<const BackendInfo> backends, const PlaceWanted& wanted,
                            const std::filesystem::path& path, const TextModelOptions& options);

}  // namespace rbee::engine
