#include "rbee/engine/image/warm_up.h"

#include <chrono>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"

namespace rbee::engine {

void warm_up(const ImageSource& source, ImagePipeline& pipeline) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  try {
    ImageRequest request;
    request.steps = 1;
    request.seed = 0;
    request.sampler = diffusion::name(source.scheduler.sampler);
    PipelineTimes times;
    PipelineHooks hooks;
    hooks.step = [](int32_t) { return true; };
    hooks.image = [](const io::Pixels&, int32_t) { return true; };
    pipeline.run(request, resolve(source, request), hooks, times);
  } catch (const Error& error) {
    const bool goes_on = error.code() != Code::device && error.code() != Code::unsupported;
    if (!goes_on && dynamic_cast<const NotFinite*>(&error) == nullptr) throw;
    log(LogLevel::warn, "the warm-up failed", {{"error", error.what()}});
  }
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  log(LogLevel::info, "warmed up", {{"ms", cat(spent.count())}});
}

}  // namespace rbee::engine
