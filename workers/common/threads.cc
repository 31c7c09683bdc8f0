#include "workers/common/threads.h"

#include <thread>

#include "rbee/core/log.h"

namespace rbee::workers {

int thread_count(int wanted, int processors) {
  if (processors == 0 || wanted <= processors) return wanted;
  log(LogLevel::warn, "--threads is more than there are processors",
      {{"threads", cat(wanted)}, {"processors", cat(processors)}, {"used", cat(processors)}});
  return processors;
}

int thread_count(int wanted) {
  return thread_count(wanted, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace rbee::workers
