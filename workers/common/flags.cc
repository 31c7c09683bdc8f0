#include "workers/common/flags.h"

#include <CLI/CLI.hpp>

#include "rbee/core/cat.h"
#include "rbee/core/device_id.h"
#include "rbee/core/experimental.h"
#include "workers/common/gpu_layers_flag.h"
#include "workers/common/graphs_flag.h"

namespace rbee::workers {
namespace {

constexpr const char* kBuildInfo = RBEE_VERSION " (" RBEE_BUILD_TYPE ", compiler " __VERSION__ ")";

constexpr int kMostDevice = 1023;

// A number, a device of the worker's kind, or "auto"; another text is a label.
void read_device_text(const CLI::App& app, CommonFlags& flags) {
  const std::string& text = flags.device_text;
  if (text == "auto") {
    // Who starts a worker of an experimental kind has asked for that kind: it is not passed over.
    flags.any_device = app.count("--cuda-device") == 0 && experimental(flags.kind).empty();
    return;
  }
  const std::string kind(name(flags.kind));
  if (text.find(',') != std::string::npos && app.count("--cuda-device") == 0) {
    flags.several_devices = true;  // read with the number of ranks
    return;
  }
  const bool number = text.find_first_not_of("-0123456789") == std::string::npos;
  const bool device = parse_device_id(text.substr(0, text.find(':'))).has_value();
  if (!number && !device) return;
  const auto id = parse_device_id(number ? cat(kind, ':', text) : text);
  if (!id || id->kind != flags.kind || id->ordinal > kMostDevice) {
    throw CLI::ValidationError("--device", cat("'", text, "' is none of this worker's, 0 to ",
                                               kMostDevice, " or ", kind, ":N"));
  }
  if (app.count("--cuda-device") == 0) flags.device = id->ordinal;
}

}  // namespace

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  app.add_option("--worker-id", flags.worker_id, "Name of this worker")
      ->default_str("<kind>-<port>");
  add_server_flags(app, flags);
  app.add_option("--hive-url", flags.hive_url, "Where heartbeats go, e.g. http://localhost:7835");
  app.add_option("--threads", flags.threads, "Threads; 0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--cuda-device,--rocm-device,--metal-device", flags.device,
                 "Index of the device, of the worker's kind")
      ->check(CLI::Range(0, kMostDevice));
  app.add_option(
      "--device", flags.device_text,
      "The hive's flag for the same: a number, or a name that rbee devices prints; for ranks "
      "the first one's, or a list such as cuda:2,cuda:0. auto = the device of the worker's kind "
      "that has the most free memory and on which the model fits, else the CPU");
  add_graphs_flag(app);
}

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv,
                                      const std::string& kind, CommonFlags& flags,
                                      const std::function<void()>& check) {
  app.set_version_flag("--version",
                       app.get_name() + " " RBEE_VERSION "\nLicence: Apache-2.0 OR MIT");
  app.add_flag_callback("--build-info", [] { throw CLI::CallForVersion(kBuildInfo, 0); })
      ->group("");
  app.allow_extras();
  try {
    app.parse(argc, with_long_names(argc, argv).data());
    // Only flags and their values may be unknown.
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && !rest.front().starts_with("-")) {
      throw CLI::ExtrasError(std::vector<std::string>{rest.front()});
    }
    if (!flags.device_text.empty()) read_device_text(app, flags);
    if (check) check();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (flags.worker_id.empty()) flags.worker_id = cat(kind, "-", flags.port);
  flags.ignored = app.remaining();
  return std::nullopt;
}

}  // namespace rbee::workers
