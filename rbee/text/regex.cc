#include "rbee/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr size_t kMaxPattern = 64 * 1024;
constexpr uint32_t kMatchLimit = 10'000'000;  // steps of one match
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr size_t kJitStackBytes = 1024 * 1024;

constexpr std::string_view kSpaces =
    R"(\t-\r\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
// Alphabetic characters, marks, digits, connectors; in Latin-1 also other numbers, as Oniguruma has
// it.
constexpr std::string_view kWords =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9})"
    R"(\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

// What PCRE2's UCP mode means by \s and \w differs a little; they are spelt out instead. Negated
// ones inside a class cannot be, and stay.
std::string spelt_out(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out.push_back(c);
      continue;
    }
    const char kind = pattern[++i];
    const bool space = kind == 's' || kind == 'S', word = kind == 'w' || kind == 'W';
    const bool negated = kind == 'S' || kind == 'W';
    if ((!space && !word) || (in_class && negated)) {
      out.append({c, kind});
      continue;
    }
    const std::string_view set = space ? kSpaces : kWords;
    out += in_class ? cat(set) : cat(negated ? "[^" : "[", set, "]");
  }
  return out;
}

// Working memory of a thread: words are short, making it anew for each would cost more than
// matching.
struct Matcher {
  std::unique_ptr<pcre2_match_data, Free> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free> stack{
      pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr)};

  Matcher() {
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_depth_limit(context.get(), kDepthLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Compiled {
  std::unique_ptr<pcre2_code, Free> code;
};

Regex::Regex(std::string_view pattern, std::string_view where) : pattern_(pattern) {
  check(pattern.size() <= kMaxPattern, where, "the pattern has ", pattern.size(), " bytes");
  check(utf8_valid(pattern), where, "the pattern is not UTF-8");
  const std::string text = spelt_out(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_ = std::make_unique<Compiled>();
  // No check of UTF at matching: callers pass valid text, and checking a megabyte for each match
  // would be quadratic.
  code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                  &error, &at, nullptr));
  if (!code_->code) {
    fail(Code::unsupported, where, "pattern \"", pattern, "\": ", message_of(error));
  }
  // Without JIT the interpreter does the same, slower.
  pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

void Regex::each_match(std::string_view text,
                       const std::function<void(size_t, size_t)>& on_match) const {
  static thread_local const Matcher matcher;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  for (size_t from = 0; from < text.size();) {
    const auto match = [&](uint32_t options) {
      return pcre2_match(code_->code.get(), subject, text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, matcher.data.get(), matcher.context.get());
    };
    int result = match(PCRE2_NOTEMPTY);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NOTEMPTY | PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0) {
      fail(Code::invalid_argument, "tokenizer", "pattern \"", pattern_, "\": ", message_of(result));
    }
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(matcher.data.get());
    // \K can put the start after the end.
    check(span[0] < span[1] && span[1] > from, "tokenizer", "pattern \"", pattern_,
          "\" gave a match that goes backwards");
    on_match(std::max(span[0], from), span[1]);
    from = span[1];
  }
}

}  // namespace rbee::text
