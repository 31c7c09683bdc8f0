// NVIDIA's driver and device files.

#include <array>
#include <charconv>
#include <optional>
#include <sstream>

#include "cli/doctor/checks.h"
#include "rbee/core/cat.h"

namespace rbee::doctor {
namespace {

constexpr const char* kDriver = "NVIDIA driver";
constexpr const char* kInstall =
    "install the driver: sudo apt install nvidia-driver (Debian, non-free), sudo ubuntu-drivers "
    "install (Ubuntu)";
const ContainerFlags kFlags{.docker = "--gpus all", .podman = "--device nvidia.com/gpu=all"};

using Version = std::array<int, 3>;
// That of CUDA 12.0 (CUDA Toolkit Release Notes, table "Minimum Required Driver Version").
constexpr Version kLeast{525, 60, 13};

std::optional<Version> parse_version(std::string_view word) {
  Version out{};
  const char *at = word.data(), *end = word.data() + word.size();
  for (size_t i = 0; i < out.size() && at != end; ++i) {
    const auto [next, error] = std::from_chars(at, end, out[i]);
    if (error != std::errc() || (next != end && *next != '.')) return std::nullopt;
    at = next == end ? next : next + 1;
  }
  return word.find('.') == std::string_view::npos ? std::nullopt : std::optional(out);
}

// The first word that is a version: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01
// ..."
std::string version_word(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (parse_version(word)) return word;
  }
  return "";
}

void check_driver(const Machine& machine, const std::string& text, Findings& findings) {
  if (text.empty()) {
    findings.error(kDriver, "the kernel's driver is not loaded",
                   machine.container().empty() ? cat("sudo modprobe nvidia; or ", kInstall)
                                               : "load the driver on the host");
    return;
  }
  const std::string word = version_word(text);
  const auto version = parse_version(word);
  if (!version) {
    findings.warning(kDriver, "/proc/driver/nvidia/version names no version", kInstall);
  } else if (*version < kLeast) {
    findings.error(kDriver,
                   cat("version ", word, " is too old: 525.60.13 (CUDA 12.0) is the least"),
                   machine.container().empty() ? cat("update it; ", kInstall)
                                               : "update the driver on the host");
  } else {
    findings.ok(kDriver, cat("version ", word, "; 525.60.13 is the least"));
  }
}

// /dev/nvidia0 and so on, without nvidiactl and its kin.
std::vector<std::string> card_files(const Machine& machine) {
  std::vector<std::string> out;
  for (const std::string& path : machine.list("dev", "nvidia")) {
    if (path.find_first_not_of("0123456789", std::string_view("dev/nvidia").size()) ==
        std::string::npos) {
      out.push_back(path);
    }
  }
  return out;
}

}  // namespace

void check_nvidia(const Machine& machine, const BackendInfo* backend, Findings& findings) {
  const std::string driver = machine.read("proc/driver/nvidia/version");
  const bool opens = backend != nullptr && backend->device_count() > 0;
  if (machine.cards("0x10de") == 0 && driver.empty() && !opens) {
    findings.ok("NVIDIA", "no card");
    return;
  }
  // Where the library opens a device all the same, as in WSL, a fault here is none of the card's.
  Findings system;
  check_driver(machine, driver, system);
  check_files(machine,
              {.subject = "NVIDIA device files",
               .pattern = "/dev/nvidia0",
               .paths = card_files(machine),
               .load = "sudo nvidia-modprobe -c 0",
               .flags = kFlags},
              system);
  check_files(machine,
              {.subject = "NVIDIA device files",
               .pattern = "/dev/nvidia-uvm",
               .paths = machine.list("dev", "nvidia-uvm"),
               .load = "sudo nvidia-modprobe -u -c 0",
               .flags = kFlags},
              system);
  findings.add(system, opens ? Severity::warning : Severity::error);
  check_devices(machine, backend,
                {.vendor = "NVIDIA",
                 .needed = "CUDA 12.0",
                 .variable = "RBEE_CUDA_LIBRARY",
                 .searched = "the loader's folders for libcuda.so.1",
                 .install = machine.container().empty() ? kInstall : in_container(machine, kFlags),
                 .option = "RBEE_CUDA",
                 .strays = {}},
                findings);
}

}  // namespace rbee::doctor
