// The report of `rbee doctor` on machines that these tests make up: files under a folder,
// permissions, and what a backend finds.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/doctor/checks.h"
#include "rbee/core/error.h"
#include "tests/support/data_folder.h"

namespace rbee::doctor {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// What the made-up backends find.
struct Gpus {
  std::vector<DeviceOffer> devices;
  std::string reason, version;
};
Gpus& gpus() {
  static Gpus found;
  return found;
}

BackendInfo backend_of(DeviceKind kind) {
  return {.kind = kind,
          .device_count = [] { return static_cast<int>(gpus().devices.size()); },
          .offer =
              [](int ordinal) {
                const DeviceOffer& device = gpus().devices.at(static_cast<size_t>(ordinal));
                if (device.name.empty()) fail(Code::unsupported, "device", "rocm:0: no kernels");
                return device;
              },
          .device = [](int) -> Device& { fail(Code::internal, "test", "a check opens no device"); },
          .unavailable_reason = [] { return gpus().reason; },
          .driver_version = [] { return gpus().version; }};
}

class Doctor : public ::testing::Test {
 protected:
  Doctor() {
    std::string pattern = (fs::temp_directory_path() / "rbee-doctor-XXXXXX").string();
    machine_.root = mkdtemp(pattern.data());
    machine_.processors = 8;
    machine_.opens = [this](const fs::path& path) {
      return !closed_.contains(fs::relative(path, machine_.root).string());
    };
    machine_.group = [](const fs::path&) { return "render"; };
    machine_.variable = [this](const char* name) {
      const auto found = variables_.find(name);
      return found != variables_.end() ? found->second : std::string();
    };
    machine_.user = "anna";
    gpus() = {};
    write("proc/meminfo", "MemTotal:       32000000 kB\nMemAvailable:   24000000 kB\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  }
  ~Doctor() override { fs::remove_all(machine_.root); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((machine_.root / path).parent_path());
    std::ofstream(machine_.root / path) << text;
  }
  void add_card(const std::string& vendor) const {
    write("sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
    write("sys/bus/pci/devices/0000:03:00.0/vendor", vendor + "\n");
    write("sys/bus/pci/devices/0000:04:00.0/class", "0x020000\n");  // a network card
    write("sys/bus/pci/devices/0000:04:00.0/vendor", vendor + "\n");
  }
  // A machine with a working gfx1100 card; the second node is a processor.
  void add_amd() const {
    add_card("0x1002");
    write("sys/module/amdgpu/refcnt", "3\n");
    write("sys/class/kfd/kfd/topology/nodes/0/properties", "gfx_target_version 0\n");
    write("sys/class/kfd/kfd/topology/nodes/1/properties",
          "hive_id 18446744073709551615\nsimd_count 192\ngfx_target_version 110000\n");
    write("dev/kfd", "");
    write("dev/dri/card0", "");
    write("dev/dri/renderD128", "");
    gpus() = {.devices = {{.name = "AMD Radeon RX 7900 XTX",
                           .architecture = "gfx1100",
                           .memory = {.total = 25'753'026'560, .free = 24'100'000'000}}},
              .reason = "",
              .version = "HIP runtime 6.4"};
  }
  void add_nvidia(const std::string& version, const char* architecture = "sm_90") const {
    add_card("0x10de");
    write("proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version +
              "  Sun May 12 19:39:15 UTC 2024\nGCC version:  gcc version 12.2.0 (Debian)\n");
    for (const char* file : {"nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}) {
      write(cat("dev/", file), "");
    }
    gpus() = {.devices = {{.name = "NVIDIA H200",
                           .architecture = architecture,
                           .memory = {.total = 150'000'000'000, .free = 149'000'000'000}}},
              .reason = "",
              .version = "CUDA driver 13.0"};
  }
  // The runtime opens and finds no device.
  static void without_devices(const std::string& reason) {
    gpus() = {.devices = {}, .reason = reason, .version = ""};
  }

  Findings with(DeviceKind kind) const {
    const BackendInfo backend = backend_of(kind);
    return examine(machine_, {&backend, 1});
  }
  Findings amd() const { return with(DeviceKind::rocm); }
  Findings nvidia() const { return with(DeviceKind::cuda); }

  static std::vector<Finding> of(const Findings& findings, Severity severity) {
    std::vector<Finding> out;
    for (const Finding& finding : findings.list) {
      // Skips findings about the machine that runs the test.
      if (finding.severity == severity && finding.subject != "processor") out.push_back(finding);
    }
    return out;
  }
  // The only error; it must be about this subject.
  static Finding error_of(const Findings& findings, const std::string& subject) {
    const std::vector<Finding> errors = of(findings, Severity::error);
    for (const Finding& finding : errors) {
      if (finding.subject == subject) return finding;
    }
    ADD_FAILURE() << "no error of " << subject << " in\n" << as_text(findings, "");
    return {};
  }

  Machine machine_;
  std::set<std::string> closed_;  // files that this user cannot open
  std::map<std::string, std::string> variables_;
};

TEST_F(Doctor, AMachineWithoutAGpuIsHealthy) {
  without_devices("rocm: AMD's HIP runtime (libamdhip64.so) is not installed");
  const Findings found = amd();
  EXPECT_THAT(of(found, Severity::error), IsEmpty()) << as_text(found, "");
  EXPECT_THAT(of(found, Severity::warning), IsEmpty()) << as_text(found, "");
  EXPECT_THAT(found.untried, IsEmpty());
  EXPECT_THAT(as_text(found, ""), HasSubstr("AMD                 no card"));
  EXPECT_THAT(as_text(found, ""), HasSubstr("24.6 GB of 32.8 GB free"));
}

TEST_F(Doctor, AnAmdCardThatNobodyHasRunNamesTheScriptThatChecksIt) {
  add_amd();
  const Findings found = amd();
  EXPECT_THAT(of(found, Severity::error), IsEmpty()) << as_text(found, "");
  EXPECT_THAT(found.untried, ElementsAre("gfx1100"));
  const std::string text = as_text(found, "");
  EXPECT_THAT(text, HasSubstr("amdgpu is loaded: gfx1100\n"));
  EXPECT_THAT(text, HasSubstr("HIP runtime 6.4; HIP 5.2.21153 (ROCm 5.2.3) is the least\n"));
  EXPECT_THAT(text, HasSubstr("rocm:0              AMD Radeon RX 7900 XTX, gfx1100, 24.1 GB of "
                              "25.8 GB free\n"));
  EXPECT_THAT(text, HasSubstr("on gfx1100 yet. tools/first_card.sh"));
}

TEST_F(Doctor, AUserWithoutTheGroupIsToldToJoinIt) {
  add_amd();
  closed_ = {"dev/kfd", "dev/dri/renderD128"};
  without_devices("rocm: the HIP runtime 6.4 finds no GPU (this user may not open /dev/kfd)");
  const Findings found = amd();
  const Finding finding = error_of(found, "AMD device files");
  EXPECT_EQ(finding.text, "this user may not open /dev/kfd, which the group render may");
  EXPECT_EQ(finding.mend, "sudo usermod -aG render $USER, then log out and in again");
  EXPECT_EQ(of(found, Severity::error).size(), 3U) << "both files and the library";
  EXPECT_THAT(found.untried, ElementsAre("gfx1100")) << "the kernel knows the card";

  write("etc/group", "video:x:44:\nrender:x:105:bert,anna\n");
  EXPECT_EQ(error_of(amd(), "AMD device files").mend, "log out and in again");
  write("etc/group", "render:x:105:annabel\nrender-old:x:106:anna\n");
  EXPECT_THAT(error_of(amd(), "AMD device files").mend, StartsWith("sudo usermod"));
  EXPECT_THAT(as_text(amd(), ""), ::testing::Not(HasSubstr("anna")));
}

TEST_F(Doctor, AContainerWithoutDeviceFilesIsToldItsFlags) {
  add_amd();
  write(".dockerenv", "");
  fs::remove(machine_.root / "dev/kfd");
  fs::remove_all(machine_.root / "dev/dri");
  without_devices("rocm: the HIP runtime 6.4 finds no GPU (there is no /dev/kfd)");
  const Findings found = amd();
  const Finding finding = error_of(found, "AMD device files");
  EXPECT_EQ(finding.text, "there is no /dev/kfd");
  EXPECT_THAT(finding.mend, StartsWith("docker run --device /dev/kfd --device /dev/dri "
                                       "--group-add $(getent group render"));
  EXPECT_EQ(of(found, Severity::error)[1].text, "there is no /dev/dri/renderD*");

  fs::remove(machine_.root / ".dockerenv");
  write("run/.containerenv", "");
  EXPECT_EQ(error_of(amd(), "AMD device files").mend,
            "podman run --device /dev/kfd --device /dev/dri --group-add keep-groups ...");
  fs::remove(machine_.root / "run/.containerenv");
  EXPECT_EQ(error_of(amd(), "AMD device files").mend, "sudo modprobe amdgpu") << "no container";
  write("proc/1/cgroup", "12:cpu:/kubepods/burstable/pod1\n");
  EXPECT_THAT(error_of(amd(), "AMD device files").mend, StartsWith("docker run"));
}

TEST_F(Doctor, RenderFilesOfOtherVendorsDoNotCount) {
  add_amd();
  write("dev/dri/renderD129", "");
  write("sys/class/drm/renderD129/device/vendor", "0x8086\n");
  closed_ = {"dev/dri/renderD129"};
  EXPECT_THAT(of(amd(), Severity::error), IsEmpty());
}

TEST_F(Doctor, ARuntimeThatIsMissingOrOldIsToldWithItsPackage) {
  add_amd();
  without_devices("rocm: AMD's HIP runtime (libamdhip64.so) is not installed (libamdhip64.so.7)");
  const Finding finding = error_of(amd(), "AMD library");
  EXPECT_THAT(finding.text, StartsWith("AMD's HIP runtime (libamdhip64.so) is not installed"));
  EXPECT_THAT(finding.text, HasSubstr("searched: the loader's folders, /opt/rocm/lib and "
                                      "/opt/rocm/core/lib"));
  EXPECT_THAT(finding.mend, HasSubstr("sudo apt install libamdhip64-5"));

  variables_["LD_LIBRARY_PATH"] = "/home/anna/lib";
  write("opt/rocm-6.3.1/lib/libamdhip64.so.6", "");
  const Finding stray = error_of(amd(), "AMD library");
  EXPECT_THAT(stray.text, HasSubstr("LD_LIBRARY_PATH is set; found: /opt/rocm-6.3.1/lib"));
  EXPECT_THAT(stray.text, ::testing::Not(HasSubstr("/home/anna")));
  EXPECT_EQ(stray.mend, "export RBEE_HIP_LIBRARY=/opt/rocm-6.3.1/lib/libamdhip64.so.6");

  without_devices("rocm: the HIP runtime (x, version 5.2.21151) is too old: 5.2.21153 is needed");
  EXPECT_THAT(error_of(amd(), "AMD library").mend, HasSubstr("amd.md#what-to-install"));
  without_devices(
      "rocm: the HIP runtime 6.4 finds no GPU (HIP_VISIBLE_DEVICES=\"3\" may hide it; x)");
  EXPECT_EQ(error_of(amd(), "AMD library").mend, "unset HIP_VISIBLE_DEVICES");
}

// In WSL the driver is in the host system, and the library finds the card without these files.
TEST_F(Doctor, WhatADeviceDoesWithoutIsNoError) {
  add_nvidia("550.54.14");
  fs::remove(machine_.root / "proc/driver/nvidia/version");
  fs::remove(machine_.root / "dev/nvidia0");
  const Findings found = nvidia();
  EXPECT_THAT(of(found, Severity::error), IsEmpty()) << as_text(found, "");
  EXPECT_EQ(of(found, Severity::warning).size(), 2U) << as_text(found, "");
}

TEST_F(Doctor, ADeviceThatCannotBeUsedIsAnError) {
  add_amd();
  gpus().devices = {{}};
  const Finding finding = error_of(amd(), "rocm:0");
  EXPECT_EQ(finding.text, "no kernels");
  EXPECT_NE(finding.mend, "");
}

TEST_F(Doctor, TheAmdDriverHasToBeLoadedAndToKnowTheCard) {
  add_amd();
  without_devices("rocm: the HIP runtime 6.4 finds no GPU (x)");
  write("sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 0\n");
  EXPECT_THAT(error_of(amd(), "AMD driver").mend, HasSubstr("dmesg | grep kfd"));
  fs::remove_all(machine_.root / "sys/module/amdgpu");
  EXPECT_EQ(error_of(amd(), "AMD driver").mend, "sudo modprobe amdgpu");
  for (const auto& [version, name] : {std::pair{"90010", "gfx90a"},
                                      {"100306", "gfx1036"},
                                      {"90402", "gfx942"},
                                      {"120001", "gfx1201"}}) {
    write("sys/class/kfd/kfd/topology/nodes/1/properties", cat("gfx_target_version ", version));
    EXPECT_THAT(amd().untried, ElementsAre(name));
  }
}

TEST_F(Doctor, AnNvidiaCardThatWorksNeedsNothing) {
  add_nvidia("535.183.01");
  const Findings found = nvidia();
  EXPECT_THAT(of(found, Severity::error), IsEmpty()) << as_text(found, "");
  EXPECT_THAT(found.untried, IsEmpty()) << "somebody has run an H200";
  EXPECT_THAT(as_text(found, ""), HasSubstr("version 535.183.01; 525.60.13 is the least"));
  add_nvidia("535.183.01", "sm_120");
  EXPECT_THAT(nvidia().untried, ElementsAre("sm_120"));
}

TEST_F(Doctor, AnOldNvidiaDriverIsAnError) {
  without_devices("");
  add_nvidia("470.199.02");
  without_devices(
      "cuda: the NVIDIA driver (libcuda.so.1, CUDA 11.4) is too old: CUDA 12.0 is needed");
  const Findings found = nvidia();
  const Finding finding = error_of(found, "NVIDIA driver");
  EXPECT_EQ(finding.text, "version 470.199.02 is too old: 525.60.13 (CUDA 12.0) is the least");
  EXPECT_THAT(finding.mend, HasSubstr("sudo apt install nvidia-driver"));
  EXPECT_THAT(error_of(found, "NVIDIA library").text, HasSubstr("CUDA 11.4"));
  for (const char* least : {"525.60.13", "525.85", "570.86.10"}) {
    add_nvidia(least);
    EXPECT_THAT(of(nvidia(), Severity::error), IsEmpty()) << least;
  }
  add_nvidia("525.60.11");
  without_devices("cuda: too old");
  error_of(nvidia(), "NVIDIA driver");
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
        "560.35.03  Release Build  (dvs-builder@U16)\n");
  EXPECT_THAT(as_text(nvidia(), ""), HasSubstr("version 560.35.03; "));
}

TEST_F(Doctor, NvidiasFilesInAContainer) {
  add_nvidia("550.54.14");
  without_devices("cuda: the NVIDIA driver (CUDA 12.4) finds no GPU");
  write(".dockerenv", "");
  fs::remove(machine_.root / "dev/nvidia0");
  EXPECT_EQ(error_of(nvidia(), "NVIDIA device files").mend, "docker run --gpus all ...");
  fs::remove(machine_.root / ".dockerenv");
  EXPECT_EQ(error_of(nvidia(), "NVIDIA device files").mend, "sudo nvidia-modprobe -c 0");
}

TEST_F(Doctor, OnAMacSaysWhatTheGpuMayTakeAndThatItIsExperimental) {
  gpus() = {.devices = {{.name = "Apple M1 with 8 cores",
                         .architecture = "apple7",
                         .memory = {.total = 11'453'251'584, .free = 11'000'000'000},
                         .integrated = true}},
            .reason = "",
            .version = "Metal 3, macOS Version 14.5 (Build 23F79)"};
  const Findings found = with(DeviceKind::metal);
  const std::string text = as_text(found, "");
  EXPECT_THAT(text, HasSubstr("Metal 3, macOS Version 14.5 (Build 23F79); macOS 13 on M1 is the "
                              "least\n"));
  EXPECT_THAT(text, HasSubstr("metal:0             Apple M1 with 8 cores, apple7, 11.0 GB of "));
  EXPECT_THAT(text, HasSubstr("11.5 GB of this machine's memory are for the GPU"));
  EXPECT_THAT(text, HasSubstr("has run this program on apple7 yet. tools/first_card.sh"));
  const std::vector<Finding> warnings = of(found, Severity::warning);
  ASSERT_EQ(warnings.size(), 1U) << text;
  EXPECT_THAT(warnings[0].text,
              HasSubstr("experimental: made and tested without an Apple machine"));
  EXPECT_THAT(warnings[0].mend, HasSubstr("--device metal:0"));
}

TEST_F(Doctor, AMacWithoutAGpuOfApples) {
  write("System/Library/Frameworks/Metal.framework/Metal", "");
  without_devices("metal: Metal finds no GPU of Apple's, M1 or later (Intel Iris)");
  const Finding finding = error_of(with(DeviceKind::metal), "Apple library");
  EXPECT_THAT(finding.text, StartsWith("Metal finds no GPU of Apple's, M1 or later (Intel Iris)"));
  const std::vector<Finding> warnings = of(examine(machine_, {}), Severity::warning);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0].mend, HasSubstr("-DRBEE_METAL=ON"));
}

TEST_F(Doctor, SaysWhichBackendsTheProgramHolds) {
  const BackendInfo backends[] = {backend_of(DeviceKind::cpu), backend_of(DeviceKind::rocm)};
  const Finding first = examine(machine_, backends).list.front();
  EXPECT_EQ(first.subject, "backends");
  EXPECT_EQ(first.text, "in this program: cpu, rocm");
}

TEST_F(Doctor, AProgramWithoutTheVendorsBackendSaysSo) {
  add_amd();
  const Findings found = examine(machine_, {});
  const std::vector<Finding> warnings = of(found, Severity::warning);
  ASSERT_EQ(warnings.size(), 1U) << as_text(found, "");
  EXPECT_EQ(warnings[0].text, "this program has no backend for AMD");
  EXPECT_THAT(warnings[0].mend, HasSubstr("-DRBEE_ROCM=ON"));
}

TEST_F(Doctor, AQuotaOfAControlGroupIsAWarning) {
  write("proc/self/cgroup", "0::/system.slice/rbee.service\n");
  write("sys/fs/cgroup/system.slice/rbee.service/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/system.slice/memory.max", "4000000000\n");
  write("sys/fs/cgroup/system.slice/memory.current", "3500000000\n");
  const std::vector<Finding> warnings = of(examine(machine_, {}), Severity::warning);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].text, "the control group has time for 2 of 8 processors");
  EXPECT_THAT(warnings[0].mend, HasSubstr("CPUQuota=800%"));
  EXPECT_THAT(warnings[1].text, HasSubstr("the control group allows 4.00 GB, of which 500 MB"));
  EXPECT_THAT(warnings[1].mend, HasSubstr("docker run --memory"));
}

TEST_F(Doctor, KernelsThatGiveNoHugePagesAreAWarning) {
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  const std::vector<Finding> warnings = of(examine(machine_, {}), Severity::warning);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].mend,
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

TEST_F(Doctor, JsonHasTheSame) {
  add_amd();
  without_devices("rocm: the HIP runtime 6.4 finds no GPU (this user may not open /dev/kfd)");
  closed_ = {"dev/kfd"};
  const auto json = nlohmann::json::parse(as_json(amd(), ""));
  EXPECT_EQ(json.at("status"), "error");
  EXPECT_EQ(json.at("untried"), nlohmann::json({"gfx1100"}));
  const auto& list = json.at("findings");
  const auto found = std::ranges::find_if(
      list, [](const nlohmann::json& one) { return one.at("severity") == "error"; });
  ASSERT_NE(found, list.end());
  EXPECT_EQ(found->at("subject"), "AMD device files");
  EXPECT_THAT(found->at("mend").get<std::string>(), StartsWith("sudo usermod"));
}

TEST(DoctorReport, NamesNoHome) {
  Findings findings;
  findings.error("x", "/home/anna/lib/a.so is not there, nor /home/anna/b", "rm /home/anna/c");
  EXPECT_EQ(as_text(findings, "/home/anna"),
            "error    x                   ~/lib/a.so is not there, nor ~/b\n"
            "                             mend: rm ~/c\n1 error, 0 warnings\n");
  EXPECT_THAT(as_json(findings, "/home/anna"), ::testing::Not(HasSubstr("anna")));
}

// The table's head names the cards that the program was tested on.
TEST(DoctorReport, TheCardsThatWereRunAreThoseOfTheTable) {
  std::ifstream file(fs::path(test::data_folder()).parent_path() / "docs/reference/gpu-status.md");
  std::string head;
  while (std::getline(file, head) && !head.starts_with("| |")) {
  }
  EXPECT_THAT(head, StartsWith("| | NVIDIA H200, H100 (sm_90a) | "));
  EXPECT_TRUE(is_tried("sm_90"));
  for (const char* other : {"sm_80", "sm_100", "sm_120", "gfx942", "gfx1100"}) {
    EXPECT_FALSE(is_tried(other)) << other;
  }
}

}  // namespace
}  // namespace rbee::doctor
