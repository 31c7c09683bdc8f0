// Checks that are the same for every vendor.

#include <algorithm>

#include "cli/doctor/checks.h"
#include "rbee/core/byte_text.h"
#include "rbee/core/cat.h"
#include "rbee/core/error.h"

namespace rbee::doctor {
namespace {

// Of H100 and H200, in the first column of docs/reference/gpu-status.md.
constexpr std::string_view kTried[] = {"sm_90"};

constexpr const char* kHelpPage = "see docs/guide/gpus.md#when-it-does-not-start";

// Backends name the failed operation first, which says nothing here.
std::string reason_of(std::string text) {
  for (const std::string_view operation : {"device: ", "cuda: ", "rocm: ", "metal: "}) {
    if (text.starts_with(operation)) text.erase(0, operation.size());
  }
  return text;
}

std::string mend_of(const std::string& reason, const VendorLibrary& library) {
  if (!library.strays.empty() && reason.find("not installed") != std::string::npos) {
    return cat("export ", library.variable, "=/", library.strays.front());
  }
  if (reason.find("not installed") != std::string::npos ||
      reason.find("too old") != std::string::npos) {
    return library.install;
  }
  const size_t hidden = reason.find("=\"");  // HIP_VISIBLE_DEVICES="3" may hide it
  if (hidden != std::string::npos && reason.find("may hide it") != std::string::npos) {
    const size_t begin = reason.rfind('(', hidden) + 1;
    return cat("unset ", reason.substr(begin, hidden - begin));
  }
  return kHelpPage;
}

std::string where_searched(const Machine& machine, const VendorLibrary& library) {
  std::string out = cat("; searched: ", library.searched);
  for (const char* name : {library.variable.c_str(), "LD_LIBRARY_PATH"}) {
    if (!machine.variable(name).empty()) out += cat("; ", name, " is set");
  }
  if (!library.strays.empty()) out += cat("; found: /", library.strays.front());
  return out;
}

void check_device(const BackendInfo& backend, int ordinal, Findings& findings) {
  const DeviceId id{backend.kind, ordinal};
  try {
    const DeviceOffer device = backend.offer(ordinal);
    findings.ok(cat(id),
                cat(device.name, ", ", device.architecture, ", ", bytes_to_text(device.memory.free),
                    " of ", bytes_to_text(device.memory.total), " free"));
    if (!is_tried(device.architecture)) findings.add_untried(device.architecture);
  } catch (const Error& error) {
    std::string reason = reason_of(error.what());
    if (reason.starts_with(cat(id, ": "))) reason.erase(0, cat(id, ": ").size());
    findings.error(cat(id), reason, kHelpPage);
  }
}

}  // namespace

bool is_tried(std::string_view architecture) {
  return std::ranges::count(kTried, architecture) > 0;
}

std::string in_container(const Machine& machine, const ContainerFlags& flags) {
  return machine.container() == "podman" ? cat("podman run ", flags.podman, " ...")
                                         : cat("docker run ", flags.docker, " ...");
}

void check_files(const Machine& machine, const DeviceFiles& files, Findings& findings) {
  const bool contained = !machine.container().empty();
  const std::string give = in_container(machine, files.flags);
  if (files.paths.empty()) {
    findings.error(files.subject, cat("there is no ", files.pattern),
                   contained ? give : files.load);
    return;
  }
  const auto closed = std::ranges::find_if_not(
      files.paths, [&](const std::string& path) { return machine.opens(machine.root / path); });
  if (closed == files.paths.end()) {
    findings.ok(files.subject, cat("/", files.paths.front(), files.paths.size() > 1 ? ", ..." : "",
                                   " may be opened"));
    return;
  }
  const std::string group = machine.group(machine.root / *closed);
  const std::string text =
      cat("this user may not open /", *closed, ", which the group ", group, " may");
  if (contained) {
    findings.error(files.subject, text, give);
  } else if (machine.is_listed_in(group)) {
    findings.error(files.subject, cat(text, "; the user joined it after this login"),
                   "log out and in again");
  } else {
    findings.error(files.subject, text,
                   cat("sudo usermod -aG ", group, " $USER, then log out and in again"));
  }
}

void check_devices(const Machine& machine, const BackendInfo* backend, const VendorLibrary& library,
                   Findings& findings) {
  const std::string subject = cat(library.vendor, " library");
  if (backend == nullptr) {
    findings.warning(subject, cat("this program has no backend for ", library.vendor),
                     cat("build with -D", library.option, "=ON (docs/guide/gpus.md#build)"));
    return;
  }
  const int count = backend->device_count();
  if (count == 0) {
    const std::string reason = reason_of(backend->unavailable_reason());
    findings.error(subject, cat(reason, where_searched(machine, library)),
                   mend_of(reason, library));
    return;
  }
  findings.ok(subject, cat(backend->driver_version(), "; ", library.needed, " is the least"));
  for (int i = 0; i < count; ++i) check_device(*backend, i, findings);
}

Findings examine(const Machine& machine, std::span<const BackendInfo> backends) {
  const auto of_kind = [&](DeviceKind kind) -> const BackendInfo* {
    const auto found = std::ranges::find(backends, kind, &BackendInfo::kind);
    return found != backends.end() ? &*found : nullptr;
  };
  Findings findings;
  std::string held;
  for (const BackendInfo& backend : backends)
    held += cat(held.empty() ? "" : ", ", name(backend.kind));
  findings.ok("backends", cat("in this program: ", held));
  check_host(machine, findings);
  check_nvidia(machine, of_kind(DeviceKind::cuda), findings);
  check_amd(machine, of_kind(DeviceKind::rocm), findings);
  check_apple(machine, of_kind(DeviceKind::metal), findings);
  return findings;
}

}  // namespace rbee::doctor
