// rbee doctor: whether this machine can run the program well, and what to do where it cannot.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "rbee/core/printable.h"

namespace rbee::tools {
namespace {

int examine(bool as_json) {
  const doctor::Machine machine = doctor::this_machine();
  const doctor::Findings findings = doctor::examine(machine, backends());
  const std::string home = machine.variable("HOME");
  const std::string text =
      as_json ? doctor::as_json(findings, home) : printable_text(doctor::as_text(findings, home));
  std::fputs(text.c_str(), stdout);
  return findings.worst() == doctor::Severity::error ? 1 : 0;
}

}  // namespace

Command add_doctor(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "doctor", "check drivers, rights, memory and processor, and say what mends a fault");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "one object, for programs");
  return {app, [json] { return examine(*json); }};
}

}  // namespace rbee::tools
