#include "backends/cuda/cuda_backend.h"
#include "workers/llm/load_engine.h"
#include "workers/llm/worker.h"

namespace {

rbee::workers::LoadedEngine load(const rbee::workers::Flags& flags,
                                 rbee::server::LoadingState& loading) {
  return rbee::workers::load_engine(rbee::cuda::cuda_backend(), flags, loading);
}

}  // namespace

int main(int argc, char** argv) {
  return rbee::workers::run_llm_worker(
      {.name = "llm-worker-rbee-cuda", .kind = rbee::DeviceKind::cuda}, load, argc, argv);
}
