#include "backends/rocm/rocm_backend.h"
#include "workers/sd/load_engine.h"
#include "workers/sd/worker.h"

namespace {

std::unique_ptr<rbee::engine::ImageEngine> load(const rbee::workers::SdFlags& flags,
                                                rbee::server::LoadingState& loading) {
  return rbee::workers::load_image_engine(rbee::rocm::rocm_backend(), flags, loading);
}

}  // namespace

int main(int argc, char** argv) {
  return rbee::workers::run_sd_worker({.name = "sd-worker-rocm", .kind = rbee::DeviceKind::rocm},
                                      load, argc, argv);
}
