// Apple's Metal and its GPU.

#include "cli/doctor/checks.h"
#include "rbee/core/byte_text.h"
#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/core/experimental.h"

namespace rbee::doctor {
namespace {

constexpr const char* kVariable = "RBEE_METAL_LIBRARY";
constexpr const char* kFramework = "System/Library/Frameworks/Metal.framework";

// Metal shares the machine's memory, and tells how much of it one program should take.
void check_memory(const BackendInfo& backend, Findings& findings) {
  try {
    const MemoryInfo memory = backend.offer(0).memory;
    findings.ok("Apple memory", cat(bytes_to_text(memory.total),
                                    " of this machine's memory are for the GPU "
                                    "(recommendedMaxWorkingSetSize)"));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // check_devices() has told it.
  }
}

}  // namespace

void check_apple(const Machine& machine, const BackendInfo* backend, Findings& findings) {
  const bool opens = backend != nullptr && backend->device_count() > 0;
  if (!machine.has(kFramework) && machine.variable(kVariable).empty() && !opens) {
    findings.ok("Apple", "no Metal");
    return;
  }
  check_devices(machine, backend,
                {.vendor = "Apple",
                 .needed = "macOS 13 on M1",
                 .variable = kVariable,
                 .searched = cat("/", kFramework),
                 .install = "update macOS to 13 or later",
                 .option = "RBEE_METAL",
                 .strays = {}},
                findings);
  if (!opens) return;
  check_memory(*backend, findings);
  findings.warning("Apple GPU",
                   cat(experimental(DeviceKind::metal), "; --device auto passes it over"),
                   "bash tools/first_card.sh --device metal:0 compares its results with the CPU's "
                   "(docs/guide/apple.md)");
}

}  // namespace rbee::doctor
