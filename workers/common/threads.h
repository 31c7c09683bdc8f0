#pragma once
// How many threads --threads gives.

namespace rbee::workers {

struct Processors {
  int there = 0;  // that this process may run on; 0 = not known
  int quota = 0;  // as much time as so many have; 0 = no limit
};
// quota: of Processors.
Processors processors(int quota);

// wanted: 0 = as many as the backend chooses, and comes back as it is. Of more threads than there
// are processors some would always wait for a processor while the others wait for them at the end
// of every operation: as many as there are come back, and a warning says so. More than the quota
// are taken, with a warning: they stand still once they have used it up, but a quota may grow.
int thread_count(int wanted, const Processors& processors);

}  // namespace rbee::workers
