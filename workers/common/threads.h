#pragma once
// The number of threads for --threads.

namespace rbee::workers {

struct Processors {
  int there = 0;  // that this process may run on; 0 = unknown
  int quota = 0;  // CPU time of the control group's quota, in processors; 0 = no limit
};
// quota: for Processors.
Processors processors(int quota);

// wanted: 0 = the backend's choice, returned as it is. Values above the number of processors are
// clamped with a warning: threads would wait for processors, and all others for them at the end of
// every operation. Values above the quota are used with a warning: threads stop once the quota is
// spent, but a quota may grow.
int thread_count(int wanted, const Processors& processors);

}  // namespace rbee::workers
