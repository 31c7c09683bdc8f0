#pragma once
// How each packed block format is read, for any width of vectors: include after vec_<isa>.h.
//
// A format F has
//   Record            the packed record; kGroups groups of 32 inputs
//   kSpan             inputs under one scale, 16 or 32
//   kLargest          largest quant when they are not negative; kSigned: quants are -128 to 127
//   kShift            what is added to every quant that is stored: offset = -kShift * scale; or 0
//   step(rec, g, s, part)             quants of step s of group g
//   head(rec, part)                   what all groups share
//   scale(rec, head, g, half, part)   weight = scale * quant + offset in one span of group g

namespace {

struct Scale {
  Floats scale, offset;
};

struct Head {
  Floats d, m;
};

[[gnu::always_inline]] inline Bytes nibbles(const panel::NibblePlane& plane, int s, int part) {
  const Bytes x = load_step(plane.bytes[s / 2], part);
  return both(s % 2 == 0 ? x : shift_right(x, 4), bytes_of(15));
}

// Two bits of step s, moved up to `to`.
[[gnu::always_inline]] inline Bytes crumbs(const panel::CrumbPlane& plane, int s, int part,
                                           int to) {
  const Bytes x = load_step(plane.bytes[s / 4], part);
  const int from = 2 * (s % 4);
  const Bytes moved = from >= to ? shift_right(x, from - to) : shift_left(x, to - from);
  return both(moved, bytes_of(3 << to));
}

// One bit of step s, moved up to `to`.
[[gnu::always_inline]] inline Bytes bits(const panel::BitPlane& plane, int s, int part, int to) {
  const Bytes x = load_step(plane.bytes, part);
  const Bytes moved = s >= to ? shift_right(x, s - to) : shift_left(x, to - s);
  return both(moved, bytes_of(1 << to));
}

// The scale of quants that are stored plus `shift`.
[[gnu::always_inline]] inline Scale shifted(Floats d, float shift) {
  return {d, times(d, all(-shift))};
}

alignas(16) constexpr unsigned char kIq4Values[16] = {
    0x81, 0x98, 0xad, 0xbf, 0xcf, 0xdd, 0xea, 0xf6, 0x01, 0x0d, 0x19, 0x26, 0x35, 0x45, 0x59, 0x71};
// Twice the E2M1 values, plus 12.
alignas(16) constexpr unsigned char kE2m1Values[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                       12, 11, 10, 9,  8,  6,  4,  0};

// One record is one group.
template <typename R, int kTop, int kAdded = 0, bool kIsSigned = false>
struct OneGroup {
  using Record = R;
  static constexpr int kGroups = 1, kSpan = 32, kLargest = kTop, kShift = kAdded;
  static constexpr bool kSigned = kIsSigned;
  [[gnu::always_inline]] static Head head(const R& r, int part) {
    return {load_halves(r.d, part), all(0)};
  }
};

// One record is a super-block of eight groups.
template <typename R, int kInputs, int kTop, int kAdded = 0, bool kIsSigned = false>
struct EightGroups {
  using Record = R;
  static constexpr int kGroups = 8, kSpan = kInputs, kLargest = kTop, kShift = kAdded;
  static constexpr bool kSigned = kIsSigned;
  [[gnu::always_inline]] static Head head(const R& r, int part) {
    return {load_halves(r.d, part), all(0)};
  }
};

struct FormatQ4_0 : OneGroup<panel::PanelQ4_0, 15, 8> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return nibbles(r.low, s, part);
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return shifted(h.d, kShift);
  }
};

struct FormatQ4_1 : OneGroup<panel::PanelQ4_1, 15> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return nibbles(r.low, s, part);
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int, int, int part) {
    return {h.d, load_halves(r.m, part)};
  }
};

struct FormatQ5_0 : OneGroup<panel::PanelQ5_0, 31, 16> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return either(nibbles(r.low, s, part), bits(r.high, s, part, 4));
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return shifted(h.d, kShift);
  }
};

struct FormatQ5_1 : OneGroup<panel::PanelQ5_1, 31> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return either(nibbles(r.low, s, part), bits(r.high, s, part, 4));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int, int, int part) {
    return {h.d, load_halves(r.m, part)};
  }
};

struct FormatQ8_0 : OneGroup<panel::PanelQ8_0, 127, 0, true> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return load_step(r.bytes.bytes[s], part);
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return {h.d, all(0)};
  }
};

struct FormatIQ4_NL : OneGroup<panel::PanelIQ4_NL, 127, 0, true> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return look_up(kIq4Values, nibbles(r.low, s, part));
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return {h.d, all(0)};
  }
};

struct FormatMXFP4 : OneGroup<panel::PanelMXFP4, 24, 12> {
  [[gnu::always_inline]] static Head head(const Record& r, int part) {
    return {load_e8m0_halved(r.e, part), all(0)};
  }
  [[gnu::always_inline]] static Bytes step(const Record& r, int, int s, int part) {
    return look_up(kE2m1Values, nibbles(r.low, s, part));
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return shifted(h.d, kShift);
  }
};

struct FormatQ2_K : EightGroups<panel::PanelQ2_K, 16, 3> {
  [[gnu::always_inline]] static Head head(const Record& r, int part) {
    return {load_halves(r.d, part), negated(load_halves(r.dmin, part))};
  }
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return crumbs(r.groups[g].low, s, part, 0);
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int half,
                                            int part) {
    const uint8_t* x = r.groups[g].scale_min[half];
    return {times(h.d, load_nibbles(x, part, 0)), times(h.m, load_nibbles(x, part, 4))};
  }
};

struct FormatQ3_K : EightGroups<panel::PanelQ3_K, 16, 7, 4> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return either(crumbs(r.groups[g].low, s, part, 0), bits(r.groups[g].high, s, part, 2));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int half,
                                            int part) {
    return shifted(times(h.d, load_i8(r.groups[g].scale[half], part)), kShift);
  }
};

// Scales and minima of q4_k and q5_k.
template <typename R, int kTop>
struct WithMinimum : EightGroups<R, 32, kTop> {
  [[gnu::always_inline]] static Head head(const R& r, int part) {
    return {load_halves(r.d, part), negated(load_halves(r.dmin, part))};
  }
  [[gnu::always_inline]] static Scale scale(const R& r, const Head& h, int g, int, int part) {
    return {times(h.d, load_u8(r.groups[g].scale, part)),
            times(h.m, load_u8(r.groups[g].min, part))};
  }
};

struct FormatQ4_K : WithMinimum<panel::PanelQ4_K, 15> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return nibbles(r.groups[g].low, s, part);
  }
};

struct FormatQ5_K : WithMinimum<panel::PanelQ5_K, 31> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return either(nibbles(r.groups[g].low, s, part), bits(r.groups[g].high, s, part, 4));
  }
};

struct FormatQ6_K : EightGroups<panel::PanelQ6_K, 16, 63, 32> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return either(nibbles(r.groups[g].low, s, part), crumbs(r.groups[g].high, s, part, 4));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int half,
                                            int part) {
    return shifted(times(h.d, load_i8(r.groups[g].scale[half], part)), kShift);
  }
};

struct FormatQ8_K : EightGroups<panel::PanelQ8_K, 32, 127, 0, true> {
  [[gnu::always_inline]] static Head head(const Record& r, int part) {
    return {load_floats(r.d, part), all(0)};
  }
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return load_step(r.groups[g].bytes.bytes[s], part);
  }
  [[gnu::always_inline]] static Scale scale(const Record&, const Head& h, int, int, int) {
    return {h.d, all(0)};
  }
};

struct FormatIQ4_XS : EightGroups<panel::PanelIQ4_XS, 32, 127, 0, true> {
  [[gnu::always_inline]] static Bytes step(const Record& r, int g, int s, int part) {
    return look_up(kIq4Values, nibbles(r.groups[g].low, s, part));
  }
  [[gnu::always_inline]] static Scale scale(const Record& r, const Head& h, int g, int, int part) {
    return {times(h.d, load_i8(r.groups[g].scale, part)), all(0)};
  }
};

// A signed format as an unsigned one: quants plus 128, which the offset takes away again.
template <typename F>
struct Unsigned : F {
  static constexpr int kLargest = 255, kShift = 128;
  static constexpr bool kSigned = false;
  [[gnu::always_inline]] static Bytes step(const typename F::Record& r, int g, int s, int part) {
    return differing(F::step(r, g, s, part), bytes_of(0x80));
  }
  [[gnu::always_inline]] static Scale scale(const typename F::Record& r, const Head& h, int g,
                                            int half, int part) {
    return shifted(F::scale(r, h, g, half, part).scale, kShift);
  }
};

// Whether a span has an offset that its scale does not say.
template <typename F>
constexpr bool kHasOffset = !F::kSigned && F::kShift == 0;

// F, unsigned in any case: what vpdpbusd takes.
template <typename F, bool kSigned = F::kSigned>
struct AsUnsigned {
  using Type = F;
};
template <typename F>
struct AsUnsigned<F, true> {
  using Type = Unsigned<F>;
};

}  // namespace
