"""Texts about the machine: installed packages, how the card appears, the kernel's messages on it."""
import glob
import grp
import os
import re
import shutil
import sys

import card as cards
import runner
import scrub

VARIABLES = re.compile(r"^(HIP|HSA|ROC|ROCR|GPU|AMD|CUDA|NVIDIA|RBEE)_")
LIBRARIES = ("libamdhip64", "libhsa-runtime64", "libhipblaslt", "librocblas", "libcuda", "libcublasLt")
FOLDERS = ("/opt/rocm*/lib", "/opt/rocm*/core/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
LOG_LINES = re.compile(r"(?i)amdgpu|kfd|NVRM|nvidia|xnack|PCI rejects atomics")


def device_file(path):
    try:
        facts = os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    opens = "opens" if os.access(path, os.R_OK | os.W_OK) else "may not be opened"
    return f"{path}: mode {facts.st_mode & 0o777:o}, group {cards.group_of(path)} ({facts.st_gid}), {opens}"


def group_names():
    out = []
    for gid in sorted({*os.getgroups(), os.getegid()}):
        try:
            name = grp.getgrgid(gid).gr_name
        except KeyError:
            name = ""
        # A group of one person has the person's name.
        out.append(f"{gid} {name}" if name in ("render", "video", "root", "sudo", "docker") else str(gid))
    return ", ".join(out)


def overview():
    facts = os.uname()
    processor = re.search(r"model name\s*: (.*)", cards.read("/proc/cpuinfo"))
    memory = [line for line in cards.read("/proc/meminfo").splitlines() if line.startswith(("MemTotal", "MemAvail"))]
    release = [line for line in cards.read("/etc/os-release").splitlines() if line.startswith("PRETTY_NAME")]
    return "\n".join([*release, f"kernel {facts.sysname} {facts.release} {facts.machine}",
                      f"processor {processor.group(1) if processor else '?'}, {os.cpu_count()} threads", *memory,
                      f"container {cards.in_container() or 'none'}",
                      f"user id {'0' if os.geteuid() == 0 else 'not 0'}, groups {group_names()}",
                      *[device_file(path) for path in ("/dev/kfd", *sorted(glob.glob("/dev/dri/*D*")),
                                                       *sorted(glob.glob("/dev/nvidia*[0-9l]")))]]) + "\n"


def topology():
    lines = []
    for number, node in cards.kfd_nodes().items():
        target = node.get("gfx_target_version", 0)
        lines.append(f"node {number}: {cards.gfx_name(target) if target else 'processor'}")
        lines += [f"  {key} {value}" for key, value in node.items()]
    for folder in sorted(glob.glob("/sys/class/drm/card[0-9]*/device")):
        facts = [f"{key} {cards.read(f'{folder}/{key}')}" for key in (
            "vendor", "device", "revision", "current_link_speed", "current_link_width", "mem_info_vram_total",
            "mem_info_vis_vram_total", "vbios_version") if cards.read(f"{folder}/{key}")]
        lines.append(f"{folder}: " + ", ".join(facts))
    return "\n".join(lines or ["the kernel lists no node that computes, and no graphics card"]) + "\n"


def kernel_log():
    done = runner.run(["dmesg"], 30)
    if not done.ok:
        return "the kernel's log may not be read (sudo dmesg)\n"
    lines = [line for line in done.text.splitlines() if LOG_LINES.search(line)][-200:]
    return "\n".join(lines or ["no line of the kernel's log speaks of a GPU"]) + "\n"


# In a process of its own, which a runtime may end. By the call's name: the names of the library.
ASK_VERSION = """
import ctypes, sys
for name in sys.argv[2:]:
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        print(f"{name}: {error}")
        continue
    number = ctypes.c_int()
    print(f"{name}: {sys.argv[1]} returns {getattr(library, sys.argv[1])(ctypes.byref(number))}, {number.value}")
    break
"""
RUNTIMES = (("hipRuntimeGetVersion", "RBEE_HIP_LIBRARY", ["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                                          "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so",
                                                          "/opt/rocm/core/lib/libamdhip64.so"]),
            ("cuDriverGetVersion", "RBEE_CUDA_LIBRARY", ["libcuda.so.1"]))


def runtime_versions():
    for call, variable, libraries in RUNTIMES:
        named = [os.environ[variable]] if variable in os.environ else libraries
        yield runner.run([sys.executable, "-c", ASK_VERSION, call, *named], 60).text.rstrip()


def versions():
    lines = [*runtime_versions(),
             f"amdgpu {cards.read('/sys/module/amdgpu/version', 'of the kernel or not loaded')}",
             f"nvidia {cards.read('/sys/module/nvidia/version', 'not loaded')}"]
    lines += [f"{file}: {cards.read(file)}" for file in sorted(glob.glob("/opt/rocm*/.info/version"))]
    for folder in FOLDERS:
        for library in LIBRARIES:
            lines += [f"{path} -> {os.path.basename(os.path.realpath(path))}"
                      for path in sorted(glob.glob(f"{folder}/{library}.so*"))]
    lines += [f"{key}={'SECRET' if scrub.SECRET_VARIABLE.search(key) else value}"
              for key, value in sorted(os.environ.items()) if VARIABLES.search(key)]
    asked = "name,driver_version,compute_cap,memory.total,pcie.link.gen.max,pcie.link.width.max"
    # No serial numbers are among these.
    for command in (["sw_vers"], ["sysctl", "hw.model", "hw.memsize", "machdep.cpu.brand_string", "hw.perflevel0.physicalcpu"],
                    ["xcrun", "--show-sdk-version"]):
        if sys.platform == "darwin" and shutil.which(command[0]):
            lines += [f"$ {' '.join(command)}", runner.run(command, 60).text]
    for command in (["rocminfo"], ["nvidia-smi", f"--query-gpu={asked}", "--format=csv"]):
        if shutil.which(command[0]):
            lines += [f"$ {' '.join(command)}", runner.run(command, 60).text]
    return "\n".join(lines) + "\n"
