// rbee: the command line. Exit status: 0 done, 1 an error, 2 wrong usage.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "backends/linked/linked_backends.h"
#include "rbee/core/log.h"
#include "tools/rbee/commands.h"

namespace {

void log_to_standard_error(rbee::LogLevel level, std::string_view message,
                           std::span<const rbee::LogField> fields) {
  std::string line(level >= rbee::LogLevel::warn ? "warning: " : "");
  line += message;
  for (const rbee::LogField& field : fields) {
    line += rbee::cat(" ", field.key, "=", field.value);
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

int run(int argc, char** argv) {
  CLI::App app("rbee: language models and pictures on this machine");
  app.set_version_flag("--version", "rbee " RBEE_VERSION);
  app.require_subcommand(1);
  const rbee::tools::Command commands[] = {
      rbee::tools::add_run(app),      rbee::tools::add_chat(app),
      rbee::tools::add_bench(app),    rbee::tools::add_perplexity(app),
      rbee::tools::add_tokenize(app), rbee::tools::add_inspect(app),
      rbee::tools::add_quantize(app), rbee::tools::add_devices(app),
      rbee::tools::add_imagine(app),
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const rbee::tools::Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  rbee::set_log_sink(log_to_standard_error, rbee::LogLevel::warn);
  rbee::register_linked_backends();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rbee: %s\n", error.what());
    return 1;
  }
}
