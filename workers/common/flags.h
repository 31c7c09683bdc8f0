#pragma once
// What the command lines of all workers share.

#include <functional>
#include <optional>
#include <string>

#include "workers/common/worker.h"

namespace CLI {
class App;
}

namespace rbee::workers {

// Adds --worker-id, --port, --host, --hive-url, --threads, what limits and guards the server, and
// the device's number to `app`.
void add_common_flags(CLI::App& app, CommonFlags& flags);

// Reads the command line; prints help, version or what is wrong. Flags that nobody knows are kept
// in flags.ignored, as hives are newer than workers. `check`: looks at what was read and may throw
// CLI::ParseError. A worker without a name is called `kind` and its port. Returns the exit status
// to end with, 0 after help and version, 2 for wrong usage, or nothing to go on.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv,
                                      const std::string& kind, CommonFlags& flags,
                                      const std::function<void()>& check = {});

}  // namespace rbee::workers
