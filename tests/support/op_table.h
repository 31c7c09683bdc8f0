#pragma once
// The cases of every operation, for tests, benchmarks and tools/opcheck. Each operation's file in
// tests/ops/cases registers its table; there is no central list.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/kernel_table.h"
#include "tests/support/scene.h"
#include "tests/support/tolerance.h"

namespace rbee::harness {

// The types that plain operations accept.
inline constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64,
                                        DType::f8e4m3};
inline constexpr DType kIntegerTypes[] = {DType::u8, DType::u32, DType::i16, DType::i32,
                                          DType::i64};
inline constexpr DType kPlainTypes[] = {DType::f32, DType::f16, DType::bf16,   DType::f64,
                                        DType::u8,  DType::u32, DType::f8e4m3, DType::i16,
                                        DType::i32, DType::i64};

// One case set up on one device; can run each implementation of the slot in turn.
class CaseRun {
 public:
  virtual ~CaseRun() = default;
  virtual int implementations() const = 0;
  virtual const char* name(int implementation) const = 0;
  // Null if the implementation accepts the case, else its reason.
  virtual const char* refusal(int implementation) const = 0;
  // Runs it and waits for its end. Outputs keep what earlier runs wrote: see Scene::reset.
  virtual void run(int implementation) = 0;

  Scene& scene() { return scene_; }

 protected:
  CaseRun(Device& device, uint64_t seed) : scene_(device, seed) {}
  Scene scene_;
};

// The correct outputs of a case, computed in double by a formula that shares no code with the
// kernels: one array for each output, from the inputs, both in order of creation.
using Formula = std::function<std::vector<HostArray>(const std::vector<HostArray>& inputs)>;

struct OpCase {
  std::string name;  // unique in its table, e.g. "f16 (7, 33) gaps"
  Family family;     // picks the tolerance, with the outputs' dtypes
  std::function<std::unique_ptr<CaseRun>(Device&)> set_up;
  Formula formula;
  bool big = false;  // for benchmarks; tests run it too
};

// A case as the file of an operation defines it.
template <typename Args>
struct CaseOf {
  std::string name;
  Family family = Family::exact;
  std::function<Args(Scene&)> build;
  Formula formula;
  bool big = false;
};

namespace detail {

template <typename Args>
class CaseRunOf final : public CaseRun {
 public:
  CaseRunOf(Device& device, uint64_t seed, Slot<Args> slot,
            const std::function<Args(Scene&)>& build)
      : CaseRun(device, seed), slot_(slot), args_(build(scene_)) {}

  int implementations() const override { return static_cast<int>(slot_.size()); }
  const char* name(int i) const override { return slot_[static_cast<size_t>(i)].name; }
  const char* refusal(int i) const override {
    return rbee::refusal(slot_[static_cast<size_t>(i)], args_, scene_.device().default_stream());
  }
  void run(int i) override {
    Stream& stream = scene_.device().default_stream();
    slot_[static_cast<size_t>(i)].run(args_, stream);
    scene_.device().synchronize(stream);
  }

 private:
  Slot<Args> slot_;
  Args args_;
};

uint64_t seed_of(const std::string& text);

}  // namespace detail

class OpTable {
 public:
  explicit OpTable(std::string op) : op_(std::move(op)) {}

  const std::string& op() const { return op_; }
  const std::vector<OpCase>& cases() const { return cases_; }

  template <typename Args>
  void add(Slot<Args> KernelTable::* slot, CaseOf<Args> c) {
    const uint64_t seed = detail::seed_of(cat(op_, ' ', c.name));
    auto set_up = [slot, seed, build = std::move(c.build)](Device& device) {
      const Slot<Args> kernels = device.kernels().*slot;
      return std::unique_ptr<CaseRun>(
          std::make_unique<detail::CaseRunOf<Args>>(device, seed, kernels, build));
    };
    cases_.push_back({std::move(c.name), c.family, std::move(set_up), std::move(c.formula), c.big});
  }

 private:
  std::string op_;
  std::vector<OpCase> cases_;
};

// A static object in a case file; `make` is called when tables are first read.
class RegisterOp {
 public:
  explicit RegisterOp(OpTable (*make)());
};

// All tables, sorted by the operation's name.
const std::vector<OpTable>& op_tables();

// Every device of every backend linked into this program; the CPU is the first.
std::vector<Device*> all_devices();

// Index of the implementation called `name`; -1 if there is none.
int find_implementation(const CaseRun& run, std::string_view name);

}  // namespace rbee::harness
