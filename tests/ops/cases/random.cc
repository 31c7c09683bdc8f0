// Random numbers against the definition in backends/api/args_random.h; Philox follows the paper's
// description.
#include <array>
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct RandomCase {
  RandomKind kind = RandomKind::uniform;
  Shape shape;
  DType dtype = DType::f32;
  uint64_t seed = 0, offset = 0;
  double a = 0, b = 1;
  bool big = false;
};

// r0 and r1 of counter `index` under key `seed`: ten rounds on the halves (c0, c1), (c2, c3).
std::array<uint64_t, 2> words(uint64_t seed, uint64_t index) {
  std::array<uint64_t, 4> c = {index & 0xffffffff, index >> 32, 0, 0};
  uint64_t k0 = seed & 0xffffffff;
  uint64_t k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = c[0] * 0xD2511F53u;
    const uint64_t p1 = c[2] * 0xCD9E8D57u;
    c = {(p1 >> 32) ^ c[1] ^ k0, p1 & 0xffffffff, (p0 >> 32) ^ c[3] ^ k1, p0 & 0xffffffff};
    k0 = (k0 + 0x9E3779B9u) & 0xffffffff;
    k1 = (k1 + 0xBB67AE85u) & 0xffffffff;
  }
  return {c[0], c[1]};
}

int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::f8e4m3:
      return 4;
    default:
      return 24;
  }
}

double value(const RandomCase& c, uint64_t index) {
  const auto [r0, r1] = words(c.seed, c.offset + index);
  if (c.kind == RandomKind::uniform) {
    const int bits = mantissa_bits(c.dtype);
    const uint64_t top = ((r0 << 32) | r1) >> (64 - bits);
    return c.a + (c.b - c.a) * static_cast<double>(top) * std::pow(2.0, -bits);
  }
  const double u = (static_cast<double>(r0 >> 8) + 1) / 16777216;
  const double v = static_cast<double>(r1 >> 8) / 16777216;
  return c.a + c.b * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::acos(-1.0) * v);
}

void add(OpTable& table, const RandomCase& c) {
  const char* kind = c.kind == RandomKind::uniform ? "uniform " : "normal ";
  table.add<RandomArgs>(
      &KernelTable::random,
      {.name = cat(kind, c.dtype, " (", c.shape, ") seed ", c.seed, " from ", c.offset),
       .family = Family::reduction,
       .build =
           [c](Scene& scene) {
             return RandomArgs{c.kind, scene.output({c.shape}, c.dtype), c.seed, c.offset, c.a,
                               c.b};
           },
       .formula =
           [c](const auto&) {
             HostArray y = host_zeros(c.shape);
             for (int64_t i = 0; i < y.numel(); ++i) y[i] = value(c, static_cast<uint64_t>(i));
             return std::vector<HostArray>{y};
           },
       .big = c.big});
}

OpTable table() {
  OpTable out("random");
  for (const RandomKind kind : {RandomKind::uniform, RandomKind::normal}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
      add(out, {kind, {1}, dtype});
      add(out, {kind, {7, 33}, dtype, 0x123456789abcdef0u, 5, -1, 3});
      // The counter's low word overflows within the tensor.
      add(out, {kind, {131}, dtype, ~uint64_t{0}, 0xffffffc0u});
      add(out, {kind, {0}, dtype});
    }
    add(out, {.kind = kind, .shape = {1 << 20}, .seed = 7, .big = true});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
