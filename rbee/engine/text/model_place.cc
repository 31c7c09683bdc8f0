#include "rbee/engine/text/model_place.h"

#include <algorithm>

#include "rbee/core/byte_text.h"
#include "rbee/core/error.h"
#include "rbee/engine/common/device_choice.h"

namespace rbee::engine {
namespace {

// Fewer are the output matrix alone, which a GPU makes no faster than the copies cost.
constexpr int64_t kFewestLayers = 2;

const BackendInfo& backend_of(std::span<const BackendInfo> backends, DeviceId id) {
  const auto backend = std::ranges::find(backends, id.kind, &BackendInfo::kind);
  if (backend == backends.end()) fail(Code::not_found, "device", id, " is not in this program");
  return *backend;
}

class Placing {
 public:
  Placing(std::span<const BackendInfo> backends, const PlaceWanted& wanted,
          const std::filesystem::path& path, const TextModelOptions& options)
      : backends_(backends), wanted_(wanted), path_(path), options_(options) {}

  ModelPlace run() const {
    if (wanted_.gpu_layers == 0) return on_cpu();
    if (!wanted_.device) return any_device();
    if (wanted_.device->kind == DeviceKind::cpu) return {.device = *wanted_.device};
    if (wanted_.gpu_layers) return with(*wanted_.device, *wanted_.gpu_layers);
    // Opened, since it is used in any case: asking for its offer would load its kernels twice.
    const Device& device = backend_of(backends_, *wanted_.device).device(wanted_.device->ordinal);
    ModelPlace out{.device = *wanted_.device, .free = device.memory().free, .needed = needed()};
    // Where hardly anything fits, loading says what is missing.
    if (out.free < out.needed) share(out, device.description());
    return out;
  }

 private:
  int64_t needed() const { return text_model_memory(path_, options_) + wanted_.beside; }

  ModelPlace on_cpu() const {
    ModelPlace out{.device = {DeviceKind::cpu, 0}};
    const bool told = wanted_.device && wanted_.device->kind != DeviceKind::cpu;
    if (told) out.reason = cat("no layer is wanted on ", *wanted_.device, ": the CPU computes all");
    return out;
  }

  static ModelPlace with(DeviceId device, int64_t layers) {
    return {.device = device, .gpu_layers = layers};
  }

  ModelPlace any_device() const {
    // A number of layers is the user's choice, whatever fits.
    const bool counted = wanted_.gpu_layers.has_value();
    const DeviceChoice choice =
        choose_device(backends_, [&] { return counted ? int64_t{0} : needed(); });
    ModelPlace out{.device = choice.id,
                   .free = choice.free,
                   .needed = choice.needed,
                   .reason = choice.reason,
                   .faults = choice.faults};
    if (choice.id.kind != DeviceKind::cpu) {
      out.gpu_layers = wanted_.gpu_layers.value_or(models::kAllLayers);
    } else if (!counted && choice.needed > 0) {
      part_on_gpu(out);
    }
    return out;
  }

  // The model fits on no GPU: the one with the most free memory gets the layers that fit.
  void part_on_gpu(ModelPlace& out) const {
    const DeviceChoice choice = choose_device(backends_, [] { return int64_t{0}; });
    if (choice.id.kind == DeviceKind::cpu) return;
    ModelPlace part = out;
    part.device = choice.id;
    part.free = choice.free;
    const std::string name = backend_of(backends_, choice.id).offer(choice.id.ordinal).name;
    if (share(part, name)) out = part;
  }

  // Whether so many layers fit that the device helps.
  bool share(ModelPlace& out, const std::string& name) const {
    if (wanted_.one_device) return false;
    const FittingLayers fits = fitting_gpu_layers(path_, options_, out.free - wanted_.beside);
    if (fits.count < kFewestLayers) return false;
    out.gpu_layers = fits.count;
    out.reason =
        cat(fits.count, " of ", fits.all, " layers (the output matrix is one) are on ", out.device,
            " (", name, "), the CPU computes the others: ", bytes_to_text(out.free),
            " are free, about ", bytes_to_text(out.needed), " are needed for all");
    return true;
  }

  std::span<const BackendInfo> backends_;
  const PlaceWanted& wanted_;
  const std::filesystem::path& path_;
  const TextModelOptions& options_;
};

}  // namespace

ModelPlace place_text_model(std::span<const BackendInfo> backends, const PlaceWanted& wanted,
                            const std::filesystem::path& path, const TextModelOptions& options) {
  const int64_t layers = wanted.gpu_layers.value_or(0);
  check(layers >= 0, "gpu_layers", layers, " is negative");
  const bool named_cpu = wanted.device && wanted.device->kind == DeviceKind::cpu;
  const auto all = [&] { return fitting_gpu_layers(path, options, 0).all; };
  if (wanted.one_device && !named_cpu && layers > 0 && layers < all()) {
    fail(Code::unsupported, "gpu_layers",
         "a model for embeddings is on one device: all, 0 or auto, not ", layers);
  }
  return Placing(backends, wanted, path, options).run();
}

}  // namespace rbee::engine
