// Methods of str that ask something about all of its characters.

#include <array>

#include "rbee/text/template/natives.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

template <typename Predicate>
bool all_of(std::string_view text, Predicate predicate) {
  for (size_t i = 0; i < text.size();) {
    if (!predicate(next_code_point(text, i))) return false;
  }
  return true;
}

template <bool (*predicate)(char32_t)>
Value non_empty_and_all(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("str predicate", args, {});
  const std::string& text = self.text().bytes;
  runtime.step_bytes(text.size());
  return Value(!text.empty() && all_of(text, predicate));
}

// isupper and islower: no character of the other case, and at least one of this.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Value one_case(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("str predicate", args, {});
  const std::string& text = self.text().bytes;
  runtime.step_bytes(text.size());
  bool found = false;
  const bool pure = all_of(text, [&](char32_t c) {
    found |= wanted(c);
    return !other(c) && !is_title(c);
  });
  return Value(found && pure);
}

Value istitle(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("istitle", args, {});
  const std::string& text = self.text().bytes;
  runtime.step_bytes(text.size());
  bool found = false;
  bool inside = false;  // the character before is cased
  const bool pure = all_of(text, [&](char32_t c) {
    const bool begins = is_upper(c) || is_title(c);
    const bool cased = begins || is_lower(c);
    const bool fits = !cased || begins != inside;
    found |= cased;
    inside = cased;
    return fits;
  });
  return Value(found && pure);
}

Value isascii(Runtime& /*runtime*/, const Value& self, const Args& args) {
  const Bound given("isascii", args, {});
  return Value(self.text().ascii());
}

Value isprintable(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("isprintable", args, {});
  runtime.step_bytes(self.text().bytes.size());
  return Value(all_of(self.text().bytes, is_printable));
}

Value isidentifier(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("isidentifier", args, {});
  const std::string& text = self.text().bytes;
  runtime.step_bytes(text.size());
  if (text.empty()) return Value(false);
  size_t i = 0;
  const bool start = is_identifier_start(next_code_point(text, i));
  return Value(start && all_of(std::string_view(text).substr(i), is_word));
}

constexpr std::array<NamedNative, 12> kMethods = {{
    {"isspace", non_empty_and_all<is_space>},
    {"isalpha", non_empty_and_all<is_alpha>},
    {"isalnum", non_empty_and_all<is_alnum>},
    {"isdigit", non_empty_and_all<is_digit>},
    {"isdecimal", non_empty_and_all<is_decimal>},
    {"isnumeric", non_empty_and_all<is_numeric>},
    {"isupper", one_case<is_upper, is_lower>},
    {"islower", one_case<is_lower, is_upper>},
    {"istitle", istitle},
    {"isascii", isascii},
    {"isprintable", isprintable},
    {"isidentifier", isidentifier},
}};

}  // namespace

std::span<const NamedNative> predicate_methods() {
  return kMethods;
}

}  // namespace rbee::text::jinja
