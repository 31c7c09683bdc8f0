#include "backends/cpu/ref/reduce.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// The axes of x that are reduced; the others have size 1.
View reduced_part(const ReduceArgs& args) {
  View part = args.x;
  for (int i = 0; i < part.rank; ++i) {
    if ((args.axes >> i & 1) == 0) part.sizes[i] = 1;
  }
  return part;
}

// Adds in unsigned arithmetic, so that integers wrap around.
template <typename T>
T sum_of(const T* x, const View& part) {
  using S = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  S sum = 0;
  for_each([&](int64_t at) { sum += static_cast<S>(load(x[at])); }, part);
  return store<T>(sum);
}

// The place, in order, of the winner; NaN beats every number. `value` gets the winner.
template <typename T>
uint32_t find(const T* x, const View& part, bool largest, T& value) {
  uint32_t index = 0, best = 0;
  const auto look = [&](int64_t at) {
    const auto now = load(x[at]), held = load(value);
    const bool wins =
        index == 0 || (held == held && (now != now || (largest ? now > held : now < held)));
    if (wins) {
      value = x[at];
      best = index;
    }
    ++index;
  };
  for_each(look, part);
  return best;
}

template <typename T>
void reduce_loop(const ReduceArgs& args, const View& part) {
  const T* x = args.x.as<const T>();
  const bool largest = args.op == ReduceOp::max || args.op == ReduceOp::argmax;
  const bool index = args.op == ReduceOp::argmin || args.op == ReduceOp::argmax;
  const auto one = [&](int64_t at_y, int64_t at_x) {
    if (args.op == ReduceOp::sum) {
      args.y.as<T>()[at_y] = sum_of(x + at_x, part);
      return;
    }
    T value{};
    const uint32_t place = find(x + at_x, part, largest, value);
    if (index) {
      args.y.as<uint32_t>()[at_y] = place;
    } else {
      args.y.as<T>()[at_y] = value;
    }
  };
  for_each(one, args.y, args.x);
}

void run_reduce(const ReduceArgs& args, Stream&) {
  const View part = reduced_part(args);
  dispatch_numbers("reduce", args.x.dtype, [&]<typename T>() { reduce_loop<T>(args, part); });
}

}  // namespace

const Impl<ReduceArgs> ref_reduce = {"ref", never_refuse<ReduceArgs>, run_reduce};

}  // namespace rbee::cpu
