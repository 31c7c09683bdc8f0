#include "rbee/engine/common/device_choice.h"

#include <algorithm>
#include <vector>

#include "rbee/core/byte_text.h"
#include "rbee/core/error.h"
#include "rbee/core/experimental.h"
#include "rbee/core/log.h"

namespace rbee::engine {
namespace {

struct Found {
  std::vector<GpuOffer> gpus;
  std::string faults;       // why devices and backends cannot be used, separated by "; "
  std::string passed_over;  // experimental devices, each with what is told of it
};

Found find_gpus(std::span<const BackendInfo> backends) {
  Found out;
  const auto add_fault = [&](std::string_view text) {
    // Backends name the failed operation first, which says nothing here.
    constexpr std::string_view kOperation = "device: ";
    if (text.starts_with(kOperation)) text.remove_prefix(kOperation.size());
    out.faults += cat(out.faults.empty() ? "" : "; ", text);
  };
  const auto add_passed_over = [&](DeviceId id, std::string_view warning) {
    out.passed_over += cat(out.passed_over.empty() ? "" : "; ", id, " is passed over (", warning,
                           "), --device ", id, " takes it");
  };
  for (const BackendInfo& backend : backends) {
    if (backend.kind == DeviceKind::cpu) continue;
    const int count = backend.device_count();
    if (count == 0) add_fault(backend.unavailable_reason());
    if (const std::string_view warning = experimental(backend.kind); !warning.empty()) {
      for (int i = 0; i < count; ++i) add_passed_over({backend.kind, i}, warning);
      continue;
    }
    for (int i = 0; i < count; ++i) {
      try {
        out.gpus.push_back({.id = {backend.kind, i}, .offer = backend.offer(i)});
      } catch (const Error& error) {
        add_fault(error.what());
      }
    }
  }
  return out;
}

// Of the GPUs on which the model does not fit.
std::string too_small(const Found& found) {
  std::string out;
  for (const GpuOffer& gpu : found.gpus) {
    out += cat(out.empty() ? "" : ", ", gpu.id, " ", bytes_to_text(gpu.offer.memory.free));
  }
  return out;
}

}  // namespace

const GpuOffer* best_gpu(std::span<const GpuOffer> gpus, int64_t needed) {
  const GpuOffer* best = nullptr;
  for (const GpuOffer& gpu : gpus) {
    if (gpu.offer.memory.free < needed) continue;
    const bool same_sort = best != nullptr && best->offer.integrated == gpu.offer.integrated;
    const bool better =
        best == nullptr ||
        (same_sort ? gpu.offer.memory.free > best->offer.memory.free : best->offer.integrated);
    if (better) best = &gpu;
  }
  return best;
}

DeviceChoice choose_device(std::span<const BackendInfo> backends,
                           const std::function<int64_t()>& needed) {
  DeviceChoice out;
  const auto cpu = std::ranges::find(backends, DeviceKind::cpu, &BackendInfo::kind);
  check(cpu != backends.end(), "device", "the program has no CPU backend");
  out.free = cpu->offer(0).memory.free;
  if (backends.size() == 1) return out;
  const Found found = find_gpus(backends);
  out.faults = found.faults;
  if (found.gpus.empty()) {
    out.reason =
        found.passed_over.empty()
            ? cat("no GPU can be used: the model runs on ", out.id, " (rbee doctor says why)")
            : cat("the model runs on ", out.id, "; ", found.passed_over);
    return out;
  }
  out.needed = needed();
  if (const GpuOffer* gpu = best_gpu(found.gpus, out.needed)) {
    out.id = gpu->id;
    out.free = gpu->offer.memory.free;
    out.reason =
        cat("the model runs on ", gpu->id, " (", gpu->offer.name, "): ", bytes_to_text(out.free),
            " are free, about ", bytes_to_text(out.needed), " are needed");
    return out;
  }
  out.reason = cat("about ", bytes_to_text(out.needed), " are needed, free are ", too_small(found),
                   ": the model runs on ", out.id);
  return out;
}

Device& host_device() {
  return get_device({DeviceKind::cpu, 0});
}

int64_t most_free_memory(std::span<const BackendInfo> backends) {
  return choose_device(backends, [] { return int64_t{0}; }).free;
}

Device& open_chosen_device(const std::function<int64_t()>& needed) {
  const DeviceChoice choice = choose_device(backends(), needed);
  if (!choice.reason.empty()) {
    log(LogLevel::info, choice.reason,
        {{"device", cat(choice.id)},
         {"free_bytes", cat(choice.free)},
         {"needed_bytes", cat(choice.needed)},
         {"faults", choice.faults}});
  }
  return get_device(choice.id);
}

}  // namespace rbee::engine
