#include "cli/doctor/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/cat.h"

namespace rbee::doctor {
namespace {

constexpr size_t kSeverityWidth = 9;
constexpr size_t kSubjectWidth = 20;

std::string padded(std::string_view text, size_t width) {
  std::string out(text);
  out.resize(std::max(out.size() + 1, width), ' ');
  return out;
}

std::string without_home(std::string text, std::string_view home) {
  if (home.size() < 2) return text;
  for (size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1)) {
    text.replace(at, home.size(), "~");
  }
  return text;
}

std::string counted(size_t count, const char* what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "unknown";
}

void Findings::ok(std::string subject, std::string text) {
  list.push_back({std::move(subject), Severity::ok, std::move(text), ""});
}

void Findings::warning(std::string subject, std::string text, std::string mend) {
  list.push_back({std::move(subject), Severity::warning, std::move(text), std::move(mend)});
}

void Findings::error(std::string subject, std::string text, std::string mend) {
  list.push_back({std::move(subject), Severity::error, std::move(text), std::move(mend)});
}

void Findings::add(const Findings& more, Severity most) {
  for (Finding finding : more.list) {
    finding.severity = std::min(finding.severity, most);
    list.push_back(std::move(finding));
  }
}

void Findings::add_untried(const std::string& architecture) {
  if (std::ranges::count(untried, architecture) == 0) untried.push_back(architecture);
}

Severity Findings::worst() const {
  Severity worst = Severity::ok;
  for (const Finding& finding : list) worst = std::max(worst, finding.severity);
  return worst;
}

std::string as_text(const Findings& findings, std::string_view home) {
  std::string out;
  const std::string indent(kSeverityWidth + kSubjectWidth, ' ');
  size_t errors = 0, warnings = 0;
  for (const Finding& finding : findings.list) {
    errors += finding.severity == Severity::error ? 1 : 0;
    warnings += finding.severity == Severity::warning ? 1 : 0;
    out += cat(padded(name(finding.severity), kSeverityWidth),
               padded(finding.subject, kSubjectWidth), finding.text, "\n");
    if (!finding.mend.empty()) out += cat(indent, "mend: ", finding.mend, "\n");
  }
  out += cat(counted(errors, "error"), ", ", counted(warnings, "warning"), "\n");
  for (const std::string& architecture : findings.untried) {
    out += cat("Nobody has run this program on ", architecture,
               " yet. tools/first_card.sh checks it in one command and leaves one file for the "
               "developers (docs/guide/amd.md#your-card).\n");
  }
  return without_home(std::move(out), home);
}

std::string as_json(const Findings& findings, std::string_view home) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings.list) {
    list.push_back({{"subject", finding.subject},
                    {"severity", name(finding.severity)},
                    {"text", without_home(finding.text, home)},
                    {"mend", without_home(finding.mend, home)}});
  }
  const nlohmann::json out{
      {"status", name(findings.worst())}, {"findings", list}, {"untried", findings.untried}};
  return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace rbee::doctor
