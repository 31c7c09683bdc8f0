// opcheck: runs cases of one operation from the tables of tests/ops and says how far each
// implementation is from `ref`, and `ref` from the case's formula, and how long it takes.
//   opcheck --list                           operations
//   opcheck unary --list                     its cases, numbered
//   opcheck unary --list --costs             also costs and the implementations that take each
//   opcheck unary --match "gelu f32" --time  cases whose name contains the text
//   opcheck all --device rocm:0 --summary    everything on one device, a row for each operation
//   opcheck --table                          implementations and their types, as docs show them
// Exit status: 0 all within tolerance, 1 a case is not, 2 wrong usage, 77 --or-skip and no device.

#include "tools/opcheck/opcheck.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <set>

#include "rbee/core/error.h"
#include "tests/support/check_case.h"
#include "tests/support/device_called.h"
#include "tests/support/measure.h"

namespace rbee::harness {
namespace {

constexpr int kSkipped = 77;  // as CTest's SKIP_RETURN_CODE

struct Options {
  std::string op;
  std::string match;           // part of a case's name, e.g. a dtype or a shape
  std::string implementation;  // empty: all
  std::string device = "cpu:0";
  int number = -1;        // of the case; -1: all
  double most_bytes = 0;  // of a case's operands; 0: any
  bool list = false;
  bool costs = false;
  bool time = false;
  bool table = false;
  bool summary = false;
  bool or_skip = false;
};

// Of the cases of one operation.
struct Tally {
  int passed = 0;
  int failed = 0;
  int refused = 0;  // by every implementation
  int skipped = 0;  // too large for --most-bytes
  double worst_excess = 0;
};

const OpTable& find_table(const std::string& op) {
  for (const OpTable& table : op_tables()) {
    if (table.op() == op) return table;
  }
  fail(Code::not_found, "opcheck", "no operation is called ", op, "; --list names them");
}

// Why there is no device of that name, one line; empty when there is one.
std::string missing_reason(const std::string& name) {
  try {
    device_called(name);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void list_operations() {
  for (const OpTable& table : op_tables()) {
    std::printf("%-20s %zu cases\n", table.op().c_str(), table.cases().size());
  }
}

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
void check_case(const OpCase& c, const Options& options, Device& device, Tally& tally) {
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
    const Comparison result = run_and_compare(c, *run, i, *reference);
    if (!result.ok && options.summary) std::printf("%s\n", c.name.c_str());
    print_result(options, *run, i, result);
    tally.worst_excess = std::max(tally.worst_excess, result.worst_excess);
    ok = ok && result.ok;
  }
  ++(taken == 0 ? tally.refused : ok ? tally.passed : tally.failed);
}

std::string names_of(const std::set<DType>& dtypes) {
  std::string out;
  for (const DType dtype : dtypes) out += cat(out.empty() ? "" : " ", dtype);
  return out;
}

// For programs: number, bytes, operations, operands' types, implementations that take it and name,
// with tabs between them.
void print_costs(size_t number, const OpCase& c, Device& device) {
  const std::unique_ptr<CaseRun> run = c.set_up(device);
  std::string takers;
  for (int i = 0; i < run->implementations(); ++i) {
    if (run->refusal(i) == nullptr) takers += cat(takers.empty() ? "" : " ", run->name(i));
  }
  std::printf("%zu\t%.0f\t%.0f\t%s\t%s\t%s\n", number, run->scene().bytes, run->scene().flops,
              names_of(run->scene().dtypes()).c_str(), takers.c_str(), c.name.c_str());
}

// Returns whether every case that fits is within tolerance.
bool check_op(const OpTable& table, const Options& options, Device& device) {
  Tally tally;
  for (size_t i = 0; i < table.cases().size(); ++i) {
    const OpCase& c = table.cases()[i];
    if (options.number >= 0 && static_cast<size_t>(options.number) != i) continue;
    if (c.name.find(options.match) == std::string::npos) continue;
    if (!options.summary && !options.costs) std::printf("%3zu  %s\n", i, c.name.c_str());
    if (options.list) {
      if (options.costs) print_costs(i, c, device);
      ++tally.skipped;
    } else {
      check_case(c, options, device, tally);
    }
  }
  const int found = tally.passed + tally.failed + tally.refused + tally.skipped;
  check(found > 0, "opcheck", "no case of ", table.op(), " fits; ", table.op(), " --list names ",
        table.cases().size());
  if (options.summary) {
    std::printf("| %s | %d | %d | %d | %d | %.2f |\n", table.op().c_str(), tally.passed,
                tally.failed, tally.refused, tally.skipped, tally.worst_excess);
    std::fflush(stdout);
  }
  return tally.failed == 0;
}

int check_ops(const Options& options) {
  Device& device = device_called(options.device);
  if (options.summary) {
    std::printf("| operation | passed | failed | refused | too large | worst error of allowed |\n");
    std::printf("|---|---|---|---|---|---|\n");
  }
  if (options.op != "all") return check_op(find_table(options.op), options, device) ? 0 : 1;
  bool ok = true;
  for (const OpTable& table : op_tables()) ok = check_op(table, options, device) && ok;
  return ok ? 0 : 1;
}

// One row for each implementation: how many cases it takes and the operands' types in them.
void print_rows(const OpTable& table, Device& device) {
  struct Row {
    std::string name;
    int cases = 0;
    std::set<DType> dtypes;
  };
  std::vector<Row> rows;
  for (const OpCase& c : table.cases()) {
    const std::unique_ptr<CaseRun> run = c.set_up(device);
    rows.resize(static_cast<size_t>(run->implementations()));
    for (int i = 0; i < run->implementations(); ++i) {
      Row& row = rows[static_cast<size_t>(i)];
      row.name = run->name(i);
      if (run->refusal(i) != nullptr) continue;
      ++row.cases;
      row.dtypes.merge(run->scene().dtypes());
    }
  }
  for (const Row& row : rows) {
    std::printf("| %s | %s | %d of %zu | %s |\n", table.op().c_str(), row.name.c_str(), row.cases,
                table.cases().size(), names_of(row.dtypes).c_str());
  }
}

void print_table(Device& device) {
  std::printf("| operation | implementation | cases it takes | operand types in them |\n");
  std::printf("|---|---|---|---|\n");
  for (const OpTable& table : op_tables()) print_rows(table, device);
}

int run_program(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Checks and times one operation's implementations against ref");
  app.add_option("op", options.op, "operation, e.g. softmax, or all");
  app.add_flag("--list", options.list, "list operations, or the cases of one");
  app.add_option("--case", options.number, "number of the case");
  app.add_option("--match", options.match, "cases whose name contains this");
  app.add_option("--impl", options.implementation, "one implementation, e.g. avx2");
  app.add_option("--device", options.device, "e.g. cpu:0")->capture_default_str();
  app.add_flag("--costs", options.costs, "with --list: costs and implementations, for programs");
  app.add_flag("--time", options.time, "also measure the time");
  app.add_option("--most-bytes", options.most_bytes, "leave out cases with larger operands");
  app.add_flag("--summary", options.summary, "a row for each operation, and what fails");
  app.add_flag("--or-skip", options.or_skip, "where the device is not there, say so and exit 77");
  app.add_flag("--table", options.table, "list every implementation and the types it takes");
  try {
    app.parse(argc, argv);
    if (options.op.empty() && !options.list && !options.table) throw CLI::RequiredError("op");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.or_skip) {
    if (const std::string reason = missing_reason(options.device); !reason.empty()) {
      std::printf("skipped: no %s: %s\n", options.device.c_str(), reason.c_str());
      return kSkipped;
    }
  }
  if (options.table) {
    print_table(device_called(options.device));
    return 0;
  }
  if (options.op.empty()) {
    list_operations();
    return 0;
  }
  return check_ops(options);
}

}  // namespace

int run_opcheck(int argc, const char* const* argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace rbee::harness
