#include "rbee/models/image/rotation_change.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"

namespace rbee::models {
namespace {

using Rows = std::vector<double>;  // row-major

// X of A X = B for a matrix A of n x n with I as its symmetric part, so that no pivot vanishes.
// Changes A; X replaces B.
void solve(Rows& a, Rows& b, size_t n) {
  const size_t width = b.size() / n;
  const auto subtract = [](double factor, const double* from, double* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] -= factor * from[i];
  };
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      if (factor == 0) continue;
      subtract(factor, &a[k * n + k], &a[i * n + k], n - k);
      subtract(factor, &b[k * width], &b[i * width], width);
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = 0; j < width; ++j) b[k * width + j] /= a[k * n + k];
    for (size_t i = 0; i < k; ++i) {
      if (a[i * n + k] != 0) subtract(a[i * n + k], &b[k * width], &b[i * width], width);
    }
  }
}

class RotationChange final : public WeightChange {
 public:
  RotationChange(std::string path, Rotation rotation)
      : WeightChange(1), path_(std::move(path)), rotation_(std::move(rotation)) {
    const Shape& shape = rotation_.blocks.shape;
    const bool square = (shape.rank() == 3 || shape.rank() == 4) && numel(shape) > 0 &&
                        shape[shape.rank() - 1] == shape[shape.rank() - 2];
    check(square, path_, rotation_.blocks.name, " is (", shape, "), which are no square blocks");
    side_ = shape[shape.rank() - 1];
    blocks_ = shape[shape.rank() - 3];
    factors_ = shape.rank() == 4 ? shape[0] : 0;
  }

  std::vector<float> values(std::span<const float> weight, const Shape& shape,
                            const RowShare& share, Device&) const override {
    const std::vector<float> skew = skew_blocks();
    Rows rows(weight.begin(), weight.end());
    const auto width = static_cast<size_t>(numel(shape) / shape[0]);
    const auto first = static_cast<size_t>(blocks_ / share.shares * share.first);
    if (factors_ == 0) turn(&skew[first * block_size()], -1, width, rows);
    for (int64_t i = 0; i < factors_; ++i) {
      const auto apart = static_cast<size_t>((side_ / 2) << i);
      const size_t all = static_cast<size_t>(blocks_) * block_size();
      Rows near = exchanged(rows, {2, apart}, width);
      turn(&skew[static_cast<size_t>(i) * all], 1, width, near);
      rows = exchanged(near, {apart, 2}, width);
    }
    if (rotation_.rescale) rescale(first * static_cast<size_t>(side_), width, rows);
    std::vector<float> out(rows.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(rows[i] - weight[i]);
    return out;
  }

  void check_fit(const std::string& name, const Shape& shape,
                 const RowShare& share) const override {
    const int64_t rows = blocks_ * side_;
    bool fits = shape.rank() >= 2 && blocks_ % share.shares == 0 &&
                rows / share.shares * share.count == shape[0] &&
                (!rotation_.rescale || numel(rotation_.rescale->shape) == rows);
    // A butterfly mixes all rows, so a part of them cannot have one.
    if (factors_ > 0) {
      const bool whole = share.shares == 1 && side_ % 2 == 0 && factors_ < 32;
      fits = fits && whole && rows % (side_ << (factors_ - 1)) == 0;
    }
    if (fits) return;
    fail(Code::invalid_argument, path_, rotation_.blocks.name, " is (", rotation_.blocks.shape,
         "), which is no change of ", name, " (", shape, "): the adapter is for another model");
  }

 private:
  size_t block_size() const { return static_cast<size_t>(side_ * side_); }

  // S of every block.
  std::vector<float> skew_blocks() const {
    const std::vector<float> sent = io::read_floats(rotation_.blocks);
    const auto side = static_cast<size_t>(side_);
    std::vector<float> out(sent.size());
    double squares = 0;
    for (size_t at = 0; at < sent.size(); at += block_size()) {
      for (size_t i = 0; i < side; ++i) {
        for (size_t j = 0; j < side; ++j) {
          const float value = sent[at + i * side + j] - sent[at + j * side + i];
          out[at + i * side + j] = value;
          squares += double{value} * value;
        }
      }
    }
    const double most = double{rotation_.constraint} * static_cast<double>(blocks_ * side_);
    const double norm = std::sqrt(squares);
    if (most <= 0 || norm <= most) return out;
    for (float& value : out) value = static_cast<float>(value * (most / norm));
    return out;
  }

  // Every block of rows by its S, times `sign`: (I + S) (I - S)^-1 = 2 (I - S)^-1 - I, and the
  // transpose of that is the same of -S.
  void turn(const float* skew, float sign, size_t width, Rows& rows) const {
    const auto side = static_cast<size_t>(side_);
    for (size_t at = 0; at < rows.size(); at += side * width, skew += side * side) {
      Rows matrix(side * side);
      for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = -double{sign} * skew[i];
      for (size_t i = 0; i < side; ++i) matrix[i * side + i] += 1;
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(at);
      Rows solved(begin, begin + static_cast<std::ptrdiff_t>(side * width));
      solve(matrix, solved, side);
      for (size_t i = 0; i < solved.size(); ++i) rows[at + i] = 2 * solved[i] - rows[at + i];
    }
  }

  // From rows in groups of a x b to groups of b x a.
  static Rows exchanged(const Rows& rows, std::array<size_t, 2> sides, size_t width) {
    const auto [a, b] = sides;
    Rows out(rows.size());
    for (size_t group = 0; group < rows.size(); group += a * b * width) {
      for (size_t i = 0; i < a * b; ++i) {
        const auto from = rows.begin() + static_cast<std::ptrdiff_t>(group + i * width);
        const size_t to = group + (i % b * a + i / b) * width;
        std::copy_n(from, width, out.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
    return out;
  }

  void rescale(size_t first, size_t width, Rows& rows) const {
    const std::vector<float> factors = io::read_floats(*rotation_.rescale);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] *= factors[first + i / width];
  }

  std::string path_;
  Rotation rotation_;
  int64_t side_ = 0, blocks_ = 0, factors_ = 0;
};

}  // namespace

std::shared_ptr<const WeightChange> rotation_change(const std::string& path,
                                                    const Rotation& rotation) {
  return std::make_shared<RotationChange>(path, rotation);
}

}  // namespace rbee::models
