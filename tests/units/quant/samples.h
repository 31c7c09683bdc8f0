#pragma once
// Deterministic data for the tests of rbee/quant.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "rbee/core/dtype.h"
#include "tests/support/data_folder.h"

namespace rbee::quant {

// Values like weights: near normal (a sum of twelve uniforms), each 32 with a spread of 0.01 to
// 0.04, one in 256 five times larger. Exact arithmetic: every machine gets the same.
inline std::vector<float> weight_samples(int64_t n) {
  std::mt19937 bits(2);
  std::vector<float> values;
  values.reserve(static_cast<size_t>(n));
  double spread = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i % 32 == 0) spread = 0.01 + 0.03 * (bits() % 1024) / 1024;
    double total = -6;
    for (int k = 0; k < 12; ++k) total += (bits() >> 8) * 0x1p-24;
    values.push_back(static_cast<float>(total * spread * (bits() % 256 == 0 ? 5 : 1)));
  }
  return values;
}

// sqrt of the mean of importance * (a - b)^2; without importance every weight is one.
inline double rms_error(const std::vector<float>& a, const std::vector<float>& b,
                        const float* importance = nullptr) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = double{a[i]} - double{b[i]};
    total += (importance != nullptr ? double{importance[i]} : 1.0) * error * error;
  }
  return std::sqrt(total / static_cast<double>(a.size()));
}

// A file of tests/units/quant/data as values of T.
template <typename T>
std::vector<T> read_golden(const std::string& file) {
  std::ifstream in(test::data_folder() + "/units/quant/data/" + file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + file);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace rbee::quant
