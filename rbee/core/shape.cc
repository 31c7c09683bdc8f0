#include "rbee/core/shape.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee {

Dims::Dims(std::span<const int64_t> values) : rank_(static_cast<int>(values.size())) {
  check(values.size() <= size_t{kMaxRank}, "shape", "rank ", values.size(), " is above ", kMaxRank);
  std::copy(values.begin(), values.end(), values_.begin());
}

void Dims::push_back(int64_t value) {
  check(rank_ < kMaxRank, "shape", "rank ", rank_ + 1, " is above ", kMaxRank);
  values_[static_cast<size_t>(rank_++)] = value;
}

bool Dims::operator==(const Dims& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

int64_t numel(const Shape& shape) {
  // Sizes beside a 0 must not overflow either: strides are their products.
  int64_t product = 1;
  bool is_empty = false;
  for (int64_t size : shape) {
    check(size >= 0, "shape", "size ", size, " in (", shape, ") is negative");
    is_empty = is_empty || size == 0;
    check(size == 0 || !__builtin_mul_overflow(product, size, &product), "shape", "(", shape,
          ") has more elements than 64 bits count");
  }
  return is_empty ? 0 : product;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = shape;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[i + shift];
    const int64_t y = shorter[i];
    check(x == y || x == 1 || y == 1, op, "shapes (", a, ") and (", b, ") do not broadcast");
    out[i + shift] = x == 1 ? y : x;
  }
  return out;
}

void append_to(std::string& out, const Dims& dims) {
  for (int i = 0; i < dims.rank(); ++i) {
    if (i > 0) out.append(", ");
    append_to(out, cat(dims[i]));
  }
}

}  // namespace rbee
