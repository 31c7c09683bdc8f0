#include "rbee/grammar/json_decimal.h"

#include <algorithm>
#include <charconv>

#include "rbee/core/cat.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kFarExponent = 1'000'000'000;  // beyond it only digits tell numbers apart
constexpr int64_t kWrittenDigits = 20;           // of an integer

int64_t exponent_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) out = text.starts_with('-') ? -kFarExponent : kFarExponent;
  return std::clamp(out, -kFarExponent, kFarExponent);
}

}  // namespace

JsonDecimal::JsonDecimal(std::string_view text) {
  negative_ = text.starts_with('-');
  if (negative_) text.remove_prefix(1);
  const size_t mark = text.find_first_of("eE");
  if (mark != std::string_view::npos) exponent_ = exponent_of(text.substr(mark + 1));
  text = text.substr(0, mark);
  const size_t point = text.find('.');
  digits_ = text.substr(0, point);
  if (point != std::string_view::npos) {
    digits_ += text.substr(point + 1);
    exponent_ -= std::ssize(text) - static_cast<int64_t>(point) - 1;
  }
  digits_.erase(0, std::min(digits_.find_first_not_of('0'), digits_.size()));
  const size_t kept = digits_.find_last_not_of('0') + 1;  // 0 of no digits
  exponent_ += std::ssize(digits_) - static_cast<int64_t>(kept);
  digits_.resize(kept);
  if (!digits_.empty()) return;
  negative_ = false;
  exponent_ = 0;
}

__int128 JsonDecimal::floor() const {
  const int64_t count = std::ssize(digits_) + exponent_;  // in front of the point
  __int128 out = 0;
  for (int64_t i = 0; i < std::min(count, kWrittenDigits + 1); ++i) {
    out = out * 10 + (i < std::ssize(digits_) ? digits_[static_cast<size_t>(i)] - '0' : 0);
  }
  if (negative_) return is_integer() ? -out : -out - 1;
  return out;
}

JsonDecimal JsonDecimal::negated() const {
  JsonDecimal out = *this;
  out.negative_ = !negative_ && !digits_.empty();
  return out;
}

bool JsonDecimal::is_multiple(const JsonStep& step) const {
  if (digits_.empty()) return true;
  const int64_t zeros = exponent_ + step.places;  // after the digits, counted in parts of the step
  if (zeros < 0) return false;
  __int128 rest = 0;
  const auto read = [&](int64_t digit) { rest = (rest * 10 + digit) % step.numerator; };
  for (const char digit : digits_) read(digit - '0');
  for (int64_t i = 0; i < zeros && rest != 0; ++i) read(0);
  return rest == 0;
}

std::string JsonDecimal::text() const {
  if (digits_.empty()) return "0";
  return cat(negative_ ? "-" : "", digits_, "e", exponent_);
}

std::strong_ordering JsonDecimal::operator<=>(const JsonDecimal& other) const {
  const auto sign = [](const JsonDecimal& one) {
    return one.digits_.empty() ? 0 : one.negative_ ? -1 : 1;
  };
  if (sign(*this) != sign(other)) return sign(*this) <=> sign(other);
  return negative_ ? other.compare_sizes(*this) : compare_sizes(other);
}

std::strong_ordering JsonDecimal::compare_sizes(const JsonDecimal& other) const {
  const auto first = [](const JsonDecimal& one) { return one.exponent_ + std::ssize(one.digits_); };
  if (digits_.empty() || other.digits_.empty()) return digits_.size() <=> other.digits_.size();
  if (first(*this) != first(other)) return first(*this) <=> first(other);
  return digits_ <=> other.digits_;
}

}  // namespace rbee::grammar
