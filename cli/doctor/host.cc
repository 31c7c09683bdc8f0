#include <algorithm>
#include <sstream>

#include "backends/cpu/control_groups.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/topology.h"
#include "cli/doctor/checks.h"
#include "rbee/core/byte_text.h"
#include "rbee/core/cat.h"

namespace rbee::doctor {
namespace {

constexpr int64_t kLittleMemory = 1'000'000'000;

void check_processor(const Machine& machine, Findings& findings) {
  const cpu::Isa used = cpu::cpu_isa(), best = cpu::supported_isas().highest();
  const std::string text =
      cat(cpu::processor_name(), ", ", cpu::physical_cores().size(), " cores, ", machine.processors,
          " threads; kernels for ", name(used));
  if (used < best) {
    findings.warning("processor", cat(text, ", though it has ", name(best)), "unset RBEE_CPU_ISA");
  } else if (used == cpu::Isa::portable) {
    findings.warning("processor", cat(text, ": without AVX2 models run slowly"),
                     "a processor with AVX2, FMA and F16C");
  } else {
    findings.ok("processor", text);
  }
}

void check_time(const Machine& machine, Findings& findings) {
  const int quota = cpu::ControlGroups(machine.root).processors();
  if (quota == 0 || quota >= machine.processors) {
    findings.ok("processor time", "no control group limits it");
    return;
  }
  findings.warning(
      "processor time",
      cat("the control group has time for ", quota, " of ", machine.processors, " processors"),
      cat("docker run --cpus ", machine.processors, ", or CPUQuota=", 100 * machine.processors,
          "% in a systemd unit; else run with --threads ", quota));
}

// In bytes; 0 if the kernel does not say.
int64_t meminfo(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream number(line.substr(key.size()));
    int64_t kib = 0;
    return number >> kib ? kib * 1024 : 0;
  }
  return 0;
}

void check_memory(const Machine& machine, Findings& findings) {
  const std::string text = machine.read("proc/meminfo");
  const int64_t total = meminfo(text, "MemTotal:");
  int64_t free = meminfo(text, "MemAvailable:");
  std::string words = cat(bytes_to_text(free), " of ", bytes_to_text(total), " free");
  std::string mend = "end other programs";
  if (const auto group = cpu::ControlGroups(machine.root).memory(); group && group->limit < total) {
    words += cat("; the control group allows ", bytes_to_text(group->limit), ", of which ",
                 bytes_to_text(group->free), " are free");
    mend = "docker run --memory with more, or MemoryMax= in a systemd unit";
    free = std::min(free, group->free);
  }
  if (free < kLittleMemory) {
    findings.warning("memory", words, mend);
  } else {
    findings.ok("memory", words);
  }
}

// "always [madvise] never"
void check_huge_pages(const Machine& machine, Findings& findings) {
  const std::string file = "sys/kernel/mm/transparent_hugepage/enabled";
  const std::string text = machine.read(file);
  const size_t begin = text.find('['), end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    findings.ok("huge pages", "the kernel does not say");
    return;
  }
  const std::string chosen = text.substr(begin + 1, end - begin - 1);
  if (chosen == "never") {
    findings.warning("huge pages", "the kernel gives none, which makes large models slower",
                     cat("echo madvise | sudo tee /", file));
  } else {
    findings.ok("huge pages", chosen);
  }
}

}  // namespace

void check_host(const Machine& machine, Findings& findings) {
  check_processor(machine, findings);
  check_time(machine, findings);
  check_memory(machine, findings);
  check_huge_pages(machine, findings);
}

}  // namespace rbee::doctor
