#pragma once
// The checks of `rbee doctor`. Each adds what it finds.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/registry.h"
#include "cli/doctor/machine.h"
#include "cli/doctor/report.h"

namespace rbee::doctor {

// All of them.
Findings examine(const Machine& machine, std::span<const BackendInfo> backends);

// Processor, its time, memory, huge pages.
void check_host(const Machine& machine, Findings& findings);
// Driver, device files, library, devices of a vendor. `backend`: null if the program has none.
void check_nvidia(const Machine& machine, const BackendInfo* backend, Findings& findings);
void check_amd(const Machine& machine, const BackendInfo* backend, Findings& findings);
// The same of a Mac; macOS has the driver and gives every program the device.
void check_apple(const Machine& machine, const BackendInfo* backend, Findings& findings);

// Whether somebody has run the program on a GPU of this architecture (gpu-status.md's table).
bool is_tried(std::string_view architecture);

// What check_devices() says of a vendor's library.
struct VendorLibrary {
  std::string vendor;               // "AMD"
  std::string needed;               // the least version
  std::string variable;             // names another file
  std::string searched;             // where the backend looks for it
  std::string install;              // how it is installed, or replaced by a newer one
  std::string option;               // of CMake, for the backend
  std::vector<std::string> strays;  // such files where the backend does not look
};

// The library and the devices, as the backend finds them.
void check_devices(const Machine& machine, const BackendInfo* backend, const VendorLibrary& library,
                   Findings& findings);

// What lets a container have the vendor's cards.
struct ContainerFlags {
  std::string docker, podman;
};
// "docker run ..." or "podman run ...", by what this process runs in.
std::string in_container(const Machine& machine, const ContainerFlags& flags);

// That these files are there, at least one, and open to this user. Paths are relative to the root.
struct DeviceFiles {
  std::string subject;             // of the findings
  std::string pattern;             // for people, e.g. "/dev/dri/renderD*"
  std::vector<std::string> paths;  // those that there are
  std::string load;                // the command that makes the kernel offer them
  ContainerFlags flags;
};
void check_files(const Machine& machine, const DeviceFiles& files, Findings& findings);

}  // namespace rbee::doctor
