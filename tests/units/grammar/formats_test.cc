// Formats of JSON schema, by the rules of their RFCs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/grammar/json_schema.h"
#include "tests/support/data_folder.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::matches;

struct Case {
  const char* format;
  std::vector<std::string> accepted;
  std::vector<std::string> rejected;
};

std::string letters(size_t count) {
  return std::string(count, 'a');
}

// Whether a text is of a format.
class Checker {
 public:
  explicit Checker(std::string_view format)
      : grammar_(compile(parse_json_schema(cat(R"({"format":")", format, R"("})")))) {}
  bool operator()(const std::string& text) const {
    return matches(grammar_, nlohmann::json(text).dump());
  }

 private:
  const std::shared_ptr<const CompiledGrammar> grammar_;
};

void expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Checker matches(c.format);
    for (const std::string& text : c.accepted)
      EXPECT_TRUE(matches(text)) << c.format << ' ' << text;
    for (const std::string& text : c.rejected)
      EXPECT_FALSE(matches(text)) << c.format << ' ' << text;
  }
}

TEST(Formats, Times) {
  expect({
      {"date",
       {"2024-02-29", "2000-02-29", "0004-02-29", "0400-02-29", "9996-02-29", "2023-02-28",
        "0000-02-29", "0000-01-01", "0001-01-01", "1970-12-31", "0010-04-30", "0100-10-10",
        "1000-11-30"},
       {"2023-02-29", "1900-02-29", "2100-02-29", "2024-02-30", "2024-04-31", "2024-13-01",
        "2024-00-10", "2024-01-00", "2024-01-32", "24-01-01", "2024-1-1", "2024-02-29T"}},
      {"time",
       {"00:00:00Z", "23:59:59+23:59", "08:30:06.283185Z", "08:30:06.1234567-08:00", "12:00:00z",
        "23:59:60Z", "23:59:60.5+00:00", "15:59:60-08:00", "00:59:60.25+01:00", "05:29:60+05:30",
        "18:29:60-05:30", "05:44:60+05:45", "00:14:60-23:45", "00:14:60+00:15"},
       {"24:00:00Z", "00:60:00Z", "00:00:60Z", "22:59:60Z", "23:59:61Z", "23:59:60+01:00",
        "15:59:60+08:00", "15:59:60Z", "15:59:60-08:01", "12:00:00", "12:00Z", "12:00:00.Z",
        "12:00:00+24:00", "12:00:00+00:60", "12:00:00+0100", "1:00:00Z"}},
      {"date-time",
       {"2024-02-29T23:59:59Z", "1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00",
        "1937-01-01t12:00:27.87+00:20"},
       {"2023-02-29T00:00:00Z", "2024-02-28 00:00:00Z", "2024-02-28T00:00:00", "2024-02-28"}},
      {"duration",
       {"P4DT12H30M5S", "P4Y", "PT0S", "P0D", "P1M", "PT1M", "PT36H", "P1DT12H", "P2W", "P1Y2M3D",
        "P1Y2M", "P1M2D", "PT1H2M3S"},
       {"", "P", "PT", "P1", "P1DT", "P2D1Y", "P1D2H", "P1Y2D", "PT1H2S", "P1Y2W", "P1.5D", "4DT1H",
        "P2S", "p1D"}},
  });
}

TEST(Formats, Addresses) {
  const std::string label = letters(63);
  const std::string all = cat("a.", label, ".", label, ".", label, ".", label);
  const std::string longest = cat(label, ".com"), too_long = cat("a", longest);
  const std::string name = cat(letters(64), "@b.c"), too_long_name = cat("a", name);
  expect({
      {"ipv4",
       {"192.168.0.1", "0.0.0.0", "255.255.255.255"},
       {"256.256.256.256", "127.0.0", "1.2.3.4.5", "01.2.3.4", "1.2.3.", "0x7f.0.0.1"}},
      {"ipv6",
       {"::", "::1", "1::", "::42:ff:1", "d6::", "1:d6::42", "1::d6:192.168.0.1",
        "1:2::192.168.0.1", "::ffff:192.168.0.1", "1:2:3:4:5:6:7:8", "::2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7::", "1::3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4", "2001:DB8::abcd"},
       {"12345::", ":2:3:4:5:6:7:8", "1:2:3:4:5:6:7:", "1::d6::42", "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7::8", "1:2:3:4:1.2.3.4", "::1.2.3", "::256.1.1.1", "1",
        "fe80::a%eth1", "::g", ":::"}},
      {"hostname",
       {"localhost", "www.example.com", "xn--4gbwdl.xn--wgbh1c", "a-b.c", "1host", "Example.COM",
        longest, "a.b.c.d.e.f.g.h"},
       {"", ".", "-a", "a-", "a_b", "a..b", ".a", too_long, "a b", all}},
      {"email",
       {"joe.bloggs@example.com", "te~st@example.com", "~test@example.com", "a+b@localhost", name},
       {"2962", ".test@example.com", "test.@example.com", "te..st@example.com", "a@", "@b", "a@b@c",
        "a b@c.d", too_long_name, "a@-b.c"}},
  });
}

TEST(Formats, IdentifiersAndPointers) {
  expect({
      {"uuid",
       {"2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
        "00000000-0000-0000-0000-000000000000"},
       {"2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380",
        "2eb8aa08-aa98-11ea-b4aa73b441d16380-", "2eb8aa08-aa98-11ea-b4ga-73b441d16380"}},
      {"json-pointer",
       {"", "/", "/foo/0", "/a~1b", "/m~0n", "//", "/ ", "/\"", "/\\"},
       {"a", "/~", "/~2", "#/a", "0"}},
      {"relative-json-pointer",
       {"0", "1", "120/foo", "0#", "1/a~1b", "0/"},
       {"", "01", "-1", "/foo", "0##", "0#/a", "1/~2"}},
  });
}

TEST(Formats, ResourcesAndExpressions) {
  const std::string name = letters(63);
  expect({
      {"uri",
       {"http://example.com/a?b=c#d", "mailto:a@b.c", "urn:isbn:0451450523", "file:///etc/hosts",
        "http://u:p@[::1]:80/%20", "a:", "ftp://h", "x://"},
       {"", "//h/a", "/a", "a b:", "1a:b", "http://a b", "http://[::1", "a:%2", "http://h:8a/",
        "http://\u00e9.com", "a:#b#c"}},
      {"uri-reference", {"", "/a", "a/b:c", "?q", "#f", "//h", "../a"}, {"1a:b", "a b", "%", "^"}},
      {"iri", {"http://\u00e9.com/\u4e2d?\ue000"}, {"http://\ue000.com", "a:\u00e9 ", "\u00e9:a"}},
      {"uri-template",
       {"", "a{b}", "{+a,b*}{?c:9999}", "{a.b}", "\u00e9"},
       {"{", "{}", "{a", "}", "{a:10000}", "{a:0}", "{a,}", "{=a}", "{a b}", "%2", "<", "a b"}},
      {"idn-hostname",
       {"b\u00fccher.example", "\u4e2d\u6587.com", "a.b"},
       {"\u302e.a", "-\u00fc", "\u00fc-", "a..b", ""}},
      {"idn-email", {"a@b", "\u00fc@b\u00fccher.de"}, {"\u00fc", "@\u00fc", "a@-b"}},
      {"email",
       {cat("a@", name, ".", name, ".", name, ".c")},
       {cat("a@", name, ".", name, ".", name, ".", name)}},
      {"regex",
       {"", "^[a-z]+$", "(?:a|b(c)*)+?", "\\d{2,}", "(?!a)b", "[^\\]]", "^\\d{3,4}$", "a{0,10}?",
        "x{10,15}", "[A-Fa-f0-9]+", "[\\w.-]{2,300}", "\\x41\\u00e9", "[1-9]", "[\\u4e00-\\u9fff]",
        "^[\\w.+-]+@[a-z-]+\\.[a-z]{2,}$", "[-a&]"},
       {"(",         ")",       "a**",   "[",    "*",       "a{2",    "\\",
        "\\q",       "(?=a)*",  "[b-a]", "{1}",  "]",       "a{3,2}", "a{15,10}",
        "a{100,99}", "a{10,9}", "[9-1]", "\\x4", "\\u00g0", "[]"}},
  });
}

// zod writes z.iso.time() and local date-times this way.
TEST(Formats, GiveWayToPatternsThatNoneOfTheirTextsFits) {
  const auto time = compile(parse_json_schema(
      R"({"type":"string","format":"time","pattern":"^(?:[01]\\d|2[0-3]):[0-5]\\d$"})"));
  EXPECT_TRUE(matches(time, R"("23:59")"));
  EXPECT_FALSE(matches(time, R"("24:00")"));
  EXPECT_FALSE(matches(time, R"("23:59:00Z")"));
  const auto zulu = compile(parse_json_schema(R"({"format":"time","pattern":"Z$","maxLength":9})"));
  EXPECT_TRUE(matches(zulu, R"("23:59:00Z")"));
  EXPECT_FALSE(matches(zulu, R"("25:59:00Z")"));
}

// The verdicts of Python's jsonschema on randomly changed texts, see
// tools/goldens/make_format_goldens.py.
TEST(Formats, AreWhatOtherCheckersSay) {
  std::ifstream file(std::filesystem::path(test::data_folder()) /
                     "units/grammar/data/formats.json");
  const auto golden = nlohmann::json::parse(file);
  const std::set<std::string> partly = {"idn-hostname", "regex"};
  for (const auto& [format, texts] : golden.items()) {
    const Checker matches(format);
    size_t missing = 0;
    for (const std::string text : texts.at("valid")) {
      if (matches(text)) continue;
      ++missing;
      EXPECT_TRUE(partly.contains(format)) << format << ' ' << text;
    }
    EXPECT_LE(missing, texts.at("valid").size() / 2) << format;
    for (const std::string text : texts.at("invalid")) {
      EXPECT_FALSE(matches(text)) << format << ' ' << text;
    }
  }
  EXPECT_GE(golden.size(), 12u);
}

}  // namespace
}  // namespace rbee::grammar
