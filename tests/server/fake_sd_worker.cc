// The picture worker's program with an engine that follows a script.

#include "tests/server/fake_image_engine.h"
#include "tests/server/rests.h"
#include "workers/sd/worker.h"

namespace {

std::unique_ptr<rbee::engine::ImageEngine> load(const rbee::workers::SdFlags&,
                                                rbee::server::LoadingState&) {
  return std::make_unique<rbee::testing::FakeImageEngine>();
}

}  // namespace

int main(int argc, char** argv) {
  rbee::workers::Program program{.name = "sd-worker-test", .kind = rbee::DeviceKind::cpu};
  rbee::testing::log_returned_memory(program, argc, argv);
  return rbee::workers::run_sd_worker(program, load, argc, argv);
}
