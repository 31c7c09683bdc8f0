#pragma once
// The flag that turns off captured GPU steps.

namespace CLI {
class App;
}

namespace rbee::workers {

// Adds --no-graphs, which sets RBEE_GRAPHS to 0 for this process and its children. Parse it before
// threads start and before a device is used.
void add_graphs_flag(CLI::App& app);

}  // namespace rbee::workers
