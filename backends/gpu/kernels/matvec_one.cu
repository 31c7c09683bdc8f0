// matvec_one.h for plain weights: 16 bytes of a row a lane at a time, x in its own type.
#include "backends/gpu/kernels/matvec_one.h"

namespace rbee {
namespace gpu {

template <class X, class W, int kWave>
class PlainOne {
 public:
  using Result = OneResult<X>;
  static constexpr int kTrip = kPlainTrip;
  static constexpr int kThreads = kPlainOneThreads;
  static constexpr bool kRing = false;  // costs more instructions than it saves waiting
  static constexpr int kSteps = kTrip / kWave;
  static constexpr int kCount = Pack<W>::kCount;  // of a piece
  // x of a piece is stored in parts of at most 16 bytes, those of neighbouring lanes side by side.
  static constexpr int kPart = kCount < Pack<X>::kCount ? kCount : Pack<X>::kCount;
  static constexpr int kParts = kCount / kPart;

  struct Fetched {
    u32 words[kSteps][4];
  };
  struct alignas(sizeof(X) * kPart) Part {
    X values[kPart];
  };

  RB_DEVICE explicit PlainOne(const MatvecOneParams& p) : p_(p) {}

  RB_DEVICE i32 trips() const { return trips_of(p_, kTrip); }
  RB_DEVICE i32 staged_bytes() const {
    return trips() * kTrip * kCount * static_cast<i32>(sizeof(X));
  }
  template <class Ask>
  RB_DEVICE float stage(const Ask& ask) const {
    ask(0);
    constexpr int kEach = kCount < 8 ? kCount : 8;
    constexpr int kRunParts = kEach < kPart ? 1 : kEach / kPart;
    // A part, or as much of it as a run has.
    struct alignas(sizeof(X) * (kEach / kRunParts)) Stored {
      X values[kEach / kRunParts];
    };
    const i32 runs = trips() * kTrip * (kCount / kEach);
    StagedX<X, kEach, kWave, kThreads> x(p_, runs);
    x.each([&](i32 run, const float(&values)[kEach]) {
      if (run >= runs) return;
#pragma unroll
      for (int r = 0; r < kRunParts; ++r) {
        Stored rounded;
        for (int i = 0; i < kEach / kRunParts; ++i) {
          rounded.values[i] = store_value<X>(values[r * (kEach / kRunParts) + i]);
        }
        const i32 element = run * kEach + r * (kEach / kRunParts);
        const i32 piece = element / kCount;
        const i32 part = element % kCount / kPart;
        const i32 to = (piece / kWave * kParts + part) * kWave + piece % kWave;
        auto* start = reinterpret_cast<X*>(staged()) + to * kPart + element % kPart;
        *reinterpret_cast<Stored*>(start) = rounded;
      }
    });
    barrier();
    return 1;
  }

  RB_DEVICE void fetch(Fetched& to, const u8* row, i32 trip, int lane) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const i32 piece = trip * kTrip + step * kWave + lane;
      load_once(row + (piece < p_.pieces ? piece : p_.pieces - 1) * 16, to.words[step]);
    }
  }

  RB_DEVICE void multiply(const Fetched (&rows)[kMatvecOuts], i32 trip, int lane,
                          float (&sums)[kMatvecOuts]) const {
    const Part* parts = reinterpret_cast<const Part*>(staged()) + trip * kTrip * kParts + lane;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const Part x = parts[(step * kParts + part) * kWave];
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          const float value = load_value(x.values[i]);
#pragma unroll
          for (int o = 0; o < kMatvecOuts; ++o) {
            const float w = load_value(element<W>(rows[o].words[step], part * kPart + i));
            sums[o] = fma(value, w, sums[o]);
          }
        }
      }
    }
  }

 private:
  const MatvecOneParams& p_;
};

template <class X, class W, int kWave>
RB_DEVICE void matvec_one(const MatvecOneParams& p) {
  MatvecOne<PlainOne<X, W, kWave>, kWave> work(p);
  work.run();
}

#define RB_ONE(lanes, wave, x, X, w, W)                                                           \
  RB_KERNEL_OF(matvec_one_##x##_##w##_##wave, kPlainOneThreads, kPlainOneBlocks, MatvecOneParams, \
               (matvec_one<X, W, lanes>(p)))
#define RB_WEIGHTS(x, X)             \
  RB_WAVES(RB_ONE, x, X, f32, float) \
  RB_WAVES(RB_ONE, x, X, f16, f16)   \
  RB_WAVES(RB_ONE, x, X, bf16, bf16) \
  RB_WAVES(RB_ONE, x, X, f8e4m3, f8e4m3)
RB_EACH_FLOAT(RB_WEIGHTS)

}  // namespace gpu
}  // namespace rbee
