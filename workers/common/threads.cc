#include "workers/common/threads.h"

#include <algorithm>
#include <thread>

#include "rbee/core/log.h"

namespace rbee::workers {

Processors processors(int quota) {
  return {.there = static_cast<int>(std::thread::hardware_concurrency()), .quota = quota};
}

int thread_count(int wanted, const Processors& processors) {
  const int there = processors.there, quota = processors.quota;
  const int used = there == 0 ? wanted : std::min(wanted, there);
  if (used < wanted) {
    log(LogLevel::warn, "--threads is more than there are processors",
        {{"threads", cat(wanted)}, {"processors", cat(there)}, {"used", cat(used)}});
  }
  if (quota > 0 && used > quota) {
    log(LogLevel::warn, "--threads is more than the control group has time for",
        {{"threads", cat(used)}, {"processors", cat(quota)}});
  }
  return used;
}

}  // namespace rbee::workers
