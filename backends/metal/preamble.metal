// The head of every library of kernels' text: names that tools/metal prints. C++14, and few of
// Metal's own names (tools/metal/words.py lists them).
#include <metal_stdlib>
using namespace metal;

#ifndef RB_ENTRY  // tests on Linux define these
#define RB_ENTRY(threads) [[kernel, max_total_threads_per_threadgroup(threads)]]
#define RB_SHARED threadgroup
#define RB_DYNAMIC [[threadgroup(0)]]
#endif

// Bytes that `pick` names: 0 to 3 are b's, 4 to 7 a's.
inline uint rb_pick_bytes(uint a, uint b, uint pick) {
  const ulong both = (ulong(a) << 32) | ulong(b);
  uint out = 0u;
  for (uint i = 0u; i < 32u; i += 8u) {
    out |= (uint(both >> (((pick >> i) & 7u) * 8u)) & 255u) << i;
  }
  return out;
}
// c + the dot product of four signed bytes.
inline uint rb_dot4(uint a, uint b, uint c) {
  const uchar4 x = as_type<uchar4>(a);
  const uchar4 y = as_type<uchar4>(b);
  for (uint i = 0u; i < 4u; ++i) c += uint(int(char(x[i])) * int(char(y[i])));
  return c;
}
inline float rb_dot2(half2 a, half2 b, float c) {
  return fma(float(a[1]), float(b[1]), fma(float(a[0]), float(b[0]), c));
}
inline ulong rb_funnel_left(ulong a, ulong b, ulong n) {
  n &= 63ul;
  return n == 0ul ? a : (a << n) | (b >> (64ul - n));
}
// Before MSL 3.2 there is none: the host does not launch there what needs it.
inline void rb_device_fence() {
#if __METAL_VERSION__ >= 320
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
#endif
}

// binary64 (IEEE 754) as its bits: rounded to nearest even, subnormal numbers kept. Every NaN that
// comes out is 0x7ff8000000000000.

// A number's parts: m * 2^(e - 1086), bit 63 of m set unless the number is 0.
struct rb_f64_parts {
  ulong m;
  int e;
};
inline bool rb_f64_is_nan(ulong x) {
  return (x & 0x7ffffffffffffffful) > 0x7ff0000000000000ul;
}
inline bool rb_f64_is_infinite(ulong x) {
  return (x & 0x7ffffffffffffffful) == 0x7ff0000000000000ul;
}
inline ulong rb_f64_nan() {
  return 0x7ff8000000000000ul;
}
inline rb_f64_parts rb_f64_normal(ulong m, int e) {
  rb_f64_parts out;
  const uint shift = m == 0ul ? 0u : uint(clz(m));
  out.m = m << shift;
  out.e = e - int(shift);
  return out;
}
// Of a finite number.
inline rb_f64_parts rb_f64_open(ulong x) {
  const int e = int((x >> 52) & 0x7fful);
  const ulong fraction = x & 0xffffffffffffful;
  return e == 0 ? rb_f64_normal(fraction << 11, 1)
                : rb_f64_normal((fraction | 0x10000000000000ul) << 11, e);
}
// x / 2^n; the last bit also stands for all that are lost.
inline ulong rb_f64_shift(ulong x, int n) {
  if (n <= 0) return x;
  if (n > 63) return x != 0ul ? 1ul : 0ul;
  return (x >> ulong(n)) | ((x << ulong(64 - n)) != 0ul ? 1ul : 0ul);
}
// The bits of a format without its sign, whose largest exponent is `most`, of a number with its
// exponent's bias; `low` bits of m are rounded away.
inline ulong rb_f64_round(rb_f64_parts x, int low, int most) {
  const ulong infinite = ulong(most) << ulong(63 - low);
  if (x.m == 0ul) return 0ul;
  if (x.e >= most) return infinite;
  ulong m = x.m;
  ulong base = 0ul;
  if (x.e <= 0) {
    m = rb_f64_shift(m, 1 - x.e);
  } else {
    base = ulong(x.e - 1) << ulong(63 - low);
  }
  const ulong half_unit = 1ul << ulong(low - 1);
  const ulong rest = m & ((half_unit << 1) - 1ul);
  ulong whole = m >> ulong(low);
  if (rest > half_unit || (rest == half_unit && (whole & 1ul) != 0ul)) whole += 1ul;
  return base + whole;
}
inline ulong rb_f64_close(ulong sign, rb_f64_parts x) {
  return sign | rb_f64_round(x, 11, 2047);
}

inline ulong rb_f64_add(ulong a, ulong b) {
  if (rb_f64_is_nan(a) || rb_f64_is_nan(b)) return rb_f64_nan();
  const ulong top = 0x8000000000000000ul;
  const bool less = ((a ^ b) & top) != 0ul;
  if (rb_f64_is_infinite(a)) return rb_f64_is_infinite(b) && less ? rb_f64_nan() : a;
  if (rb_f64_is_infinite(b)) return b;
  if ((a & ~top) < (b & ~top)) {
    const ulong other = a;
    a = b;
    b = other;
  }
  const rb_f64_parts large = rb_f64_open(a);
  const rb_f64_parts small = rb_f64_open(b);
  if (small.m == 0ul) return large.m == 0ul && less ? 0ul : a;
  const ulong rest = rb_f64_shift(small.m >> 1, large.e - small.e);
  const ulong m = less ? (large.m >> 1) - rest : (large.m >> 1) + rest;
  if (m == 0ul) return 0ul;
  return rb_f64_close(a & top, rb_f64_normal(m, large.e + 1));
}
inline ulong rb_f64_sub(ulong a, ulong b) {
  return rb_f64_add(a, b ^ 0x8000000000000000ul);
}

// The product of two words: x is the upper half, y the lower.
inline ulong2 rb_f64_wide(ulong a, ulong b) {
  const ulong a0 = a & 0xfffffffful;
  const ulong a1 = a >> 32;
  const ulong b0 = b & 0xfffffffful;
  const ulong b1 = b >> 32;
  const ulong low = a0 * b0;
  const ulong mid = a1 * b0 + (low >> 32);
  const ulong cross = a0 * b1 + (mid & 0xfffffffful);
  return ulong2(a1 * b1 + (mid >> 32) + (cross >> 32), (cross << 32) | (low & 0xfffffffful));
}
inline ulong rb_f64_mul(ulong a, ulong b) {
  if (rb_f64_is_nan(a) || rb_f64_is_nan(b)) return rb_f64_nan();
  const ulong top = 0x8000000000000000ul;
  const ulong sign = (a ^ b) & top;
  const bool zero = (a & ~top) == 0ul || (b & ~top) == 0ul;
  if (rb_f64_is_infinite(a) || rb_f64_is_infinite(b)) {
    return zero ? rb_f64_nan() : sign | 0x7ff0000000000000ul;
  }
  if (zero) return sign;
  const rb_f64_parts x = rb_f64_open(a);
  const rb_f64_parts y = rb_f64_open(b);
  const ulong2 product = rb_f64_wide(x.m, y.m);
  const ulong m = product[0] | (product[1] != 0ul ? 1ul : 0ul);
  return rb_f64_close(sign, rb_f64_normal(m, x.e + y.e - 1022));
}
inline ulong rb_f64_div(ulong a, ulong b) {
  if (rb_f64_is_nan(a) || rb_f64_is_nan(b)) return rb_f64_nan();
  const ulong top = 0x8000000000000000ul;
  const ulong sign = (a ^ b) & top;
  if (rb_f64_is_infinite(a)) return rb_f64_is_infinite(b) ? rb_f64_nan() : sign | (a & ~top);
  if (rb_f64_is_infinite(b)) return sign;
  if ((b & ~top) == 0ul) return (a & ~top) == 0ul ? rb_f64_nan() : sign | 0x7ff0000000000000ul;
  if ((a & ~top) == 0ul) return sign;
  const rb_f64_parts x = rb_f64_open(a);
  const rb_f64_parts y = rb_f64_open(b);
  const ulong divisor = y.m >> 11;
  ulong rest = x.m >> 11;
  ulong quotient = rest / divisor;
  rest -= quotient * divisor;
  for (uint i = 0u; i < 5u; ++i) {  // 11 bits at a time
    rest <<= 11;
    const ulong digit = rest / divisor;
    rest -= digit * divisor;
    quotient = (quotient << 11) | digit;
  }
  const ulong m = (quotient << 8) | (rest != 0ul ? 1ul : 0ul);
  return rb_f64_close(sign, rb_f64_normal(m, x.e - y.e + 1023));
}
inline ulong rb_f64_sqrt(ulong a) {
  if (rb_f64_is_nan(a)) return rb_f64_nan();
  if ((a & 0x7ffffffffffffffful) == 0ul) return a;
  if ((a & 0x8000000000000000ul) != 0ul) return rb_f64_nan();
  if (rb_f64_is_infinite(a)) return a;
  const rb_f64_parts x = rb_f64_open(a);
  const bool odd = ((x.e - 1023) & 1) != 0;
  const ulong number = odd ? x.m >> 10 : x.m >> 11;  // of 54 bits at most
  ulong root = 0ul;
  ulong rest = 0ul;
  for (int i = 0; i < 55; ++i) {
    const int at = 52 - 2 * i;
    rest = (rest << 2) | (at >= 0 ? (number >> ulong(at)) & 3ul : 0ul);
    const ulong step = (root << 2) | 1ul;
    root <<= 1;
    if (rest >= step) {
      rest -= step;
      root |= 1ul;
    }
  }
  const int e = (x.e - 1023 - (odd ? 1 : 0)) / 2 + 1023;
  return rb_f64_close(0ul, rb_f64_normal((root << 9) | (rest != 0ul ? 1ul : 0ul), e));
}

// x / 2^n of 128 bits, like rb_f64_shift().
inline ulong2 rb_f64_shift_wide(ulong2 x, int n) {
  if (n <= 0) return x;
  if (n > 127) return ulong2(0ul, (x[0] | x[1]) != 0ul ? 1ul : 0ul);
  if (n > 63) {
    const ulong lost = (n > 64 ? x[0] << ulong(128 - n) : 0ul) | x[1];
    return ulong2(0ul, (x[0] >> ulong(n - 64)) | (lost != 0ul ? 1ul : 0ul));
  }
  const ulong lost = x[1] << ulong(64 - n);
  const ulong low = (x[1] >> ulong(n)) | (x[0] << ulong(64 - n));
  return ulong2(x[0] >> ulong(n), low | (lost != 0ul ? 1ul : 0ul));
}
// The sum of two finite numbers that are not 0, of 127 bits, bit 126 worth 2^(e - 1023).
inline ulong rb_f64_add_wide(ulong2 x, int x_e, ulong x_sign, ulong2 y, int y_e, ulong y_sign) {
  const bool swap = x_e < y_e || (x_e == y_e && (x[0] < y[0] || (x[0] == y[0] && x[1] < y[1])));
  const ulong2 large = swap ? y : x;
  const ulong2 small = rb_f64_shift_wide(swap ? x : y, swap ? y_e - x_e : x_e - y_e);
  const int e = swap ? y_e : x_e;
  const ulong sign = swap ? y_sign : x_sign;
  ulong low = large[1] + small[1];
  ulong high = large[0] + small[0] + (low < small[1] ? 1ul : 0ul);
  if (x_sign != y_sign) {
    low = large[1] - small[1];
    high = large[0] - small[0] - (large[1] < small[1] ? 1ul : 0ul);
  }
  if ((high | low) == 0ul) return 0ul;
  if (high == 0ul) return rb_f64_close(sign, rb_f64_normal(low, e + 1 - 64));
  const uint shift = uint(clz(high));
  rb_f64_parts out;
  out.m = shift == 0u ? high : (high << ulong(shift)) | (low >> ulong(64u - shift));
  out.m |= (low << ulong(shift)) != 0ul ? 1ul : 0ul;
  out.e = e + 1 - int(shift);
  return rb_f64_close(sign, out);
}
inline ulong rb_f64_fma(ulong a, ulong b, ulong c) {
  if (rb_f64_is_nan(a) || rb_f64_is_nan(b) || rb_f64_is_nan(c)) return rb_f64_nan();
  const ulong top = 0x8000000000000000ul;
  const ulong sign = (a ^ b) & top;
  const bool zero = (a & ~top) == 0ul || (b & ~top) == 0ul;
  if (rb_f64_is_infinite(a) || rb_f64_is_infinite(b)) {
    if (zero || (rb_f64_is_infinite(c) && (c & top) != sign)) return rb_f64_nan();
    return sign | 0x7ff0000000000000ul;
  }
  if (rb_f64_is_infinite(c)) return c;
  if (zero) return rb_f64_add(sign, c);
  if ((c & ~top) == 0ul) return rb_f64_mul(a, b);
  const rb_f64_parts x = rb_f64_open(a);
  const rb_f64_parts y = rb_f64_open(b);
  const rb_f64_parts z = rb_f64_open(c);
  ulong2 product = rb_f64_wide(x.m, y.m);
  int e = x.e + y.e - 1023;
  if ((product[0] & top) != 0ul) {  // its lowest bits are 0
    product = rb_f64_shift_wide(product, 1);
    e += 1;
  }
  return rb_f64_add_wide(product, e, sign, ulong2(z.m >> 1, z.m << 63), z.e, c & top);
}

inline bool rb_f64_unordered(ulong a, ulong b) {
  return rb_f64_is_nan(a) || rb_f64_is_nan(b);
}
inline bool rb_f64_equal(ulong a, ulong b) {
  return !rb_f64_unordered(a, b) && (a == b || ((a | b) & 0x7ffffffffffffffful) == 0ul);
}
inline bool rb_f64_less(ulong a, ulong b) {
  if (rb_f64_unordered(a, b) || rb_f64_equal(a, b)) return false;
  const ulong top = 0x8000000000000000ul;
  const ulong x = (a & top) != 0ul ? ~a : a | top;
  const ulong y = (b & top) != 0ul ? ~b : b | top;
  return x < y;
}
inline bool rb_f64_at_most(ulong a, ulong b) {
  return rb_f64_less(a, b) || rb_f64_equal(a, b);
}
inline bool rb_f64_less_or_greater(ulong a, ulong b) {
  return rb_f64_less(a, b) || rb_f64_less(b, a);
}

// The largest whole number that is not above a where `up` is false, else the smallest not below.
inline ulong rb_f64_whole(ulong a, bool up) {
  const int e = int((a >> 52) & 0x7fful);
  const ulong sign = a & 0x8000000000000000ul;
  const bool away = (sign != 0ul) != up;
  if (rb_f64_is_nan(a)) return rb_f64_nan();
  if (e >= 1075 || (a ^ sign) == 0ul) return a;
  if (e < 1023) return sign | (away ? 0x3ff0000000000000ul : 0ul);
  const ulong fraction = (1ul << ulong(1075 - e)) - 1ul;
  return (away ? a + fraction : a) & ~fraction;
}
inline ulong rb_f64_floor(ulong a) {
  return rb_f64_whole(a, false);
}
inline ulong rb_f64_ceil(ulong a) {
  return rb_f64_whole(a, true);
}

inline ulong rb_f64_from_ulong(ulong x) {
  return rb_f64_close(0ul, rb_f64_normal(x, 1086));
}
inline ulong rb_f64_from_long(long x) {
  const bool negative = x < 0;
  const ulong size = negative ? 0ul - ulong(x) : ulong(x);
  return (negative ? 0x8000000000000000ul : 0ul) | rb_f64_from_ulong(size);
}
inline ulong rb_f64_from_uint(uint x) {
  return rb_f64_from_ulong(ulong(x));
}
inline ulong rb_f64_from_int(int x) {
  return rb_f64_from_long(long(x));
}
inline ulong rb_f64_from_float(float x) {
  const uint bits = as_type<uint>(x);
  const uint e = (bits >> 23) & 255u;
  const ulong fraction = ulong(bits & 0x7fffffu) << 40;
  const ulong sign = ulong(bits & 0x80000000u) << 32;
  if (e == 255u) return fraction != 0ul ? rb_f64_nan() : sign | 0x7ff0000000000000ul;
  if (e == 0u) return rb_f64_close(sign, rb_f64_normal(fraction, 1 + 896));
  return rb_f64_close(sign, rb_f64_normal(fraction | 0x8000000000000000ul, int(e) + 896));
}

// Toward zero; what is out of range becomes the nearest that is not, NaN 0.
inline ulong rb_f64_to_ulong(ulong a) {
  if (rb_f64_is_nan(a) || (a & 0x8000000000000000ul) != 0ul) return 0ul;
  const int e = int(a >> 52);
  if (e < 1023) return 0ul;
  if (e > 1086) return ~0ul;
  return (((a & 0xffffffffffffful) | 0x10000000000000ul) << 11) >> ulong(1086 - e);
}
inline long rb_f64_to_long(ulong a) {
  if (rb_f64_is_nan(a)) return 0;
  const ulong size = rb_f64_to_ulong(a & 0x7ffffffffffffffful);
  const ulong most = 0x7ffffffffffffffful;
  if ((a & 0x8000000000000000ul) == 0ul) return long(size > most ? most : size);
  return size > most ? long(0x8000000000000000ul) : -long(size);
}
inline uint rb_f64_to_uint(ulong a) {
  const ulong whole = rb_f64_to_ulong(a);
  return whole > 0xfffffffful ? 0xffffffffu : uint(whole);
}
inline int rb_f64_to_int(ulong a) {
  const long whole = rb_f64_to_long(a);
  const long most = long(0x7ffffffful);
  return int(whole > most ? most : whole < -most - 1 ? -most - 1 : whole);
}
// The bits of a finite number, without its sign, in a format with another bias.
inline ulong rb_f64_narrow(ulong a, int bias, int low, int most) {
  rb_f64_parts x = rb_f64_open(a);
  x.e += bias - 1023;
  return rb_f64_round(x, low, most);
}
inline float rb_f64_to_float(ulong a) {
  const uint sign = uint(a >> 32) & 0x80000000u;
  if (rb_f64_is_nan(a)) return as_type<float>(0x7fc00000u);
  if (rb_f64_is_infinite(a)) return as_type<float>(sign | 0x7f800000u);
  return as_type<float>(sign | uint(rb_f64_narrow(a, 127, 40, 255)));
}
inline half rb_f64_to_half(ulong a) {
  const uint sign = uint(a >> 48) & 0x8000u;
  if (rb_f64_is_nan(a)) return as_type<half>(ushort(0x7e00));
  if (rb_f64_is_infinite(a)) return as_type<half>(ushort(sign | 0x7c00u));
  return as_type<half>(ushort(sign | uint(rb_f64_narrow(a, 15, 53, 31))));
}
