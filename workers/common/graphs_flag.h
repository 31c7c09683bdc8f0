#pragma once
// Whether a GPU's steps are captured, as command lines say it.

namespace CLI {
class App;
}

namespace rbee::workers {

// Adds --no-graphs, which sets RBEE_GRAPHS to 0 for this process and those that it starts: to be
// parsed before there are threads and before a device is used.
void add_graphs_flag(CLI::App& app);

}  // namespace rbee::workers
