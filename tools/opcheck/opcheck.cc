// opcheck: runs cases of one operation from the tables of tests/ops and says how far each
// implementation is from `ref`, and `ref` from the case's formula, and how long it takes.
//   opcheck --list                           operations
//   opcheck unary --list                     its cases, numbered
//   opcheck unary --list --costs             also costs and the implementations that take each
//   opcheck unary --match "gelu f32" --time  cases whose name contains the text
//   opcheck all --device rocm:0 --summary    everything on one device, a row for each operation
//   opcheck all --isolate                    in child processes, which a GPU's fault may end
//   opcheck --table                          implementations and their types, as docs show them
// Exit status: 0 all within tolerance, 1 a case is not, 2 wrong usage, 3 a case ended its process,
// 77 --or-skip and no device.

#include "tools/opcheck/opcheck.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <set>

#include "rbee/core/error.h"
#include "tests/support/device_called.h"
#include "tools/opcheck/cases.h"
#include "tools/opcheck/isolated.h"

namespace rbee::harness {
namespace {

constexpr int kSkipped = 77;  // as CTest's SKIP_RETURN_CODE

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

void list_cases(const OpTable& table, const Options& options, Device& device) {
  for (const size_t i : fitting_cases(table, options)) {
    const OpCase& c = table.cases()[i];
    if (options.costs) {
      print_costs(i, c, device);
    } else {
      std::printf("%3zu  %s\n", i, c.name.c_str());
    }
  }
}

// Returns whether every case that fits is within tolerance.
bool check_op(const OpTable& table, const Options& options, Device& device) {
  Tally tally;
  check_cases(table, fitting_cases(table, options), options, device, tally,
              [](size_t, const char*) {});
  if (options.summary) print_row(table, tally);
  return tally.failed == 0;
}

std::vector<const OpTable*> tables_of(const std::string& op) {
  if (op != "all") return {&find_table(op)};
  std::vector<const OpTable*> tables;
  for (const OpTable& table : op_tables()) tables.push_back(&table);
  return tables;
}

int check_ops(const Options& options) {
  const std::vector<const OpTable*> tables = tables_of(options.op);
  if (options.isolate) return check_isolated(tables, options);
  Device& device = device_called(options.device);
  bool ok = true;
  if (options.list) {
    for (const OpTable* table : tables) list_cases(*table, options, device);
    return 0;
  }
  if (options.summary) print_header();
  for (const OpTable* table : tables) ok = check_op(*table, options, device) && ok;
  return ok ? 0 : 1;
}

// One row for each implementation: how many cases it takes and the operands' types in them.
void print_implementations(const OpTable& table, Device& device) {
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
  for (const OpTable& table : op_tables()) print_implementations(table, device);
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
  app.add_flag("--isolate", options.isolate,
               "cases in child processes: one that ends its process is told, and others go on")
      ->excludes("--list")
      ->excludes("--or-skip");
  app.add_option("--case-seconds", options.case_seconds, "with --isolate: most time of a case")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86400.0));
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
