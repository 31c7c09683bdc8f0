#include "rbee/grammar/formats.h"

#include <map>

namespace rbee::grammar {
namespace {

// RFC 3339, 5.6, without the year 0. Leap seconds are taken at the end of a day of UTC alone.
#define RB_YEAR "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define RB_LEAP                                   \
  "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|" \
  "(?:0[48]|[2468][048]|[13579][26])00)"
#define RB_DATE                                                                          \
  "(?:" RB_YEAR                                                                          \
  "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|" \
  "30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" RB_LEAP "-02-29)"
#define RB_PART "(?:\\.[0-9]+)?"
#define RB_TIME                                           \
  "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" RB_PART \
  "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|23:59:60" RB_PART "(?:[Zz]|[+-]00:00))"
// RFC 3339, appendix A.
#define RB_HOURS "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
#define RB_DAYS "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
// RFC 1123, 2.1, and RFC 1034, 3.1: of the names of up to 253 characters those of up to four
// labels, and of up to fifteen short ones.
#define RB_LABEL(most) "[A-Za-z0-9](?:[A-Za-z0-9-]{0," most "}[A-Za-z0-9])?"
#define RB_NAMES(few, many) \
  "(?:(?:" RB_LABEL("61") "\\.){0," few "}" RB_LABEL("58") "|" \
  "(?:" RB_LABEL("13") "\\.){" many "}" RB_LABEL("13") ")"
#define RB_HOST RB_NAMES("3", "4,14")
#define RB_OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define RB_IPV4 RB_OCTET "(?:\\." RB_OCTET "){3}"
// RFC 3986, 3.2.2, which is RFC 4291, 2.2.
#define RB_H16 "[0-9A-Fa-f]{1,4}"
#define RB_LS32 "(?:" RB_H16 ":" RB_H16 "|" RB_IPV4 ")"
#define RB_UP_TO(most) "(?:(?:" RB_H16 ":){0," most "}" RB_H16 ")?::"
#define RB_IPV6                                                                      \
  "(?:(?:" RB_H16 ":){6}" RB_LS32 "|::(?:" RB_H16 ":){5}" RB_LS32                    \
  "|" RB_UP_TO("0") "(?:" RB_H16 ":){4}" RB_LS32                                     \
                    "|" RB_UP_TO("1") "(?:" RB_H16 ":){3}" RB_LS32                   \
                                      "|" RB_UP_TO("2") "(?:" RB_H16 ":){2}" RB_LS32 \
                                                        "|" RB_UP_TO("3") RB_H16     \
      ":" RB_LS32 "|" RB_UP_TO("4") RB_LS32 "|" RB_UP_TO("5") RB_H16 "|" RB_UP_TO("6") ")"
#define RB_PATH "(?:/[A-Za-z0-9._~-]{0,64})"
#define RB_URI_LABEL "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
#define RB_URI \
  "https?://(?:" RB_URI_LABEL "\\.){1,4}[a-z]{2,10}(?::[1-9][0-9]{0,3})?" RB_PATH "{0,16}"
// RFC 5321, 4.1.2: dotted names alone, no quoted ones; 4.5.3.1: up to 64 characters before the @,
// and 254 in all.
#define RB_ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
#define RB_EMAIL "(?=[^@]{1,64}@)" RB_ATEXT "+(?:\\." RB_ATEXT "+)*@" RB_NAMES("1", "2,10")
// RFC 6901.
#define RB_POINTER "(?:/(?:[^~/]|~[01])*)*"

const std::map<std::string_view, const char*>& formats() {
  static const std::map<std::string_view, const char*> table = {
      {"date", RB_DATE},
      {"time", RB_TIME},
      {"date-time", RB_DATE "[Tt]" RB_TIME},
      {"duration", "P(?:" RB_DAYS "(?:" RB_HOURS ")?|" RB_HOURS "|[0-9]+W)"},
      {"uuid", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
      {"email", RB_EMAIL},
      {"idn-email", RB_EMAIL},
      {"hostname", RB_HOST},
      {"idn-hostname", RB_HOST},
      {"ipv4", RB_IPV4},
      {"ipv6", RB_IPV6},
      {"uri", RB_URI},
      {"iri", RB_URI},
      {"uri-reference", RB_URI "|" RB_PATH "{1,16}"},
      {"iri-reference", RB_URI "|" RB_PATH "{1,16}"},
      {"uri-template", RB_URI "(?:/\\{[a-z][a-z0-9_]{0,31}\\}){0,4}"},
      {"json-pointer", RB_POINTER},
      {"relative-json-pointer", "(?:0|[1-9][0-9]*)(?:#|" RB_POINTER ")"},
  };
  return table;
}

#undef RB_YEAR
#undef RB_LEAP
#undef RB_DATE
#undef RB_PART
#undef RB_TIME
#undef RB_HOURS
#undef RB_DAYS
#undef RB_LABEL
#undef RB_NAMES
#undef RB_HOST
#undef RB_OCTET
#undef RB_IPV4
#undef RB_H16
#undef RB_LS32
#undef RB_UP_TO
#undef RB_IPV6
#undef RB_PATH
#undef RB_URI_LABEL
#undef RB_URI
#undef RB_ATEXT
#undef RB_EMAIL
#undef RB_POINTER

}  // namespace

const char* format_pattern(std::string_view format) {
  const auto at = formats().find(format);
  return at == formats().end() ? nullptr : at->second;
}

}  // namespace rbee::grammar
