#include "rbee/grammar/formats.h"

#include <map>
#include <string>

#include "rbee/core/cat.h"

namespace rbee::grammar {
namespace {

using Formats = std::map<std::string_view, Format>;

std::string two_digits(int value) {
  return cat(value < 10 ? "0" : "", value);
}

// A leap second, which ends a day of UTC, on clocks some quarters of an hour apart from it.
std::string leap_second(const std::string& part) {
  std::string out = cat("23:59:60", part, "(?:[Zz]|[+-]00:00)");
  constexpr int kHour = 60, kDay = 24 * kHour, kStep = 15;
  for (int offset = kStep; offset < kDay; offset += kStep) {
    const auto time = [](int minutes) {
      return cat(two_digits(minutes / kHour), ":", two_digits(minutes % kHour));
    };
    // Clocks that are ahead by the offset, and clocks that are behind by the rest of the day.
    out += cat("|", time(offset - 1), ":60", part, "(?:[+]", time(offset), "|-",
               time(kDay - offset), ")");
  }
  return out;
}

// RFC 3339, 5.6.
void add_times(Formats& out) {
  const std::string year = "[0-9]{4}";
  const std::string leap =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[048]|[2468][048]|[13579][26])00)";
  const std::string date =
      cat("(?:", year,
          "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
          "|02-(?:0[1-9]|1[0-9]|2[0-8]))|",
          leap, "-02-29)");
  const std::string part = R"((?:\.[0-9]+)?)";
  const std::string time =
      cat("(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]", part,
          "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|", leap_second(part), ")");
  out["date"] = {date};
  out["time"] = {time};
  out["date-time"] = {cat(date, "[Tt]", time)};
  // RFC 3339, appendix A.
  const std::string hours = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  const std::string days = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
  out["duration"] = {cat("P(?:", days, "(?:", hours, ")?|", hours, "|[0-9]+W)")};
}

// RFC 3986, 3.2.2.
std::string ipv4() {
  const std::string octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return cat(octet, R"((?:\.)", octet, "){3}");
}

// RFC 3986, 3.2.2, which is RFC 4291, 2.2.
std::string ipv6() {
  const std::string part = "[0-9A-Fa-f]{1,4}";
  const std::string last = cat("(?:", part, ":", part, "|", ipv4(), ")");
  std::string out = cat("(?:(?:", part, ":){6}", last, "|::(?:", part, ":){5}", last);
  for (int before = 0; before <= 6; ++before) {
    out += cat("|(?:(?:", part, ":){0,", before, "}", part, ")?::");
    if (before < 4) out += cat("(?:", part, ":){", 4 - before, "}");
    if (before < 6) out += before < 5 ? last : part;
  }
  return out + ")";
}

// RFC 5890, 2.3.2.1: of non-ASCII letters those of some scripts that IDNA2008 accepts
// in any context.
constexpr const char* kLetters =
    R"(\xDF-\xF6\xF8-\xFF\u03B1\u03B3-\u03C1\u03C4-\u03C9\u0430-\u044F\u3042\u3044\u3046\u3048)"
    R"(\u304A\u30A2\u30A4\u30A6\u30A8\u30AA\u4E00-\u9FA5\uAC00-\uD7A3)";

void add_hosts(Formats& out) {
  // RFC 1123, 2.1, and RFC 1034, 3.1.
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  const std::string host = cat(label, R"((?:\.)", label, ")*");
  // Twelve letters have at most 63 octets in Punycode.
  const std::string letter = cat("[a-z0-9", kLetters, "]");
  const std::string wide_label = cat("(?:", label, "|", letter, "{1,12})");
  const std::string wide_host = cat(wide_label, R"((?:\.)", wide_label, ")*");
  out["hostname"] = {host, 253};
  out["idn-hostname"] = {wide_host, 253};
  // RFC 5321, 4.1.2: only dotted names, no quoted ones; 4.5.3.1: up to 64 octets before the @.
  // RFC 6531, 3.3, allows more characters; 16 of them have at most 64 octets.
  const std::string atext = "A-Za-z0-9!#$%&'*+/=?^_`{|}~-";
  const auto local = [&](const char* more) {
    const std::string atom = cat("[", atext, more, "]+");
    return cat(atom, R"((?:\.)", atom, ")*");
  };
  const std::string name = cat("(?=[^@]{1,64}@)", local(""));
  out["email"] = {cat(name, "@", host), 254};
  out["idn-email"] = {cat("(?:", name, "|(?=[^@]{1,16}@)", local(kLetters), ")@", wide_host), 254};
  out["ipv4"] = {ipv4()};
  out["ipv6"] = {ipv6()};
}

// RFC 3987, 2.2: ucschar and iprivate.
constexpr const char* kUcsChars =
    R"(\xA0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF\x{10000}-\x{1FFFD}\x{20000}-\x{2FFFD}\x{30000}-)"
    R"(\x{3FFFD}\x{40000}-\x{4FFFD}\x{50000}-\x{5FFFD}\x{60000}-\x{6FFFD}\x{70000}-\x{7FFFD})"
    R"(\x{80000}-\x{8FFFD}\x{90000}-\x{9FFFD}\x{A0000}-\x{AFFFD}\x{B0000}-\x{BFFFD}\x{C0000}-)"
    R"(\x{CFFFD}\x{D0000}-\x{DFFFD}\x{E1000}-\x{EFFFD})";
constexpr const char* kPrivateChars = R"(\uE000-\uF8FF\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD})";
constexpr const char* kCoded = "%[0-9A-Fa-f]{2}";

// RFC 3986, appendix A. ucs, priv: RFC 3987's additions.
class Uri {
 public:
  Uri(const char* ucs, const char* priv) : ucs_(ucs), private_(priv) {}

  std::string absolute() const {
    return cat("[A-Za-z][A-Za-z0-9+.-]*:(?:", rooted(), "|", unit(":@"), "+", segments(), ")?",
               query());
  }

  std::string reference() const {
    return cat(absolute(), "|(?:", rooted(), "|", unit("@"), "+", segments(), ")?", query());
  }

 private:
  // A character of a part, or a coded one.
  std::string unit(std::string_view more) const {
    return cat("(?:[A-Za-z0-9._~!$&'()*+,;=", more, ucs_, "-]|", kCoded, ")");
  }
  std::string segments() const { return cat("(?:/", unit(":@"), "*)*"); }

  // With a host, or a path from the root.
  std::string rooted() const {
    const std::string address =
        cat(R"(\[(?:)", ipv6(), R"(|v[0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\])");
    return cat("//(?:", unit(":"), "*@)?(?:", address, "|", unit(""), "*)(?::[0-9]*)?", segments(),
               "|/(?:", unit(":@"), "+", segments(), ")?");
  }
  std::string query() const {
    return cat(R"((?:\?)", unit(cat(":@/?", private_)), "*)?(?:#", unit(":@/?"), "*)?");
  }

  const char* ucs_;
  const char* private_;
};

void add_identifiers(Formats& out) {
  const Uri uri("", ""), iri(kUcsChars, kPrivateChars);
  out["uri"] = {uri.absolute()};
  out["uri-reference"] = {uri.reference()};
  out["iri"] = {iri.absolute()};
  out["iri-reference"] = {iri.reference()};
  // RFC 6570, 2.
  const std::string part = cat("(?:[A-Za-z0-9_]|", kCoded, ")+");
  const std::string variable = cat(part, R"((?:\.)", part, R"()*(?::[1-9][0-9]{0,3}|\*)?)");
  out["uri-template"] = {cat(R"((?:[!#$&(-;=?-\[\]_a-z~)", kUcsChars, kPrivateChars, "]|", kCoded,
                             R"(|\{[+#./;?&]?)", variable, "(?:,", variable, R"()*\})*)")};
  out["uuid"] = {"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"};
  // RFC 6901.
  const std::string pointer = "(?:/(?:[^~/]|~[01])*)*";
  out["json-pointer"] = {pointer};
  out["relative-json-pointer"] = {cat("(?:0|[1-9][0-9]*)(?:#|", pointer, ")")};
}

// Ranges in lists of expressions, none backwards: of letters from the first or to the last.
std::string ranges() {
  std::string out = R"(a-[a-z]|[a-z]-z|A-[A-Z]|[A-Z]-Z|\\u4e00-\\u9fff)";
  for (char low = '0'; low <= '9'; ++low) out += cat("|", low, "-[", low, "-9]");
  return out;
}

// {m}, {m,} and {m,n}, numbers of up to three digits, n not below m: if both have three digits, n
// has the larger first one.
std::string counts() {
  std::string ordered = "[0-9],[1-9][0-9]{1,2}|[1-9][0-9],[1-9][0-9]{2}";
  for (char m = '0'; m <= '9'; ++m) ordered += cat("|", m, ",[", m, "-9]");
  for (char first = '1'; first <= '9'; ++first) {
    for (char m = '0'; m <= '9'; ++m) ordered += cat("|", first, m, ",", first, "[", m, "-9]");
    if (first == '9') continue;
    const auto next = static_cast<char>(first + 1);
    for (const char* rest : {"[0-9]", "[0-9]{2}"}) {
      ordered += cat("|", first, rest, ",[", next, "-9]", rest);
    }
  }
  return cat(R"(\{(?:[0-9]{1,3},?|)", ordered, R"()\})");
}

// ECMA-262 with the flag u, which Python reads too; groups are nested at most twice.
void add_expressions(Formats& out) {
  const std::string code = R"(\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})";
  const std::string character = cat(
      R"([^\\^$.|?*+()\[\]{}\n\r\u2028\u2029]|\\[dDwWsStnrfv]|\\[\\^$.|?*+()\[\]{}/]|\.|)", code);
  const std::string list =
      cat(R"(\[\^?-?(?:)", ranges(),
          R"(|[^\\\[\]^\n\r\u2028\u2029-]|\\[dDwWsStnrfv]|\\[\\^\[\]./-]|)", code, R"()+-?\])");
  const std::string times = cat("(?:(?:[*+?]|", counts(), R"()\??)?)");
  std::string parts = cat("(?:(?:", character, "|", list, ")", times, R"(|\^|\$|\\[bB]|\|)*)");
  for (int depth = 0; depth < 2; ++depth) {
    parts = cat("(?:(?:", character, "|", list, R"(|\((?:\?:)?)", parts, R"(\)))", times,
                R"(|\(\?[=!])", parts, R"(\)|\^|\$|\\[bB]|\|)*)");
  }
  out["regex"] = {parts};
}

const Formats& formats() {
  static const Formats table = [] {
    Formats out;
    add_times(out);
    add_hosts(out);
    add_identifiers(out);
    add_expressions(out);
    return out;
  }();
  return table;
}

}  // namespace

const Format* find_format(std::string_view name) {
  const auto at = formats().find(name);
  return at == formats().end() ? nullptr : &at->second;
}

}  // namespace rbee::grammar
