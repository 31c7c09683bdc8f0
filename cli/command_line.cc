#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "backends/linked/linked_backends.h"
#include "cli/commands.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "workers/common/crash_handler.h"
#include "workers/common/gpu_layers_flag.h"
#include "workers/common/lost_files.h"
#include "workers/programs/programs.h"

namespace rbee::tools {
namespace {

constexpr int kLost = 3;  // pages of a mapped file

void log_to_standard_error(LogLevel level, std::string_view message,
                           std::span<const LogField> fields) {
  std::string line(level >= LogLevel::warn ? "warning: " : "");
  line += message;
  for (const LogField& field : fields) {
    line += cat(" ", field.key, "=", field.value);
  }
  std::fprintf(stderr, "%s\n", printable_text(line).c_str());
}

std::string footer() {
  std::string text = "Workers, which are also links to this program; each has its own --help:";
  for (const std::string_view worker : workers::held_workers()) text += cat("\n  ", worker);
  return text;
}

int run(int argc, char** argv) {
  CLI::App app("rbee: language models and pictures on this machine");
  app.set_version_flag("--version", "rbee " RBEE_VERSION "\nLicence: Apache-2.0 OR MIT");
  app.require_subcommand(1);
  app.footer(footer());
  const Command commands[] = {
      add_run(app),    add_chat(app),    add_bench(app),   add_perplexity(app),   add_tokenize(app),
      add_embed(app),  add_inspect(app), add_imatrix(app), add_quantize(app),     add_devices(app),
      add_doctor(app), add_imagine(app), add_serve(app),   add_pull(app),         add_list(app),
      add_show(app),   add_rm(app),      add_search(app),  add_group_health(app),
  };
  try {
    app.parse(argc, workers::with_long_names(argc, argv).data());
  } catch (const CLI::ParseError& error) {
    if (const auto rest = app.remaining(); app.get_subcommands().empty() && !rest.empty()) {
      std::fprintf(stderr, "rbee: '%s' is neither a command nor a flag; rbee --help lists them\n",
                   printable_line(rest.front()).c_str());
      return 2;
    }
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return 2;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  set_log_sink(log_to_standard_error, LogLevel::warn);
  workers::end_on_lost_files("rbee", kLost);
  workers::install_crash_handler("rbee");
  register_linked_backends();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rbee: %s\n", printable_text(error.what()).c_str());
    return 1;
  }
}

}  // namespace rbee::tools
