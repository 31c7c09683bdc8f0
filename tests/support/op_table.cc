#include "tests/support/op_table.h"

#include <algorithm>

#include "backends/api/registry.h"
#include "backends/linked/linked_backends.h"
#include "rbee/core/error.h"

namespace rbee::harness {
namespace {

using Maker = OpTable (*)();

std::vector<Maker>& makers() {
  static std::vector<Maker> instance;
  return instance;
}

std::vector<OpTable> make_tables() {
  std::vector<OpTable> tables;
  for (const Maker make : makers()) tables.push_back(make());
  std::sort(tables.begin(), tables.end(),
            [](const OpTable& a, const OpTable& b) { return a.op() < b.op(); });
  return tables;
}

}  // namespace

namespace detail {

// FNV-1a, 64 bits (Fowler, Noll and Vo): the same on every machine, unlike std::hash.
uint64_t seed_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace detail

RegisterOp::RegisterOp(OpTable (*make)()) {
  makers().push_back(make);
}

const std::vector<OpTable>& op_tables() {
  static const std::vector<OpTable> tables = make_tables();
  return tables;
}

std::vector<Device*> all_devices() {
  static const bool registered = [] {
    register_linked_backends();
    return true;
  }();
  (void)registered;
  std::vector<Device*> devices;
  for (const BackendInfo& backend : backends()) {
    for (int i = 0; i < backend.device_count(); ++i) {
      try {
        devices.push_back(&backend.device(i));
      } catch (const Error& error) {
        // A card without kernels, beside others.
        if (error.code() != Code::unsupported) throw;
      }
    }
  }
  std::stable_sort(devices.begin(), devices.end(), [](const Device* a, const Device* b) {
    return a->id().kind == DeviceKind::cpu && b->id().kind != DeviceKind::cpu;
  });
  return devices;
}

int find_implementation(const CaseRun& run, std::string_view name) {
  for (int i = 0; i < run.implementations(); ++i) {
    if (run.name(i) == name) return i;
  }
  return -1;
}

}  // namespace rbee::harness
