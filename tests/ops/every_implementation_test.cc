// Every case of every table: `ref` against the case's formula, and each device's implementations
// that accept the case against `ref`.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/check_case.h"

namespace rbee::harness {
namespace {

using TableTest = ::testing::TestWithParam<const OpTable*>;

std::vector<const OpTable*> tables() {
  std::vector<const OpTable*> out;
  for (const OpTable& table : op_tables()) out.push_back(&table);
  return out;
}

TEST_P(TableTest, ReferenceMatchesFormula) {
  for (const OpCase& c : GetParam()->cases()) {
    SCOPED_TRACE(c.name);
    const std::unique_ptr<CaseRun> reference = run_reference(c);
    const int ref = find_implementation(*reference, "ref");
    EXPECT_EQ(reference->refusal(ref), nullptr) << "ref takes everything";
    const Comparison result = compare_with_formula(c, *reference);
    EXPECT_TRUE(result.ok) << result.first_failure;
  }
}

void check_device(const OpCase& c, CaseRun& reference, Device& device,
                  std::map<std::string, int>& taken) {
  const std::unique_ptr<CaseRun> run = c.set_up(device);
  for (int i = 0; i < run->implementations(); ++i) {
    if (run->refusal(i) != nullptr) continue;
    const std::string name = cat(device.id(), ' ', run->name(i));
    SCOPED_TRACE(name);
    ++taken[name];
    run_fresh(*run, i);
    const Comparison result = compare_with_reference(c, *run, reference);
    EXPECT_TRUE(result.ok) << result.first_failure;
  }
}

TEST_P(TableTest, EveryImplementationMatchesReference) {
  std::map<std::string, int> taken;
  for (const OpCase& c : GetParam()->cases()) {
    SCOPED_TRACE(c.name);
    const std::unique_ptr<CaseRun> reference = run_reference(c);
    for (Device* device : all_devices()) check_device(c, *reference, *device, taken);
  }
  for (const auto& [name, count] : taken) RecordProperty(name, count);
}

INSTANTIATE_TEST_SUITE_P(Ops, TableTest, ::testing::ValuesIn(tables()),
                         [](const auto& p) { return p.param->op(); });

}  // namespace
}  // namespace rbee::harness
