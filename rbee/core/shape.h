#pragma once
// Shape: up to kMaxRank sizes, in elements, outermost first. Strides: the same, signed.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace rbee {

inline constexpr int kMaxRank = 5;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values)
      : Dims(std::span<const int64_t>(values.begin(), values.size())) {}
  // Throws invalid_argument above kMaxRank values.
  explicit Dims(std::span<const int64_t> values);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + rank_; }
  const int64_t* data() const { return values_.data(); }
  void push_back(int64_t value);
  bool operator==(const Dims& other) const;

 private:
  std::array<int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

using Shape = Dims;
using Strides = Dims;

// Product of the sizes (1 for rank 0). Throws invalid_argument if a size is negative or the product
// of the sizes above 0 overflows 64 bits.
int64_t numel(const Shape& shape);
// Row-major strides of a contiguous tensor.
Strides contiguous_strides(const Shape& shape);
// Result of broadcasting `a` with `b` (NumPy's rule); throws invalid_argument naming both.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);
// Prints as "2, 3, 4".
void append_to(std::string& out, const Dims& dims);

}  // namespace rbee
