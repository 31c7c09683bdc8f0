// Constraints of any bytes: g and GBNF, r and a regular expression of whole texts, a and one of any
// part, l and Lark, or a JSON schema; then a zero byte and a text to read. At each byte the mask
// must agree with the matcher, and there must be a next token or an end.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/lark.h"
#include "rbee/grammar/matcher.h"
#include "rbee/grammar/regex.h"
#include "tests/fuzz/expect_reason.h"

namespace {

using namespace rbee;

// Small limits, so that the fuzzer tries many grammars.
constexpr grammar::AutomatonLimits kLimits = {
    .max_rules = 100, .max_expanded = 5000, .max_work = 50'000};
constexpr size_t kMaxRead = 64;
constexpr int64_t kMaskWork = 1'000'000;

grammar::Grammar parse(std::string_view text) {
  const std::string_view rest = text.substr(text.empty() ? 0 : 1);
  switch (text.empty() ? '\0' : text.front()) {
    case 'g':
      return grammar::parse_gbnf(rest, [](std::string_view token, bool other) {
        const auto id = static_cast<char32_t>(token.size());
        return other ? grammar::tokens({{0, id}, {id + 2, 300}}) : grammar::tokens({{id, id}});
      });
    case 'r':
      return {.rules = {{"regex", grammar::parse_regex("regex", rest)}}, .root = 0};
    case 'a':
      return {.rules = {{"regex", grammar::parse_regex("regex", rest, grammar::json_string_chars,
                                                       grammar::Match::anywhere)}},
              .root = 0};
    case 'l':
      return grammar::parse_lark(rest);
    default:
      return grammar::parse_json_schema(text);
  }
}

const std::shared_ptr<const grammar::Vocabulary>& bytes() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const grammar::Vocabulary>(tokens, std::span<const int32_t>());
  }();
  return vocabulary;
}

void read(const grammar::Grammar& grammar, std::string_view text) {
  grammar::Matcher matcher(
      std::make_shared<const grammar::CompiledGrammar>(grammar, bytes(), nullptr, kLimits));
  for (const char c : text.substr(0, kMaxRead)) {
    uint64_t bits[4];
    int64_t work = kMaskWork;
    const auto count = matcher.fill(bits, work);
    if (!count) return;
    if (*count == 0 && !matcher.complete()) throw std::logic_error("a dead end");
    const auto byte = static_cast<uint8_t>(c);
    const bool allowed = ((bits[byte / 64] >> (byte % 64)) & 1) != 0;
    if (matcher.accept_token(static_cast<uint8_t>(c)) != allowed) {
      throw std::logic_error("the mask and the matcher do not agree");
    }
    if (!allowed) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  try {
    const grammar::Grammar grammar = parse(input.substr(0, zero));
    read(grammar, zero == std::string_view::npos ? "" : input.substr(zero + 1));
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
