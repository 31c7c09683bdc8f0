// Which implementation stands in which slot of the CPU's kernel table, best first.

#include "backends/api/kernel_table.h"

#include <array>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/ref/linear.h"

// Entries for x86-64 only; other processors go straight to what follows.
#ifdef __x86_64__
#define RB_X86(...) __VA_ARGS__,
#else
#define RB_X86(...)
#endif

namespace rbee::cpu {
namespace {

template <typename Args>
Args args_of(const Impl<Args>&);

// slot<a, b>(): the implementations a, then b.
template <const auto& kFirst, const auto&... kRest>
auto slot() {
  static const std::array list{kFirst, kRest...};
  return Slot<decltype(args_of(kFirst))>(list);
}

void add_elementwise(KernelTable&) {}

void add_reductions(KernelTable&) {}

void add_norms(KernelTable&) {}

void add_convolutions(KernelTable&) {}

void add_indexing(KernelTable&) {}

void add_products(KernelTable& t) {
  t.linear = slot<ref_linear>();
}

void add_attention(KernelTable&) {}

void add_random(KernelTable&) {}

}  // namespace

const KernelTable& cpu_kernels() {
  static const KernelTable table = [] {
    KernelTable t;
    add_elementwise(t);
    add_reductions(t);
    add_norms(t);
    add_convolutions(t);
    add_indexing(t);
    add_products(t);
    add_attention(t);
    add_random(t);
    return t;
  }();
  return table;
}

}  // namespace rbee::cpu
