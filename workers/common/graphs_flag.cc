#include "workers/common/graphs_flag.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace rbee::workers {

void add_graphs_flag(CLI::App& app) {
  app.add_flag_callback(
      "--no-graphs", [] { setenv("RBEE_GRAPHS", "0", 1); },
      "Run a GPU's steps without capture and replay: slower; as RBEE_GRAPHS=0");
}

}  // namespace rbee::workers
