#include "workers/common/flags.h"

#include <CLI/CLI.hpp>

#include "rbee/core/cat.h"

namespace rbee::workers {
namespace {

constexpr const char* kBuildInfo = RBEE_VERSION " (" RBEE_BUILD_TYPE ", compiler " __VERSION__ ")";

}  // namespace

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  app.add_option("--worker-id", flags.worker_id, "Name of this worker")
      ->default_str("<kind>-<port>");
  app.add_option("--port", flags.port, "Port to listen on; 0 = any free one")
      ->capture_default_str();
  app.add_option("--host", flags.host,
                 "Address to listen on; by default 127.0.0.1, and 0.0.0.0 when LLORCH_API_TOKEN "
                 "is set");
  app.add_option("--hive-url", flags.hive_url, "Where heartbeats go, e.g. http://localhost:7835");
  app.add_option("--threads", flags.threads, "Threads; 0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--api-keys", flags.api_keys,
                 "File of keys that clients may send, NAME KEY a line; read again on SIGHUP")
      ->check(CLI::ExistingFile);
  app.add_option("--cors-origin", flags.cors_origins,
                 "Web pages of this origin may ask; may be given several times; * = all");
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "After a signal, time for running answers to end")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--max-connections", flags.max_connections, "Open connections at most")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--max-client-connections", flags.max_client_connections,
                 "Open connections of one address at most; 0 = no such limit")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--cuda-device,--rocm-device,--metal-device", flags.device,
                 "Which device of the worker's kind")
      ->check(CLI::Range(0, 1023));
}

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv,
                                      const std::string& kind, CommonFlags& flags,
                                      const std::function<void()>& check) {
  app.set_version_flag("--version", app.get_name() + " " RBEE_VERSION);
  app.add_flag_callback("--build-info", [] { throw CLI::CallForVersion(kBuildInfo, 0); })
      ->group("");
  app.allow_extras();
  try {
    app.parse(argc, argv);
    // Only what looks like a flag, or follows one, may be unknown.
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && !rest.front().starts_with("-")) {
      throw CLI::ExtrasError(std::vector<std::string>{rest.front()});
    }
    if (check) check();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (flags.worker_id.empty()) flags.worker_id = cat(kind, "-", flags.port);
  flags.ignored = app.remaining();
  return std::nullopt;
}

}  // namespace rbee::workers
