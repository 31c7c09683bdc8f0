#pragma once
// How many threads --threads gives.

namespace rbee::workers {

// wanted: 0 = as many as the backend chooses, and comes back as it is. Of more than `processors`
// some would always wait for a processor while the others wait for them at the end of every
// operation: `processors` come back, and a warning says so. processors: 0 = not known.
int thread_count(int wanted, int processors);

// Of the processors that this process may run on.
int thread_count(int wanted);

}  // namespace rbee::workers
