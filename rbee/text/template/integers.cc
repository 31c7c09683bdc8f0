#include "rbee/text/template/integers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "rbee/core/cat.h"
#include "rbee/text/template/failure.h"

namespace rbee::text::jinja {
namespace {

constexpr size_t kMaxDigits = 4300;
constexpr size_t kMaxWholeDigits = 310;  // of a double

int sign_of(int value) {
  return value < 0 ? -1 : value > 0 ? 1 : 0;
}

// Of two decimal texts without leading zeros.
int order_decimals(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) return negative ? -1 : 1;
  if (a.size() != b.size()) return (a.size() < b.size()) != negative ? -1 : 1;
  return sign_of(negative ? b.compare(a) : a.compare(b));
}

std::string whole_decimal(double value) {
  char buffer[kMaxWholeDigits + 2];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::trunc(value), std::chars_format::fixed, 0);
  return {buffer, end.ptr};
}

double nearest(const std::string& decimal) {
  double value = 0;
  const auto read = std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  if (read.ec == std::errc()) return value;
  const double huge = std::numeric_limits<double>::infinity();
  return decimal.starts_with('-') ? -huge : huge;
}

// An integer beyond 64 bits against any other number.
std::optional<int> order_wide(const Wide& wide, const Value& other) {
  const int beyond = wide.decimal.starts_with('-') ? -1 : 1;
  if (other.is_integral()) return beyond;
  if (other.is(Kind::wide)) return order_decimals(wide.decimal, other.wide().decimal);
  const double number = other.floating();
  if (std::isnan(number)) return std::nullopt;
  if (std::isinf(number)) return number < 0 ? 1 : -1;
  // Below 2^63 a fraction cannot matter, and above it there is none.
  if (std::fabs(number) < 9e18) return beyond;
  return order_decimals(wide.decimal, whole_decimal(number));
}

}  // namespace

Wide::Wide(std::string digits) : decimal(std::move(digits)), approximate(nearest(decimal)) {}

Value make_integer(Heap& heap, std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  if (negative || decimal.starts_with('+')) decimal.remove_prefix(1);
  decimal.remove_prefix(std::min(decimal.find_first_not_of('0'), decimal.size()));
  if (decimal.size() > kMaxDigits) raise("an integer has more than ", kMaxDigits, " digits");
  std::string text = cat(negative ? "-" : "", decimal.empty() ? "0" : decimal);
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc()) return Value(value);
  const auto size = static_cast<int64_t>(text.size());
  return Value(heap.make<Wide>(size, std::move(text)));
}

Value make_integer(Heap& heap, double value) {
  if (!std::isfinite(value)) raise("cannot convert float infinity to integer");
  if (std::fabs(value) < 9e18) return Value(static_cast<int64_t>(value));
  return make_integer(heap, whole_decimal(value));
}

std::string decimal_of(const Value& integer) {
  return integer.is(Kind::wide) ? integer.wide().decimal : cat(integer.integer());
}

std::optional<int> order_numbers(const Value& a, const Value& b) {
  if (a.is(Kind::wide)) return order_wide(a.wide(), b);
  if (b.is(Kind::wide)) {
    const std::optional<int> order = order_wide(b.wide(), a);
    return order ? std::optional(-*order) : std::nullopt;
  }
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
  }
  const double x = a.number();
  const double y = b.number();
  if (std::isnan(x) || std::isnan(y)) return std::nullopt;
  return x < y ? -1 : x > y ? 1 : 0;
}

void raise_overflow() {
  raise("an integer does not fit into 64 bits");
}

}  // namespace rbee::text::jinja
