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
  if (layers == "auto" || layers == "-1") return std::nullopt;
  return layers == "all" ? kAll : number_in(layers);
}

std::optional<int64_t> GpuLayerFlags::experts() const {
  if (cpu_moe) return kAll;
  return cpu_moe_layers == "auto" ? std::nullopt : number_in(cpu_moe_layers);
}

void add_gpu_layer_flags(CLI::App& app, GpuLayerFlags& flags) {
  app.add_option("--gpu-layers,--n-gpu-layers", flags.layers,
                 "Layers on the GPU, from the last one on, the output matrix first; the CPU "
                 "computes the others; a number, all, or auto = all if they fit, else as many as "
                 "fit; also -ngl, where -1 is auto")
      ->check([](const std::string& text) {
        const bool known = text == "auto" || text == "-1" || text == "all" || number_in(text);
        return known ? "" : "'" + text + "' is none of auto, all, 0 to 2147483647";
      })
      ->capture_default_str();
  CLI::Option* const all = app.add_flag("--cpu-moe", flags.cpu_moe,
                                        "The CPU computes the experts of all layers, from host "
                                        "memory; --gpu-layers places the rest; also -cmoe");
  app.add_option("--n-cpu-moe", flags.cpu_moe_layers,
                 "The same with the experts of the first N layers; auto = as few layers as make "
                 "all fit, if --gpu-layers is auto; also -ncmoe")
      ->check([](const std::string& text) {
        const bool known = text == "auto" || number_in(text);
        return known ? "" : "'" + text + "' is none of auto, 0 to 2147483647";
      })
      ->excludes(all)
      ->capture_default_str();
  CLI::Option* const least =
      app.add_option(
             "--op-offload-min-batch", flags.op_offload_min_batch,
             "Steps of this many tokens or more fetch the CPU's weights over the bus and multiply "
             "by them on the GPU; an expert's, if a quarter of that go to it; 0 = never")
          ->check(CLI::Range(int64_t{0}, int64_t{INT32_MAX}))
          ->capture_default_str();
  app.add_flag_callback(
         "--no-op-offload", [&flags] { flags.op_offload_min_batch = 0; },
         "The same as --op-offload-min-batch 0")
      ->excludes(least);
  app.add_flag_callback(
      "--no-kv-offload", [&flags] { flags.kv_offload = false; },
      "Keep a GPU's keys and values in host memory: slower, since the GPU reads them over the bus, "
      "but takes no GPU memory; also -nkvo");
}

std::vector<const char*> with_long_names(int argc, const char* const* argv) {
  std::vector<const char*> out(argv, argv + argc);
  constexpr std::pair<std::string_view, const char*> kNames[] = {{"-ngl", "--gpu-layers"},
                                                                 {"-cmoe", "--cpu-moe"},
                                                                 {"-ncmoe", "--n-cpu-moe"},
                                                                 {"-nkvo", "--no-kv-offload"},
                                                                 {"-tp", "--tensor-parallel-size"}};
  for (const char*& argument : out) {
    for (const auto& [brief, full] : kNames) {
      if (argument == brief) argument = full;
    }
  }
  return out;
}

}  // namespace rbee::workers
