#include <vector>

#include "backends/api/dispatch_blocks.h"
#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

template <typename From, typename To>
void cast_loop(const CastArgs& args) {
  const From* x = args.x.as<const From>();
  To* y = args.y.as<To>();
  const auto one = [&](int64_t at_y, int64_t at_x) { y[at_y] = store<To>(load(x[at_x])); };
  for_each(one, args.y, args.x);
}

void cast_plain(const CastArgs& args) {
  dispatch_numbers("cast", args.x.dtype, [&]<typename From>() {
    dispatch_numbers("cast", args.y.dtype, [&]<typename To>() { cast_loop<From, To>(args); });
  });
}

// The values of the blocks of x, one row after another, as float.
std::vector<float> dequantize(const View& x) {
  std::vector<float> values(static_cast<size_t>(x.numel()));
  dispatch_blocks("cast", x.dtype, [&]<typename Block>() {
    const Block* blocks = x.as<const Block>();
    const int64_t count = x.numel() / Block::kElements;
    for (int64_t b = 0; b < count; ++b) {
      shared::dequantize_block(blocks[b], values.data() + b * Block::kElements);
    }
  });
  return values;
}

void cast_blocks(const CastArgs& args) {
  const std::vector<float> values = dequantize(args.x);
  const float* next = values.data();
  dispatch_floats("cast", args.y.dtype, [&]<typename To>() {
    To* y = args.y.as<To>();
    for_each([&](int64_t at_y) { y[at_y] = store<To>(*next++); }, args.y);
  });
}

void run_cast(const CastArgs& args, Stream&) {
  is_quantized(args.x.dtype) ? cast_blocks(args) : cast_plain(args);
}

}  // namespace

const Impl<CastArgs> ref_cast = {"ref", never_refuse<CastArgs>, run_cast};

}  // namespace rbee::cpu
