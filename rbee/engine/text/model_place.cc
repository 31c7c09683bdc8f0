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
      : backends_(backends), wanted_(wanted), path_(path), options_(options) {
    options_.cpu_moe_layers = wanted.cpu_moe_layers.value_or(0);
  }

  ModelPlace run() const {
    if (wanted_.gpu_layers == 0) return on_cpu();
    if (!wanted_.device) return any_device();
    if (wanted_.device->kind == DeviceKind::cpu) return {.device = *wanted_.device};
    if (wanted_.gpu_layers) {
      return {.device = *wanted_.device,
              .gpu_layers = *wanted_.gpu_layers,
              .cpu_moe_layers = options_.cpu_moe_layers};
    }
    // Opened, since it is used in any case: asking for its offer would load its kernels twice.
    const Device& device = backend_of(backends_, *wanted_.device).device(wanted_.device->ordinal);
    ModelPlace out{.device = *wanted_.device,
                   .cpu_moe_layers = options_.cpu_moe_layers,
                   .free = device.memory().free,
                   .needed = needed()};
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
      out.cpu_moe_layers = options_.cpu_moe_layers;
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
    const CpuMoe experts = wanted_.cpu_moe_layers ? CpuMoe::as_given : CpuMoe::as_needed;
    const FittingLayers fits =
        fitting_gpu_layers(path_, options_, out.free - wanted_.beside, experts);
    if (fits.count < kFewestLayers) return false;
    out.gpu_layers = fits.count;
    out.cpu_moe_layers = fits.cpu_moe_layers;
    out.reason = cat(where(fits, out.device, name), ": ", bytes_to_text(out.free),
                     " are free, about ", bytes_to_text(out.needed), " are needed for all");
    return true;
  }

  static std::string where(const FittingLayers& fits, DeviceId device, const std::string& name) {
    std::string out = cat(fits.count, " of ", fits.all,
                          " layers (the output matrix is one) are on ", device, " (", name, ")");
    const int64_t host_layers = fits.all - fits.count;
    const int64_t experts = std::min(fits.cpu_moe_layers, fits.all - 1);
    if (host_layers > 0) out += ", the CPU computes the others";
    if (experts > host_layers) {
      out += cat(host_layers > 0 ? " and" : ", the CPU computes", " the experts of the first ",
                 experts, " layers");
    }
    return out;
  }

  std::span<const BackendInfo> backends_;
  const PlaceWanted& wanted_;
  const std::filesystem::path& path_;
  TextModelOptions options_;  // with the wanted experts
};

}  // namespace

ModelPlace place_text_model(std::span<const BackendInfo> backends, const PlaceWanted& wanted,
                            const std::filesystem::path& path, const TextModelOptions& options) {
  const int64_t layers = wanted.gpu_layers.value_or(0);
  check(layers >= 0, "gpu_layers", layers, " is negative");
  const int64_t experts = wanted.cpu_moe_layers.value_or(0);
  check(experts >= 0, "cpu_moe_layers", experts, " is negative");
  const bool named_cpu = wanted.device && wanted.device->kind == DeviceKind::cpu;
  const auto all = [&] { return fitting_gpu_layers(path, options, 0).all; };
  if (wanted.one_device && !named_cpu && layers > 0 && layers < all()) {
    fail(Code::unsupported, "gpu_layers",
         "a model for embeddings is on one device: all, 0 or auto, not ", layers);
  }
  if (wanted.one_device && !named_cpu && experts > 0) {
    fail(Code::unsupported, "cpu_moe_layers", "a model for embeddings is on one device");
  }
  return Placing(backends, wanted, path, options).run();
}

}  // namespace rbee::engine
