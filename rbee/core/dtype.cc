#include "rbee/core/dtype.h"

#include <array>

#include "rbee/core/error.h"

namespace rbee {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"u8", 1, 1},          {"u32", 1, 4},      {"i16", 1, 2},        {"i32", 1, 4},
    {"i64", 1, 8},         {"f16", 1, 2},      {"bf16", 1, 2},       {"f32", 1, 4},
    {"f64", 1, 8},         {"f8e4m3", 1, 1},   {"q4_0", 32, 18},     {"q4_1", 32, 20},
    {"q5_0", 32, 22},      {"q5_1", 32, 24},   {"q8_0", 32, 34},     {"q2_k", 256, 84},
    {"q3_k", 256, 110},    {"q4_k", 256, 144}, {"q5_k", 256, 176},   {"q6_k", 256, 210},
    {"q8_k", 256, 292},    {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136}, {"mxfp4", 32, 17},
    {"f8_g128", 128, 132}, {"iq1_s", 256, 50}, {"iq1_m", 256, 56},   {"iq2_xxs", 256, 66},
    {"iq2_xs", 256, 74},   {"iq2_s", 256, 82}, {"iq3_xxs", 256, 98}, {"iq3_s", 256, 110},
    {"tq1_0", 256, 54},    {"tq2_0", 256, 66}, {"nvfp4", 64, 36},
}};

}  // namespace

const DTypeInfo& info(DType dtype) {
  return kInfo[static_cast<size_t>(dtype)];
}

std::optional<DType> parse_dtype(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (int i = 0; i < kDTypeCount; ++i) {
    if (lower == kInfo[static_cast<size_t>(i)].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t row_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& type = info(dtype);
  check(elements >= 0 && elements % type.block_size == 0, "row_bytes", "a row of ", elements,
        " elements is not a multiple of ", type.name, "'s block of ", type.block_size);
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(elements / type.block_size, int64_t{type.block_bytes}, &bytes),
        "row_bytes", "a row of ", elements, " ", type.name, " elements overflows 64 bits");
  return bytes;
}

void append_to(std::string& out, DType dtype) {
  out.append(name(dtype));
}

}  // namespace rbee
