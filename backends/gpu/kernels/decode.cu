// The draw of a token from a row's largest logits, and the integers of the next step.
// Waiting limits it: a block draws for a row, with a few candidates in the registers of each
// thread and a sum over the block for each stage that needs the mass. It reads the whole row only
// for a draw that these do not decide, each part once more than the one around it.
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

// The sum before this thread, and the block's.
template <class T>
struct Place {
  T before, all;
};
template <int kWave, class T>
RB_DEVICE Place<T> place_in_block(T mine) {
  RB_SHARED T waves[kThreads / kWave];
  T before = 0, all = mine;  // of the lanes merged so far
#pragma unroll
  for (int apart = 1; apart < kWave; apart *= 2) {
    const T other = shuffle_xor<kWave>(all, apart);
    if ((thread_x() & static_cast<u32>(apart)) != 0) before += other;
    all += other;
  }
  const u32 wave = thread_x() / kWave;
  if (thread_x() % kWave == 0) waves[wave] = all;
  barrier();
  T total = 0;
  for (u32 i = 0; i < kThreads / kWave; ++i) {
    if (i < wave) before += waves[i];
    total += waves[i];
  }
  barrier();
  return {before, total};
}

// A row's candidates; thread t holds 4 t + 0..3.
template <int kWave>
class Draw {
 public:
  RB_DEVICE Draw(const DrawParams& p, u32 row)
      : x_(p.x + static_cast<i64>(row) * p.x_row),
        banned_(p.banned + row * kMostBans),
        n_(p.n),
        first_(thread_x() * kEach),
        count_(p.k),
        sum_(p.sum[row]) {
    const float* values = p.values + static_cast<u64>(row) * p.k;
    const i32* ids = p.ids + static_cast<u64>(row) * p.k;
    top_ = values[0];
    for (u32 i = 0; i < kEach; ++i) {
      const bool there = first_ + i < p.k;
      ids_[i] = there ? ids[first_ + i] : 0;
      values_[i] = there ? values[first_ + i] : -infinity();
    }
    if (banned_[0] >= 0) close_ranks();
    largest_ = shown(0).value;
  }

  RB_DEVICE void cut(i32 stage, float amount) {
    if (stage == kTemperature) {
      scale_ /= amount;
    } else if (stage == kTopK) {
      keep(amount < static_cast<float>(count_) ? static_cast<u32>(amount) : count_);
    } else if (stage == kTopP) {
      const u32 at =
          reaching(amount, count_, [](float mass, float wanted) { return mass >= wanted; });
      keep(at + 1);
    } else if (stage == kMinP) {
      const float least = log(amount);
      keep(first_where(count_, [&](u32 i) { return scale_ * (values_[i] - largest_) < least; }));
    }
  }
  RB_DEVICE i32 draw(float number) {
    const u32 front = cut_ || count_ < kFront ? count_ : kFront;
    const u32 at = reaching(number, front, [](float mass, float wanted) { return mass > wanted; });
    if (at < front) return shown(at).id;
    return cut_ || n_ <= front ? shown(front - 1).id : draw_behind(front, number);
  }

 private:
  struct Candidate {
    float value;
    i32 id;
  };

  // One of the candidates, for all threads.
  RB_DEVICE Candidate shown(u32 at) {
    RB_SHARED Candidate one;
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (first_ + i == at) one = Candidate{values_[i], ids_[i]};
    }
    barrier();
    const Candidate out = one;
    barrier();
    return out;
  }

  RB_DEVICE bool is_banned(i32 id) const {
    bool found = false;
    for (u32 i = 0; i < kMostBans && banned_[i] >= 0; ++i) found = found || banned_[i] == id;
    return found;
  }

  // Drops banned candidates; one stays.
  RB_DEVICE void close_ranks() {
    RB_SHARED Candidate places[kThreads * kEach];
    u32 mine = 0;
    bool stays[kEach];
    for (u32 i = 0; i < kEach; ++i) {
      stays[i] = first_ + i < count_ && !is_banned(ids_[i]);
      mine += stays[i] ? 1 : 0;
    }
    const Place<u32> place = place_in_block<kWave>(mine);
    u32 to = place.before;
    for (u32 i = 0; i < kEach; ++i) {
      if (stays[i]) places[to++] = Candidate{values_[i], ids_[i]};
    }
    barrier();
    if (place.all == 0) {
      count_ = 1;
      return;
    }
    count_ = place.all;
    for (u32 i = 0; i < kEach; ++i) {
      const bool there = first_ + i < count_;
      values_[i] = there ? places[first_ + i].value : -infinity();
      ids_[i] = there ? places[first_ + i].id : 0;
    }
  }

  RB_DEVICE void keep(u32 count) {
    cut_ = true;
    count_ = count < 1 ? 1 : count < count_ ? count : count_;
  }

  // The first of `count` candidates for which this is true; `count` if there is none.
  template <class Is>
  RB_DEVICE u32 first_where(u32 count, const Is& is) {
    RB_SHARED u32 slots[kThreads / kWave];
    u32 found = count;
#pragma unroll
    for (u32 i = kEach; i-- > 0;) {
      if (first_ + i < count && is(i)) found = first_ + i;
    }
    return block_reduce<kWave, kThreads>(found, slots, Smaller{});
  }

  RB_DEVICE float weight(float x) const {
    return x == -infinity() ? 0.0f : exp(scale_ * (x - largest_));
  }

  // Of the whole row, relative to the first candidate's weight.
  RB_DEVICE float whole() const {
    float sum = top_ == largest_ ? sum_ : sum_ * exp(scale_ * (top_ - largest_));
    for (u32 i = 0; i < kMostBans && banned_[i] >= 0; ++i) {
      const u32 id = static_cast<u32>(banned_[i]);
      if (id < n_ && !is_nan(x_[id])) sum -= weight(x_[id]);
    }
    return sum;
  }

  // The first of `count` whose mass, with that before it, reaches that share of the whole; `count`
  // if there is none.
  template <class Reaches>
  RB_DEVICE u32 reaching(float share, u32 count, const Reaches& reaches) {
    float masses[kEach];
    float mine = 0;
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (first_ + i < count_) mine += weight(values_[i]);
      masses[i] = mine;
    }
    const Place<float> place = place_in_block<kWave>(mine);
    const float wanted = share * (cut_ ? place.all : whole());
    return first_where(count, [&](u32 i) { return reaches(place.before + masses[i], wanted); });
  }

  // Draws one of the tokens after the first `front`, or the last of those.
  RB_DEVICE i32 draw_behind(u32 front, float number) {
    RB_SHARED double slots[kThreads / kWave];
    const Candidate last = shown(front - 1);
    const float least = last.value;
    // In double, so that the order of adding does not change the draw.
    const auto weight_of = [&](u32 id) {
      const float x = x_[id];
      const bool behind = x < least || (x == least && static_cast<i32>(id) > last.id);
      return behind && !is_banned(static_cast<i32>(id)) ? static_cast<double>(weight(x)) : 0.0;
    };
    double mass = 0, rest = 0;
    for (u32 i = 0; i < kEach; ++i) {
      if (first_ + i < front) mass += static_cast<double>(weight(values_[i]));
    }
    mass = block_sum<kWave, kThreads>(mass, slots);
    for (u32 id = thread_x(); id < n_; id += kThreads) rest += weight_of(id);
    rest = block_sum<kWave, kThreads>(rest, slots);
    double wanted = static_cast<double>(number) * (mass + rest) - mass;
    if (wanted < 0 || !(rest > 0)) return last.id;
    const Range range = narrow(weight_of, wanted);
    const u32 id = range.begin + thread_x();
    const double mine = id < range.end ? weight_of(id) : 0.0;
    const Place<double> place = place_in_block<kWave>(mine);
    RB_SHARED u32 found[kThreads / kWave];
    const bool reached = mine > 0 && place.before + mine > wanted;
    const u32 first = block_reduce<kWave, kThreads>(reached ? id : n_, found, Smaller{});
    const u32 end = block_reduce<kWave, kThreads>(mine > 0 ? id : 0u, found, Max{});
    return static_cast<i32>(first < n_ ? first : end);
  }

  struct Range {
    u32 begin, end;
  };
  // The part of the row, at most an element for each thread, in which the mass reaches `wanted`;
  // subtracts the mass before that part from it.
  template <class Weight>
  RB_DEVICE Range narrow(const Weight& weight_of, double& wanted) const {
    constexpr u32 kWaves = kThreads / kWave;
    RB_SHARED double masses[kWaves];
    const u32 wave = thread_x() / kWave;
    Range range{0, n_};
    while (range.end - range.begin > kThreads) {
      const u32 each = (range.end - range.begin + kWaves - 1) / kWaves;
      const auto part = [&](u32 i) {
        const u32 begin = range.begin + i * each;
        const u32 end = begin + each;
        return Range{begin < range.end ? begin : range.end, end < range.end ? end : range.end};
      };
      const Range mine = part(wave);
      double mass = 0;
      for (u32 id = mine.begin + thread_x() % kWave; id < mine.end; id += kWave) {
        mass += weight_of(id);
      }
      mass = wave_sum<kWave>(mass);
      if (thread_x() % kWave == 0) masses[wave] = mass;
      barrier();
      u32 at = 0, last = 0;  // the last with any mass
      for (u32 i = 0; i < kWaves; ++i) last = masses[i] > 0 ? i : last;
      while (at < last && !(masses[at] > wanted)) wanted -= masses[at++];
      barrier();
      range = part(at);
    }
    return range;
  }

  const float* x_;
  const i32* banned_;
  u32 n_;
  u32 first_;
  u32 count_;
  float sum_;
  float top_;      // the largest of the row
  float largest_;  // of the candidates
  float values_[kEach];
  i32 ids_[kEach];
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
  const i32 drawn = candidates.draw(number);
  if (thread_x() == 0) p.drawn[row] = drawn;
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
  // All threads have read it.
  barrier();
  if (thread_x() == 0) *p.turn = turn + 1;
}

#define RB_DRAW(lanes, wave) RB_KERNEL(draw_##wave, kThreads, DrawParams, (draw<lanes>(p)))
RB_WAVES(RB_DRAW)
RB_KERNEL(next_step, kThreads, NextStepParams, (advance(p)))

}  // namespace gpu
}  // namespace rbee
