// op_bench: every big case of the operations' tables, with the share of the machine's limits.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/peak.h"
#include "tests/support/measure.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

void print_limits(const cpu::Peak& peak, int threads) {
  std::printf(
      "%d threads: memory %.1f GB/s, f32 %.1f GFLOP/s, bf16 %.1f GFLOP/s, int8 %.1f GOP/s\n",
      threads, peak.read_bytes_per_second * 1e-9, peak.f32_flops * 1e-9, peak.bf16_flops * 1e-9,
      peak.int8_ops * 1e-9);
  std::printf("%-44s %-14s %11s %9s %6s %9s %6s\n", "case", "implementation", "us", "GB/s", "%",
              "GFLOP/s", "%");
}

void measure(const std::string& name, CaseRun& run, int implementation, const cpu::Peak& peak) {
  const double seconds = time_one_run(run, implementation, 0.3);
  const double bytes = run.scene().bytes / seconds, flops = run.scene().flops / seconds;
  std::printf("%-44s %-14s %11.1f %9.2f %6.1f %9.2f %6.1f\n", name.c_str(),
              run.name(implementation), seconds * 1e6, bytes * 1e-9,
              100 * bytes / peak.read_bytes_per_second, flops * 1e-9, 100 * flops / peak.f32_flops);
}

void measure_table(const OpTable& table, const cpu::Peak& peak, const std::string& only) {
  for (const OpCase& c : table.cases()) {
    if (!c.big) continue;
    const std::unique_ptr<CaseRun> run = c.set_up(*all_devices().front());
    for (int i = 0; i < run->implementations(); ++i) {
      if (run->refusal(i) != nullptr || cat(run->name(i)).find(only) == std::string::npos) continue;
      measure(cat(table.op(), ' ', c.name), *run, i, peak);
    }
  }
}

int run_program(int argc, char** argv) {
  std::vector<std::string> ops;
  std::string only;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App app("Times the big cases of the operations' tables");
  app.add_option("op", ops, "operations; all when none is named");
  app.add_option("--only", only, "implementations whose names contain this");
  app.add_option("--threads", threads, "threads")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  cpu::set_thread_count(threads);
  const cpu::Peak peak = cpu::measure_peak(threads);
  print_limits(peak, threads);
  for (const OpTable& table : op_tables()) {
    if (ops.empty() || std::find(ops.begin(), ops.end(), table.op()) != ops.end()) {
      measure_table(table, peak, only);
    }
  }
  return 0;
}

}  // namespace
}  // namespace rbee::harness

int main(int argc, char** argv) {
  try {
    return rbee::harness::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
