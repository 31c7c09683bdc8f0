#include "rbee/grammar/formats.h"

#include <map>

namespace rbee::grammar {
namespace {

// Days that every year has. RFC 3339 for times.
#define RB_DATE                                                                     \
  "[12][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:" \
  "0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define RB_TIME                                                                                   \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-" \
  "5][0-9])"
#define RB_LABEL "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
#define RB_PATH "(?:/[A-Za-z0-9._~-]{0,64})"
#define RB_URI "https?://(?:" RB_LABEL "\\.){1,4}[a-z]{2,10}(?::[1-9][0-9]{0,3})?" RB_PATH "{0,16}"
#define RB_EMAIL \
  "[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32}){0,3}@(?:" RB_LABEL "\\.){1,4}[a-z]{2,10}"
#define RB_HOST "(?:" RB_LABEL "\\.){0,4}[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?"
#define RB_POINTER "(?:/(?:[A-Za-z0-9._-]|~[01]){0,64})"
#define RB_OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

const std::map<std::string_view, const char*>& formats() {
  static const std::map<std::string_view, const char*> table = {
      {"date", RB_DATE},
      {"time", RB_TIME},
      {"date-time", RB_DATE "T" RB_TIME},
      {"duration",
       "P(?:[1-9][0-9]{0,3}W|[1-9][0-9]{0,3}D(?:T[1-9][0-9]?H)?|T[1-9][0-9]{0,3}[HMS])"},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
      {"email", RB_EMAIL},
      {"idn-email", RB_EMAIL},
      {"hostname", RB_HOST},
      {"idn-hostname", RB_HOST},
      {"ipv4", "(?:" RB_OCTET "\\.){3}" RB_OCTET},
      {"ipv6", "(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"},
      {"uri", RB_URI},
      {"iri", RB_URI},
      {"uri-reference", RB_URI "|" RB_PATH "{1,16}"},
      {"iri-reference", RB_URI "|" RB_PATH "{1,16}"},
      {"uri-template", RB_URI "(?:/\\{[a-z][a-z0-9_]{0,31}\\}){0,4}"},
      {"json-pointer", RB_POINTER "{0,16}"},
      {"relative-json-pointer", "(?:0|[1-9][0-9]{0,2})(?:#|" RB_POINTER "{0,16})"},
  };
  return table;
}

#undef RB_DATE
#undef RB_TIME
#undef RB_LABEL
#undef RB_OCTET
#undef RB_PATH
#undef RB_URI
#undef RB_EMAIL
#undef RB_HOST
#undef RB_POINTER

}  // namespace

const char* format_pattern(std::string_view format) {
  const auto at = formats().find(format);
  return at == formats().end() ? nullptr : at->second;
}

}  // namespace rbee::grammar
