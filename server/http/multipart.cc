#include "server/http/multipart.h"

#include <algorithm>
#include <optional>

#include "rbee/core/error.h"
#include "server/http/message.h"

namespace rbee::server {
namespace {

constexpr size_t kMaxParts = 64;
constexpr size_t kMaxBoundary = 70;  // RFC 2046, section 5.1.1
constexpr std::string_view kLine = "\r\n";

[[noreturn]] void bad(std::string_view why) {
  fail(Code::invalid_argument, "multipart", why);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes a parameter's value, quoted or not, off the start of `text`.
std::string take_value(std::string_view& text) {
  std::string value;
  if (text.empty() || text.front() != '"') {
    const size_t end = std::min(text.find(';'), text.size());
    value = trimmed(text.substr(0, end));
    text.remove_prefix(end);
    return value;
  }
  size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    value += text[at];
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return value;
}

// The value of a parameter in a header such as `form-data; name="a"`.
std::optional<std::string> parameter(std::string_view header, std::string_view wanted) {
  size_t semicolon;
  while ((semicolon = header.find(';')) != std::string_view::npos) {
    header.remove_prefix(semicolon + 1);
    const size_t equals = header.find('=');
    if (equals == std::string_view::npos) break;
    const std::string_view name = trimmed(header.substr(0, equals));
    header.remove_prefix(equals + 1);
    std::string value = take_value(header);
    if (same_text(name, wanted)) return value;
  }
  return std::nullopt;
}

// Where the next delimiter line begins; npos: nowhere. The delimiter's text in the middle of a
// line, or at the start of a longer word, is data.
size_t find_delimiter(std::string_view body, const std::string& delimiter) {
  const std::string wanted = std::string(kLine) + delimiter;
  size_t at = body.find(wanted);
  for (; at != std::string_view::npos; at = body.find(wanted, at + 1)) {
    const std::string_view after = body.substr(at + wanted.size());
    if (after.starts_with("--") || after.starts_with(kLine)) return at;
  }
  return at;
}

FormPart read_part(std::string_view head, std::string_view data) {
  while (!head.empty()) {
    const size_t end = std::min(head.find(kLine), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + kLine.size(), head.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) bad("a part's header has no colon");
    if (!same_text(trimmed(line.substr(0, colon)), "content-disposition")) continue;
    const std::string_view value = line.substr(colon + 1);
    std::optional<std::string> name = parameter(value, "name");
    if (!name || name->empty()) bad("a part has no name");
    return {.name = std::move(*name),
            .filename = parameter(value, "filename").value_or(""),
            .data = std::string(data)};
  }
  bad("a part has no Content-Disposition header");
}

}  // namespace

bool is_form_type(std::string_view content_type) {
  return same_text(trimmed(content_type.substr(0, content_type.find(';'))), "multipart/form-data");
}

std::vector<FormPart> parse_form(std::string_view content_type, std::string_view body) {
  const std::optional<std::string> boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kMaxBoundary) {
    bad("the Content-Type has no boundary of 1 to 70 characters");
  }
  const std::string delimiter = "--" + *boundary;
  if (!body.starts_with(delimiter)) {
    // RFC 2046 allows a preamble; some clients send an empty line.
    const size_t begin = find_delimiter(body, delimiter);
    if (begin == std::string_view::npos) bad("no line of the body begins with its boundary");
    body.remove_prefix(begin + kLine.size());
  }
  body.remove_prefix(delimiter.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with(kLine)) bad("a boundary is not followed by a line end");
    if (parts.size() == kMaxParts) bad("more than 64 parts");
    body.remove_prefix(kLine.size());
    const size_t end = find_delimiter(body, delimiter);
    if (end == std::string_view::npos) bad("the last part is cut off");
    const std::string_view part = body.substr(0, end);
    const size_t blank = part.find("\r\n\r\n");
    if (blank == std::string_view::npos) bad("a part's headers do not end");
    parts.push_back(read_part(part.substr(0, blank), part.substr(blank + 4)));
    body.remove_prefix(end + kLine.size() + delimiter.size());
  }
  return parts;
}

}  // namespace rbee::server
