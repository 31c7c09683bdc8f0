// Every case of every table: `ref` against the case's formula, and every implementation of every
// device that takes the case against `ref`.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

using TableTest = ::testing::TestWithParam<const OpTable*>;

std::vector<const OpTable*> tables() {
  std::vector<const OpTable*> out;
  for (const OpTable& table : op_tables()) out.push_back(&table);
  return out;
}

void run_fresh(CaseRun& run, int implementation) {
  run.scene().reset();
  run.run(implementation);
}

std::unique_ptr<CaseRun> run_reference(const OpCase& c) {
  std::unique_ptr<CaseRun> run = c.set_up(*all_devices().front());
  const int ref = find_implementation(*run, "ref");
  if (ref < 0) return nullptr;
  EXPECT_EQ(run->refusal(ref), nullptr) << "ref takes everything";
  run_fresh(*run, ref);
  return run;
}

TEST_P(TableTest, ReferenceMatchesFormula) {
  for (const OpCase& c : GetParam()->cases()) {
    SCOPED_TRACE(c.name);
    const std::unique_ptr<CaseRun> run = run_reference(c);
    ASSERT_NE(run, nullptr) << "the CPU's slot has no ref";
    const std::vector<HostArray> want = c.formula(run->scene().inputs());
    ASSERT_EQ(want.size(), run->scene().outputs().size());
    for (size_t i = 0; i < want.size(); ++i) {
      const Tensor& got = run->scene().outputs()[i].view;
      const Comparison result = compare_values(read_values(got), within_range(want[i], got.dtype()),
                                               tolerance(c.family, got.dtype(), DeviceKind::cpu));
      EXPECT_TRUE(result.ok) << "output " << i << ": " << result.first_failure;
    }
  }
}

void compare_with_reference(const OpCase& c, CaseRun& reference, Device& device,
                            std::map<std::string, int>& taken) {
  const std::unique_ptr<CaseRun> run = c.set_up(device);
  const DeviceKind kind = device.id().kind;
  for (int i = 0; i < run->implementations(); ++i) {
    const std::string name = cat(device.id(), ' ', run->name(i));
    if (run->refusal(i) != nullptr) continue;
    SCOPED_TRACE(name);
    ++taken[name];
    run_fresh(*run, i);
    for (size_t o = 0; o < run->scene().outputs().size(); ++o) {
      const Scene::Output& got = run->scene().outputs()[o];
      const Comparison result = compare_outputs(got, reference.scene().outputs()[o],
                                                tolerance(c.family, got.view.dtype(), kind));
      EXPECT_TRUE(result.ok) << "output " << o << ": " << result.first_failure;
    }
  }
}

TEST_P(TableTest, EveryImplementationMatchesReference) {
  std::map<std::string, int> taken;
  for (const OpCase& c : GetParam()->cases()) {
    SCOPED_TRACE(c.name);
    const std::unique_ptr<CaseRun> reference = run_reference(c);
    ASSERT_NE(reference, nullptr) << "the CPU's slot has no ref";
    for (Device* device : all_devices()) compare_with_reference(c, *reference, *device, taken);
  }
  for (const auto& [name, count] : taken) RecordProperty(name, count);
}

INSTANTIATE_TEST_SUITE_P(Ops, TableTest, ::testing::ValuesIn(tables()),
                         [](const auto& p) { return p.param->op(); });

}  // namespace
}  // namespace rbee::harness
