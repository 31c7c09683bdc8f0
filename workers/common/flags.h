#pragma once
// Command-line flags of all workers.

#include <functional>
#include <optional>
#include <string>

#include "workers/common/worker.h"

namespace CLI {
class App;
}

namespace rbee::workers {

// Adds --worker-id, --port, --host, --hive-url, --threads, the server's limits and keys, and the
// device's number to `app`.
void add_common_flags(CLI::App& app, CommonFlags& flags);

// Reads the command line; prints help, version or errors. It keeps unknown flags in flags.ignored,
// because hives may be newer than workers. `check`: checks the values and may throw
// CLI::ParseError. A worker without a name gets `kind` and its port as name. Returns the exit
// status, 0 after help and version, 2 for wrong usage; or nothing if the program goes on.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv,
                                      const std::string& kind, CommonFlags& flags,
                                      const std::function<void()>& check = {});

}  // namespace rbee::workers
