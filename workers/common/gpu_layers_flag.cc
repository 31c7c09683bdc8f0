#include "workers/common/gpu_layers_flag.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <string_view>

namespace rbee::workers {
namespace {

constexpr int64_t kAll = INT64_MAX;

std::optional<int64_t> number_in(std::string_view text) {
  int64_t out = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out);
  const bool whole = error == std::errc{} && rest == end && !text.empty();
  return whole && out >= 0 && out <= INT32_MAX ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<int64_t> GpuLayerFlags::count() const {
  if (layers == "auto") return std::nullopt;
  return layers == "all" ? kAll : number_in(layers);
}

void add_gpu_layer_flags(CLI::App& app, GpuLayerFlags& flags) {
  app.add_option("--gpu-layers,--n-gpu-layers", flags.layers,
                 "Layers on the GPU, from the last one on, the output matrix first; the CPU "
                 "computes the others; a number, all, or auto = all if they fit, else as many as "
                 "fit; also -ngl")
      ->check([](const std::string& text) {
        const bool known = text == "auto" || text == "all" || number_in(text);
        return known ? "" : "'" + text + "' is none of auto, all, 0 to 2147483647";
      })
      ->capture_default_str();
  app.add_flag_callback(
      "--no-kv-offload", [&flags] { flags.kv_offload = false; },
      "A GPU's keys and values stay in host memory, which the GPU reads over the bus; slower, and "
      "takes no GPU memory; also -nkvo");
}

std::vector<const char*> with_long_names(int argc, const char* const* argv) {
  std::vector<const char*> out(argv, argv + argc);
  for (const char*& argument : out) {
    if (std::string_view(argument) == "-ngl") argument = "--gpu-layers";
    if (std::string_view(argument) == "-nkvo") argument = "--no-kv-offload";
  }
  return out;
}

}  // namespace rbee::workers
