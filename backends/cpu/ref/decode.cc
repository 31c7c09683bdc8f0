#include "backends/cpu/ref/decode.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace rbee::cpu {
namespace {

// The row of a contiguous matrix.
template <typename T>
std::span<const T> row_of(const View& x, int64_t row) {
  const auto length = static_cast<size_t>(x.size(-1));
  return {x.as<const T>() + row * x.size(-1), length};
}

class Draw {
 public:
  Draw(std::span<const float> values, float sum)
      : values_(values), sum_(sum), count_(std::ssize(values)) {}

  void cut(DrawStage stage, double amount) {
    switch (stage) {
      case DrawStage::none:
        break;
      case DrawStage::temperature:
        scale_ /= amount;
        break;
      case DrawStage::top_k:
        keep(static_cast<int64_t>(std::min(amount, static_cast<double>(count_))));
        break;
      case DrawStage::top_p:
        keep(reaching([&, wanted = amount * mass()](double mass) { return mass >= wanted; }) + 1);
        break;
      case DrawStage::min_p: {
        int64_t count = 0;
        while (count < count_ && scale_ * below(count) >= std::log(amount)) ++count;
        keep(count);
        break;
      }
    }
  }
  int64_t draw(double number) const {
    return reaching([&, wanted = number * mass()](double mass) { return mass > wanted; });
  }

 private:
  double below(int64_t i) const {
    return double{values_[static_cast<size_t>(i)]} - double{values_[0]};
  }
  double weight(int64_t i) const {
    return std::isinf(values_[static_cast<size_t>(i)]) ? 0 : std::exp(scale_ * below(i));
  }
  double mass() const {
    if (!cut_) return sum_;
    double mass = 0;
    for (int64_t i = 0; i < count_; ++i) mass += weight(i);
    return mass;
  }
  template <typename Reaches>
  int64_t reaching(const Reaches& reaches) const {
    double mass = 0;
    for (int64_t i = 0; i < count_; ++i) {
      mass += weight(i);
      if (reaches(mass)) return i;
    }
    return count_ - 1;
  }
  void keep(int64_t count) {
    cut_ = true;
    count_ = std::clamp<int64_t>(count, 1, count_);
  }

  std::span<const float> values_;
  double sum_;
  int64_t count_;
  double scale_ = 1;
  bool cut_ = false;
};

void run_draw(const DrawArgs& args, Stream&) {
  const auto turn = static_cast<size_t>(*args.turn.as<const int32_t>());
  for (int64_t row = 0; row < args.values.size(0); ++row) {
    Draw candidates(row_of<float>(args.values, row), args.sum.as<const float>()[row]);
    const auto stages = row_of<int32_t>(args.stages, row);
    const auto amounts = row_of<float>(args.amounts, row);
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto stage = static_cast<DrawStage>(stages[i]);
      if (stage == DrawStage::none) break;
      candidates.cut(stage, amounts[i]);
    }
    const int64_t at = candidates.draw(row_of<float>(args.numbers, row)[turn]);
    args.drawn.as<int32_t>()[row] = row_of<int32_t>(args.ids, row)[static_cast<size_t>(at)];
  }
}

void run_next_step(const NextStepArgs& args, Stream&) {
  const int64_t count = args.found.size(0), width = args.block_table.size(1);
  int32_t& turn = *args.turn.as<int32_t>();
  std::copy_n(args.found.as<const int32_t>(), count, args.shown.as<int32_t>() + turn % 2 * count);
  ++turn;
  for (int64_t row = 0; row < args.positions.size(0); ++row) {
    int32_t& slot = args.slots.as<int32_t>()[row];
    if (slot < 0) continue;
    const int64_t position = ++args.positions.as<int32_t>()[row];
    ++args.lengths.as<int32_t>()[row];
    const int64_t block = position / args.block_size;
    const int32_t* table = args.block_table.as<const int32_t>() + row * width;
    slot = block < width
               ? static_cast<int32_t>(table[block] * args.block_size + position % args.block_size)
               : -1;
  }
}

}  // namespace

const Impl<DrawArgs> ref_draw = {"ref", never_refuse<DrawArgs>, run_draw};
const Impl<NextStepArgs> ref_next_step = {"ref", never_refuse<NextStepArgs>, run_next_step};

}  // namespace rbee::cpu
