#include <algorithm>
#include <numeric>
#include <vector>

#include "backends/cpu/ref/number.h"
#include "backends/cpu/ref/reduce.h"

namespace rbee::cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

template <typename T>
void read_row(const View& x, int64_t row, std::vector<float>& values) {
  const T* from = x.as<const T>() + row * x.stride(0);
  for (float& value : values) {
    value = load(*from);
    if (std::isnan(value)) value = kLowest;
    from += x.stride(1);
  }
}

double sum_of(const std::vector<float>& values, float top, float scale) {
  double sum = 0;
  for (const float value : values) {
    if (value != kLowest) sum += std::exp(double{scale} * (double{value} - double{top}));
  }
  return sum;
}

void run_top_k(const TopKArgs& args, Stream&) {
  const int64_t rows = args.x.size(0), k = args.values.size(1);
  std::vector<float> values(static_cast<size_t>(args.x.size(1)));
  std::vector<int32_t> order(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    dispatch<float, f16, bf16>("top_k", args.x.dtype,
                               [&]<typename T>() { read_row<T>(args.x, row, values); });
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
      return values[static_cast<size_t>(i)] > values[static_cast<size_t>(j)];
    });
    for (int64_t i = 0; i < k; ++i) {
      const int32_t id = order[static_cast<size_t>(i)];
      args.ids.as<int32_t>()[row * args.ids.stride(0) + i * args.ids.stride(1)] = id;
      args.values.as<float>()[row * args.values.stride(0) + i * args.values.stride(1)] =
          values[static_cast<size_t>(id)];
    }
    if (!args.sum) continue;
    const float top = values[static_cast<size_t>(order[0])];
    const float scale = args.scale ? args.scale.as<float>()[row * args.scale.stride(0)] : 1.0f;
    args.sum.as<float>()[row * args.sum.stride(0)] = static_cast<float>(sum_of(values, top, scale));
  }
}

}  // namespace

const Impl<TopKArgs> ref_top_k = {"ref", never_refuse<TopKArgs>, run_top_k};

}  // namespace rbee::cpu
