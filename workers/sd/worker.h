#pragma once
// The image worker, on any device.

#include <functional>
#include <memory>

#include "rbee/engine/api/image.h"
#include "workers/common/worker.h"
#include "workers/sd/flags.h"

namespace rbee::workers {

using LoadImageEngine =
    std::function<std::unique_ptr<engine::ImageEngine>(const SdFlags&, server::LoadingState&)>;

// main(). Exit status: 0 after --help or --version, 2 for wrong usage, else run_worker()'s.
int run_sd_worker(const Program& program, const LoadImageEngine& load, int argc,
                  const char* const* argv);

}  // namespace rbee::workers
