#include "workers/programs/programs.h"

#include <cstdio>

#include "backends/cpu/cpu_backend.h"
#include "backends/linked/linked_backends.h"
#include "rbee/core/cat.h"
#include "rbee/core/system/process.h"
#include "workers/llm/load_engine.h"
#include "workers/sd/load_engine.h"
#include "workers/sd/worker.h"

namespace rbee::workers {
namespace {

constexpr int kWrongUsage = 2;

enum class Serves { text, pictures };

struct WorkerProgram {
  const char* name;
  DeviceKind kind;
  Serves serves;
};

// The names of the contract, whether this build holds them or not.
constexpr WorkerProgram kPrograms[] = {
    {"llm-worker-rbee-cpu", DeviceKind::cpu, Serves::text},
    {"llm-worker-rbee-cuda", DeviceKind::cuda, Serves::text},
    {"llm-worker-rbee-rocm", DeviceKind::rocm, Serves::text},
    {"llm-worker-rbee-metal", DeviceKind::metal, Serves::text},
    {"sd-worker-cpu", DeviceKind::cpu, Serves::pictures},
    {"sd-worker-cuda", DeviceKind::cuda, Serves::pictures},
    {"sd-worker-rocm", DeviceKind::rocm, Serves::pictures},
    {"sd-worker-metal", DeviceKind::metal, Serves::pictures},
};

// Null if there is none.
const WorkerProgram* find_program(std::string_view name) {
  for (const WorkerProgram& program : kPrograms) {
    if (program.name == name) return &program;
  }
  return nullptr;
}

// Null if this build has none of the kind.
const BackendInfo* find_backend(DeviceKind kind) {
  for (const BackendInfo* backend : linked_backends()) {
    if (backend->kind == kind) return backend;
  }
  return nullptr;
}

// The worker registers its own backend; the others stay closed.
int run(const WorkerProgram& worker, int argc, const char* const* argv) {
  if (const std::string why = why_not_held(worker.name); !why.empty()) {
    std::fprintf(stderr, "rbee: %s\n", why.c_str());
    return kWrongUsage;
  }
  // What ps and top show, whatever the program's file is called.
  name_process(worker.name);
  const BackendInfo& backend = *find_backend(worker.kind);
  const Program program{.name = worker.name,
                        .kind = worker.kind,
                        .trim_memory = worker.kind == DeviceKind::cpu ? cpu::trim_memory : nullptr};
  if (worker.serves == Serves::text) {
    return run_llm_worker(
        program,
        [&](Flags& flags, server::LoadingState& loading) {
          return load_engine(backend, flags, loading);
        },
        argc, argv, [&](const Flags& flags) { return follow_leader(backend, flags); });
  }
  return run_sd_worker(
      program,
      [&](const SdFlags& flags, server::LoadingState& loading) {
        return load_image_engine(backend, flags, loading);
      },
      argc, argv);
}

}  // namespace

std::vector<std::string_view> held_workers() {
  std::vector<std::string_view> out;
  for (const WorkerProgram& program : kPrograms) {
    if (find_backend(program.kind) != nullptr) out.emplace_back(program.name);
  }
  return out;
}

std::string why_not_held(std::string_view name) {
  std::string held;
  for (const std::string_view worker : held_workers()) {
    if (worker == name) return {};
    held += cat(held.empty() ? "" : ", ", worker);
  }
  return cat(name, " is not in this build, which has: ", held);
}

std::optional<int> run_named_worker(int argc, const char* const* argv) {
  if (argc == 0) return std::nullopt;
  const std::string_view path = argv[0];
  const WorkerProgram* worker = find_program(path.substr(path.rfind('/') + 1));
  const int skipped = worker == nullptr && argc > 1 ? 1 : 0;
  if (skipped == 1) worker = find_program(argv[1]);
  if (worker == nullptr) return std::nullopt;
  return run(*worker, argc - skipped, argv + skipped);
}

}  // namespace rbee::workers
