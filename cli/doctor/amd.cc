// AMD's driver and device files.

#include <algorithm>
#include <sstream>

#include "cli/doctor/checks.h"
#include "rbee/core/cat.h"

namespace rbee::doctor {
namespace {

constexpr const char* kVendor = "0x1002";
constexpr const char* kInstall =
    "install the HIP runtime: sudo apt install libamdhip64-5 (Debian), or another package of "
    "docs/guide/amd.md#what-to-install";
const ContainerFlags kFlags{
    .docker =
        "--device /dev/kfd --device /dev/dri --group-add $(getent group render | cut -d: -f3)",
    .podman = "--device /dev/kfd --device /dev/dri --group-add keep-groups"};

// 110000 is gfx1100, 90010 gfx90a: two digits for the minor version and two for the stepping.
std::string architecture_of(int64_t version) {
  constexpr std::string_view kHex = "0123456789abcdef";
  return cat("gfx", version / 10000, kHex.substr(version / 100 % 100 % 16, 1),
             kHex.substr(version % 100 % 16, 1));
}

// Of the cards that the kernel's driver can compute on; "gfx1100".
std::vector<std::string> architectures(const Machine& machine) {
  std::vector<std::string> out;
  for (const std::string& node : machine.list("sys/class/kfd/kfd/topology/nodes")) {
    std::istringstream lines(machine.read(node + "/properties"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string key;
      int64_t value = 0;
      if (!(words >> key >> value) || key != "gfx_target_version") continue;
      if (value == 0) continue;  // a processor
      const std::string found = architecture_of(value);
      if (std::ranges::count(out, found) == 0) out.push_back(found);
    }
  }
  return out;
}

void check_driver(const Machine& machine, const std::vector<std::string>& found,
                  Findings& findings) {
  constexpr const char* kDriver = "AMD driver";
  const bool contained = !machine.container().empty();
  if (!machine.has("sys/module/amdgpu")) {
    findings.error(kDriver, "the kernel's amdgpu driver is not loaded",
                   contained ? "on the host: sudo modprobe amdgpu" : "sudo modprobe amdgpu");
    return;
  }
  std::string names;
  for (const std::string& name : found) names += cat(names.empty() ? "" : ", ", name);
  if (found.empty()) {
    findings.error(kDriver, "amdgpu is loaded and names no card that computes (/sys/class/kfd)",
                   "sudo dmesg | grep kfd: it may name a slot or a card that cannot");
  } else {
    findings.ok(kDriver, cat("amdgpu is loaded: ", names));
  }
}

// Those of other vendors are left out where the kernel tells whose they are.
std::vector<std::string> render_files(const Machine& machine) {
  std::vector<std::string> out = machine.list("dev/dri", "renderD");
  std::erase_if(out, [&](const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const std::string vendor = machine.read(cat("sys/class/drm/", name, "/device/vendor"));
    return !vendor.empty() && !vendor.starts_with(kVendor);
  });
  return out;
}

// Runtimes in versioned folders of AMD's, which the backend does not search.
std::vector<std::string> strays(const Machine& machine) {
  std::vector<std::string> out;
  for (const std::string& folder : machine.list("opt", "rocm-")) {
    for (const std::string& path : machine.list(folder + "/lib", "libamdhip64.so.")) {
      out.push_back(path);
    }
  }
  return out;
}

}  // namespace

void check_amd(const Machine& machine, const BackendInfo* backend, Findings& findings) {
  const std::vector<std::string> found = architectures(machine);
  const bool opens = backend != nullptr && backend->device_count() > 0;
  if (machine.cards(kVendor) == 0 && found.empty() && !opens) {
    findings.ok("AMD", "no card");
    return;
  }
  // Where the library opens a device all the same, as in WSL, a fault here is none of the card's.
  Findings system;
  check_driver(machine, found, system);
  DeviceFiles files{.subject = "AMD device files",
                    .pattern = "/dev/kfd",
                    .paths = {},
                    .load = "sudo modprobe amdgpu",
                    .flags = kFlags};
  if (machine.has("dev/kfd")) files.paths = {"dev/kfd"};
  check_files(machine, files, system);
  files.pattern = "/dev/dri/renderD*";
  files.paths = render_files(machine);
  check_files(machine, files, system);
  findings.add(system, opens ? Severity::warning : Severity::error);
  check_devices(machine, backend,
                {.vendor = "AMD",
                 .needed = "HIP 5.2.21153 (ROCm 5.2.3)",
                 .variable = "RBEE_HIP_LIBRARY",
                 .searched = "the loader's folders, /opt/rocm/lib and /opt/rocm/core/lib for "
                             "libamdhip64.so",
                 .install = kInstall,
                 .option = "RBEE_ROCM",
                 .strays = strays(machine)},
                findings);
  for (const std::string& architecture : found) {
    if (!is_tried(architecture)) findings.add_untried(architecture);
  }
}

}  // namespace rbee::doctor
