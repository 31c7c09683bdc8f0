// The draw of a token from a row's largest logits, and a step's integers for the step behind it.
// Limited by waiting: a block draws for a row, with a few candidates in the registers of each
// thread and a sum over the block for each stage that needs the mass.
#include "backends/gpu/portable.h"
#include "backends/shared/decode_params.h"

namespace rbee {
namespace gpu {

constexpr u32 kThreads = 256;
constexpr u32 kEach = 4;  // candidates of a thread: kMaxTopK in all

// DrawStage.
enum Stage : i32 { kNone, kTemperature, kTopK, kTopP, kMinP };

struct Smaller {
  RB_DEVICE u32 operator()(u32 a, u32 b) const { return b < a ? b : a; }
};

// A row's candidates, of which thread t holds 4 t + 0..3.
template <int kWave>
class Draw {
 public:
  RB_DEVICE Draw(const DrawParams& p, u32 row)
      : first_(thread_x() * kEach), count_(p.k), whole_(p.sum[row]) {
    const float* values = p.values + static_cast<u64>(row) * p.k;
    largest_ = values[0];
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      below_[i] = first_ + i < p.k ? values[first_ + i] - largest_ : -infinity();
    }
  }

  RB_DEVICE void cut(i32 stage, float amount) {
    if (stage == kTemperature) {
      scale_ /= amount;
    } else if (stage == kTopK) {
      keep(amount < static_cast<float>(count_) ? static_cast<u32>(amount) : count_);
    } else if (stage == kTopP) {
      keep(reaching(amount, [](float mass, float wanted) { return mass >= wanted; }) + 1);
    } else if (stage == kMinP) {
      const float least = log(amount);
      keep(first_where([&](u32 i) { return scale_ * below_[i] < least; }));
    }
  }
  RB_DEVICE u32 draw(float number) {
    return reaching(number, [](float mass, float wanted) { return mass > wanted; });
  }

 private:
  RB_DEVICE void keep(u32 count) {
    cut_ = true;
    count_ = count < 1 ? 1 : count < count_ ? count : count_;
  }

  // The first candidate for which this is true; count_ without one.
  template <class Is>
  RB_DEVICE u32 first_where(const Is& is) {
    RB_SHARED u32 slots[kThreads / kWave];
    u32 found = count_;
#pragma unroll
    for (u32 i = kEach; i-- > 0;) {
      if (first_ + i < count_ && is(i)) found = first_ + i;
    }
    return block_reduce<kWave, kThreads>(found, slots, Smaller{});
  }

  // The first whose mass, with those in front, reaches that share of all; else the last.
  template <class Reaches>
  RB_DEVICE u32 reaching(float share, const Reaches& reaches) {
    RB_SHARED float waves[kThreads / kWave];
    float masses[kEach];
    float mine = 0;
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (first_ + i < count_ && below_[i] != -infinity()) mine += exp(scale_ * below_[i]);
      masses[i] = mine;
    }
    float before = 0, all = mine;  // of the lanes in front of this one, of those that met
#pragma unroll
    for (int apart = 1; apart < kWave; apart *= 2) {
      const float other = shuffle_xor<kWave>(all, apart);
      if ((thread_x() & static_cast<u32>(apart)) != 0) before += other;
      all += other;
    }
    const u32 wave = thread_x() / kWave;
    if (thread_x() % kWave == 0) waves[wave] = all;
    barrier();
    float total = 0;
    for (u32 i = 0; i < kThreads / kWave; ++i) {
      if (i < wave) before += waves[i];
      total += waves[i];
    }
    barrier();
    const float wanted = share * (cut_ ? total : whole_);
    const u32 found = first_where([&](u32 i) { return reaches(before + masses[i], wanted); });
    return found < count_ ? found : count_ - 1;
  }

  u32 first_;
  u32 count_;
  float whole_;
  float largest_;
  float below_[kEach];
  float scale_ = 1;
  bool cut_ = false;
};

template <int kWave>
RB_DEVICE void draw(const DrawParams& p) {
  const u32 row = block_x();
  Draw<kWave> candidates(p, row);
  for (u32 i = 0; i < kMostStages; ++i) {
    const i32 stage = p.stages[row * kMostStages + i];
    if (stage == kNone) break;
    candidates.cut(stage, p.amounts[row * kMostStages + i]);
  }
  const float number = p.numbers[static_cast<u64>(row) * p.columns + static_cast<u32>(*p.turn)];
  const u32 at = candidates.draw(number);
  if (thread_x() == 0) p.drawn[row] = p.ids[static_cast<u64>(row) * p.k + at];
}

RB_DEVICE void advance(const NextStepParams& p) {
  const i32 turn = *p.turn;
  i32* shown = p.shown + static_cast<u64>(turn & 1) * p.count;
  for (i64 i = grid_thread(); i < p.count; i += grid_threads()) shown[i] = p.found[i];
  if (p.alone == 0) return;
  for (u32 row = thread_x(); row < p.rows; row += kThreads) {
    if (p.slots[row] < 0) continue;
    const u32 position = static_cast<u32>(p.positions[row]) + 1;
    const u32 block = position / p.block_size;
    const u64 at = static_cast<u64>(row) * p.width + block;
    const u32 in_block = position % p.block_size;
    p.positions[row] = static_cast<i32>(position);
    p.lengths[row] += 1;
    p.slots[row] =
        block < p.width
            ? static_cast<i32>(static_cast<u32>(p.block_table[at]) * p.block_size + in_block)
            : -1;
  }
  // All have read it.
  barrier();
  if (thread_x() == 0) *p.turn = turn + 1;
}

#define RB_DRAW(lanes, wave) RB_KERNEL(draw_##wave, kThreads, DrawParams, (draw<lanes>(p)))
RB_WAVES(RB_DRAW)
RB_KERNEL(next_step, kThreads, NextStepParams, (advance(p)))

}  // namespace gpu
}  // namespace rbee
