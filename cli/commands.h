#pragma once
// The subcommands of `rbee`. Each adds itself to the parser and returns the function to run if it
// is chosen; that function returns the exit status and may throw rbee::Error.

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace rbee::tools {

struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command add_run(CLI::App& parent);
Command add_chat(CLI::App& parent);
Command add_bench(CLI::App& parent);
Command add_bench_serve(CLI::App& bench);        // a subcommand of add_bench()
Command add_bench_speculative(CLI::App& bench);  // the same
Command add_perplexity(CLI::App& parent);
Command add_imatrix(CLI::App& parent);
Command add_embed(CLI::App& parent);
Command add_tokenize(CLI::App& parent);
Command add_inspect(CLI::App& parent);
Command add_quantize(CLI::App& parent);
Command add_devices(CLI::App& parent);
Command add_doctor(CLI::App& parent);
Command add_group_health(CLI::App& parent);
Command add_imagine(CLI::App& parent);
Command add_serve(CLI::App& parent);
Command add_pull(CLI::App& parent);
Command add_list(CLI::App& parent);
Command add_show(CLI::App& parent);
Command add_rm(CLI::App& parent);
Command add_search(CLI::App& parent);

// Runs the program with all subcommands; returns the exit status.
int run_command_line(int argc, char** argv);

}  // namespace rbee::tools
