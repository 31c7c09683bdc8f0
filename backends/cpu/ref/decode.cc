#include "backends/cpu/ref/decode.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace rbee::cpu {
namespace {

// The row of a contiguous matrix.
template <typename T>
std::span<const T> row_of(const View& x, int64_t row) {
  const auto length = static_cast<size_t>(x.size(-1));
  return {x.as<const T>() + row * x.size(-1), length};
}

struct Candidate {
  float value;
  int32_t id;
};

class Draw {
 public:
  Draw(const DrawArgs& args, int64_t row)
      : x_(args.x.as<const float>() + row * args.x.stride(0), static_cast<size_t>(args.x.size(1))),
        banned_(row_of<int32_t>(args.banned, row)),
        top_(row_of<float>(args.values, row)[0]),
        sum_(args.sum.as<const float>()[row]) {
    const auto values = row_of<float>(args.values, row);
    const auto ids = row_of<int32_t>(args.ids, row);
    banned_ = banned_.first(static_cast<size_t>(std::ranges::find(banned_, -1) - banned_.begin()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!is_banned(ids[i])) list_.push_back({values[i], ids[i]});
    }
    if (list_.empty()) list_.push_back({values[0], ids[0]});
  }

  void cut(DrawStage stage, double amount) {
    switch (stage) {
      case DrawStage::none:
        break;
      case DrawStage::temperature:
        scale_ /= amount;
        break;
      case DrawStage::top_k:
        keep(static_cast<size_t>(std::min(amount, static_cast<double>(list_.size()))));
        break;
      case DrawStage::top_p:
        keep(reaching([&, wanted = amount * mass()](double mass) { return mass >= wanted; }) + 1);
        break;
      case DrawStage::min_p: {
        size_t count = 0;
        while (count < list_.size() && scale_ * below(list_[count].value) >= std::log(amount)) {
          ++count;
        }
        keep(count);
        break;
      }
    }
  }
  int32_t draw(double number) {
    if (!cut_) put_the_rest_behind();
    const size_t at =
        reaching([&, wanted = number * mass()](double mass) { return mass > wanted; });
    return list_[std::min(at, list_.size() - 1)].id;
  }

 private:
  bool is_banned(int32_t id) const { return std::ranges::find(banned_, id) != banned_.end(); }
  double below(float value) const { return double{value} - double{list_.front().value}; }
  double weight(float value) const {
    return std::isnan(value) || std::isinf(value) ? 0 : std::exp(scale_ * below(value));
  }
  // Of the whole row, by its sum, or of the rest after a stage.
  double mass() const {
    double mass = 0;
    if (cut_ || whole_) {
      for (const Candidate& c : list_) mass += weight(c.value);
      return mass;
    }
    mass = sum_ * std::exp(scale_ * below(top_));
    for (const int32_t id : banned_) {
      if (static_cast<size_t>(id) < x_.size()) mass -= weight(x_[static_cast<size_t>(id)]);
    }
    return mass;
  }
  // The candidates become those of the whole row.
  void put_the_rest_behind() {
    list_.resize(std::min(list_.size(), static_cast<size_t>(kDrawFront)));
    const Candidate last = list_.back();
    for (size_t i = 0; i < x_.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      const bool behind = x_[i] < last.value || (x_[i] == last.value && id > last.id);
      if (behind && weight(x_[i]) > 0 && !is_banned(id)) list_.push_back({x_[i], id});
    }
    whole_ = true;
  }
  template <typename Reaches>
  size_t reaching(const Reaches& reaches) const {
    double mass = 0;
    for (size_t i = 0; i < list_.size(); ++i) {
      mass += weight(list_[i].value);
      if (reaches(mass)) return i;
    }
    return list_.size();
  }
  void keep(size_t count) {
    cut_ = true;
    list_.resize(std::clamp<size_t>(count, 1, list_.size()));
  }

  std::span<const float> x_;
  std::span<const int32_t> banned_;
  float top_;
  double sum_;
  std::vector<Candidate> list_;
  double scale_ = 1;
  bool cut_ = false, whole_ = false;
};

void run_draw(const DrawArgs& args, Stream&) {
  const auto turn = static_cast<size_t>(*args.turn.as<const int32_t>());
  for (int64_t row = 0; row < args.values.size(0); ++row) {
    Draw candidates(args, row);
    const auto stages = row_of<int32_t>(args.stages, row);
    const auto amounts = row_of<float>(args.amounts, row);
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto stage = static_cast<DrawStage>(stages[i]);
      if (stage == DrawStage::none) break;
      candidates.cut(stage, amounts[i]);
    }
    args.drawn.as<int32_t>()[row] = candidates.draw(row_of<float>(args.numbers, row)[turn]);
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
