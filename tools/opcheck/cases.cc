#include "tools/opcheck/cases.h"

#include <algorithm>
#include <cstdio>

#include "rbee/core/error.h"
#include "tests/support/check_case.h"
#include "tests/support/measure.h"

namespace rbee::harness {
namespace {

void print_time(CaseRun& run, int implementation) {
  const double seconds = time_one_run(run, implementation, 0.2);
  std::printf("  %10.2f us  %8.2f GB/s  %8.2f GFLOP/s", seconds * 1e6,
              run.scene().bytes / seconds * 1e-9, run.scene().flops / seconds * 1e-9);
}

bool runs_within(CaseRun& run, const Options& options) {
  return options.most_bytes == 0 || run.scene().bytes <= options.most_bytes;
}

void print_result(const Options& options, CaseRun& run, int i, const Comparison& result) {
  if (options.summary && result.ok) return;
  std::printf("  %-16s %s  absolute %.3g  relative %.3g  of allowed %.2f", run.name(i),
              result.ok ? "ok  " : "FAIL", result.worst_absolute, result.worst_relative,
              result.worst_excess);
  if (options.time) print_time(run, i);
  std::printf("\n");
  if (!result.ok) std::printf("    %s\n", result.first_failure.c_str());
  std::fflush(stdout);
}

// `ref` against the formula, others against `ref`. An error of the implementation is a failure of
// the case, not of the program.
Comparison run_and_compare(const OpCase& c, CaseRun& run, int i, CaseRun& reference) {
  try {
    run_fresh(run, i);
    if (std::string_view(run.name(i)) == "ref") return compare_with_formula(c, reference);
    return compare_with_reference(c, run, reference);
  } catch (const Error& error) {
    if (error.code() == Code::device) throw;  // nothing after it would run
    Comparison failed;
    failed.ok = false;
    failed.first_failure = error.what();
    return failed;
  }
}

// Runs every implementation that takes the case.
void check_case(const OpCase& c, const Options& options, Device& device, Tally& tally,
                const std::function<void(const char* implementation)>& told) {
  const std::unique_ptr<CaseRun> run = c.set_up(device);
  if (!runs_within(*run, options)) {
    ++tally.skipped;
    return;
  }
  const std::unique_ptr<CaseRun> reference = run_reference(c);
  bool ok = true;
  int taken = 0;
  for (int i = 0; i < run->implementations(); ++i) {
    if (!options.implementation.empty() && run->name(i) != options.implementation) continue;
    if (const char* reason = run->refusal(i)) {
      if (!options.summary) std::printf("  %-16s refuses: %s\n", run->name(i), reason);
      continue;
    }
    ++taken;
    told(run->name(i));
    const Comparison result = run_and_compare(c, *run, i, *reference);
    if (!result.ok && options.summary) std::printf("%s\n", c.name.c_str());
    print_result(options, *run, i, result);
    tally.worst_excess = std::max(tally.worst_excess, result.worst_excess);
    ok = ok && result.ok;
  }
  ++(taken == 0 ? tally.refused : ok ? tally.passed : tally.failed);
}

}  // namespace

std::vector<size_t> fitting_cases(const OpTable& table, const Options& options) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < table.cases().size(); ++i) {
    if (options.number >= 0 && static_cast<size_t>(options.number) != i) continue;
    if (table.cases()[i].name.find(options.match) != std::string::npos) numbers.push_back(i);
  }
  check(!numbers.empty(), "opcheck", "no case of ", table.op(), " fits; ", table.op(),
        " --list names ", table.cases().size());
  return numbers;
}

void check_cases(const OpTable& table, std::span<const size_t> numbers, const Options& options,
                 Device& device, Tally& tally, const Told& told) {
  for (size_t position = 0; position < numbers.size(); ++position) {
    const OpCase& c = table.cases()[numbers[position]];
    if (!options.summary) std::printf("%3zu  %s\n", numbers[position], c.name.c_str());
    const auto tell = [&](const char* implementation) { told(position, implementation); };
    tell("set up");
    check_case(c, options, device, tally, tell);
  }
}

void print_header() {
  std::printf("| operation | passed | failed | refused | too large | worst error of allowed |\n");
  std::printf("|---|---|---|---|---|---|\n");
}

void print_row(const OpTable& table, const Tally& tally) {
  std::printf("| %s | %d | %d | %d | %d | %.2f |\n", table.op().c_str(), tally.passed, tally.failed,
              tally.refused, tally.skipped, tally.worst_excess);
  std::fflush(stdout);
}

}  // namespace rbee::harness
