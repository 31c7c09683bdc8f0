#include <algorithm>
#include <numeric>
#include <vector>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"
#include "backends/cpu/ref/reduce.h"

namespace rbee::cpu {
namespace {

// NaN comes after every number.
template <typename C>
bool before(C a, C b) {
  return a < b || (a == a && b != b);
}

template <typename T>
void argsort_row(const T* x, int64_t step, bool descending, std::vector<uint32_t>& order) {
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t i, uint32_t j) {
    const auto a = load(x[i * step]), b = load(x[j * step]);
    return descending ? before(b, a) : before(a, b);
  });
}

void run_argsort(const ArgsortArgs& args, Stream&) {
  const View &x = args.x, &y = args.y;
  std::vector<uint32_t> order(static_cast<size_t>(x.size(-1)));
  dispatch_numbers("argsort", x.dtype, [&]<typename T>() {
    const auto row = [&](int64_t at_y, int64_t at_x) {
      argsort_row(x.as<const T>() + at_x, x.stride(-1), args.descending, order);
      uint32_t* to = y.as<uint32_t>() + at_y;
      for (const uint32_t index : order) {
        *to = index;
        to += y.stride(-1);
      }
    };
    for_each(row, rows_of(y), rows_of(x));
  });
}

}  // namespace

const Impl<ArgsortArgs> ref_argsort = {"ref", never_refuse<ArgsortArgs>, run_argsort};

}  // namespace rbee::cpu
