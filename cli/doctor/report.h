#pragma once
// What `rbee doctor` found, and how it is printed.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::doctor {

enum class Severity : uint8_t { ok, warning, error };

std::string_view name(Severity severity);

struct Finding {
  std::string subject;  // e.g. "AMD device files"
  Severity severity = Severity::ok;
  std::string text;  // one line
  std::string mend;  // the command, or the change, that mends it; empty if nothing is wrong
};

struct Findings {
  std::vector<Finding> list;
  // Architectures of this machine's GPUs on which nobody has run the program.
  std::vector<std::string> untried;

  void ok(std::string subject, std::string text);
  void warning(std::string subject, std::string text, std::string mend);
  void error(std::string subject, std::string text, std::string mend);
  // Adds those of `more`, errors as `most` if that is less.
  void add(const Findings& more, Severity most);
  // Adds it once.
  void add_untried(const std::string& architecture);

  Severity worst() const;
};

// `home`: a folder that is written as "~", since its name may be the user's; empty = none.
std::string as_text(const Findings& findings, std::string_view home);
// One object on one line: status, findings, untried.
std::string as_json(const Findings& findings, std::string_view home);

}  // namespace rbee::doctor
