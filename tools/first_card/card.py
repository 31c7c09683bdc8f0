"""Finds this machine's GPU by its kernel and drivers, and problems that prevent its use."""
import ctypes
import glob
import grp
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# Of a node's properties those that describe the kind of card; unique_id is the one card's own.
KFD_PROPERTIES = ("gfx_target_version", "simd_count", "simd_per_cu", "wave_front_size", "max_waves_per_simd",
                  "lds_size_in_kb", "gds_size_in_kb", "array_count", "simd_arrays_per_engine", "cu_per_simd_array",
                  "num_xcc", "num_sdma_engines", "vendor_id", "device_id", "max_engine_clk_fcompute", "fw_version",
                  "sdma_fw_version", "capability", "local_mem_size")
DISPLAY = "0x03"  # PCI classes of graphics; 0x12 are accelerators
ACCELERATOR = "0x12"
AMD = "0x1002"
KERNELS = Path(__file__).resolve().parents[2] / "cmake/rbee_kernels.cmake"


@dataclass
class Card:
    device: str  # rocm:0, cuda:0 or metal:0
    targets: list  # targets of compiled kernels, e.g. gfx1100
    problems: list = field(default_factory=list)  # sentences: each problem, and what to do
    left_out: list = field(default_factory=list)  # sentences: other cards, which have no kernels
    lacking: list = field(default_factory=list)  # sentences: what a build needs and is not here

    @property
    def kind(self):
        return self.device.split(":")[0]


def read(path, default=""):
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return default


def gfx_name(version):
    """110000 is gfx1100, 90010 gfx90a: two digits for the minor version and two for the stepping."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def kfd_nodes(root="/sys/class/kfd/kfd/topology/nodes"):
    """Properties of each node by its number, the processor's too."""
    nodes = {}
    for folder in sorted(glob.glob(f"{root}/*"), key=lambda path: int(os.path.basename(path))):
        lines = (line.split() for line in read(f"{folder}/properties").splitlines())
        found = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
        nodes[int(os.path.basename(folder))] = {"name": read(f"{folder}/name"),
                                                **{key: found[key] for key in KFD_PROPERTIES if key in found}}
    return nodes


def known_targets(file=KERNELS):
    """AMD's targets that there are kernels for, as CMake has them."""
    return re.search(r"^set\(RBEE_AMD_TARGETS\s+([^)]*)\)", Path(file).read_text(), re.M).group(1).split()


def amd_targets(nodes):
    """Targets of the cards that there are kernels for, and of the other cards, each with its name in the kernel."""
    known, others = {}, {}
    for node in nodes.values():
        if version := node.get("gfx_target_version", 0):
            target = gfx_name(version)
            (known if target in known_targets() else others)[target] = node.get("name", "")
    return known, others


def has_pci_card(vendor):
    for folder in glob.glob("/sys/bus/pci/devices/*"):
        if read(f"{folder}/vendor") == vendor and read(f"{folder}/class").startswith((DISPLAY, ACCELERATOR)):
            return True
    return False


def group_of(path):
    gid = os.stat(path).st_gid
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def in_container():
    """The word for the kind of container, or nothing."""
    for mark, word in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if os.path.exists(mark):
            return word
    found = re.search(r"docker|containerd|kubepods|lxc|libpod", read("/proc/1/cgroup"))
    return found.group(0) if found else os.environ.get("container", "")


def closed(path):
    """The reason why the file does not open; nothing if it opens."""
    if not os.path.exists(path):
        return f"there is no {path}: " + ("start the container with --device /dev/kfd --device /dev/dri"
                                          if in_container() else "load the driver (sudo modprobe amdgpu)")
    if os.access(path, os.R_OK | os.W_OK):
        return ""
    group = group_of(path)
    if in_container():
        return f"this user may not open {path}: start the container with --group-add {os.stat(path).st_gid}"
    return f"this user may not open {path}, which the group {group} may: sudo usermod -aG {group} $USER, then log in again"


def amd_problems():
    paths = ["/dev/kfd", *sorted(glob.glob("/dev/dri/renderD*"))]
    problems = [closed(path) for path in paths]
    if len(paths) == 1:
        problems.append("there is no /dev/dri/renderD*" +
                        (": start the container with --device /dev/dri" if in_container() else ""))
    return [problem for problem in problems if problem]


def cuda_targets():
    """By nvidia-smi; 90a and PTX as docs/guide/gpus.md has them."""
    if not shutil.which("nvidia-smi"):
        return []
    try:
        printed = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], timeout=60,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    numbers = dict.fromkeys(int(word.replace(".", "")) for word in re.findall(r"\d+\.\d", printed))
    return ["90a" if number == 90 else "90-ptx" if number > 90 else str(number) for number in numbers]


def has_library(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


def amd_card(device, known, others):
    card = Card(device, list(known), amd_problems())
    if known:
        card.left_out = [f"{target} ({name or 'no name'}): this program has no kernels for it"
                         for target, name in others.items()]
    elif others:
        card.problems.append(f"this program has no kernels for {', '.join(others)}; it has them for "
                             f"{', '.join(known_targets())}. Use the CPU: rbee --device cpu")
    else:
        card.problems.append("the kernel's amdgpu driver knows no card that computes (/sys/class/kfd)")
    return card


def mac_problems():
    """Of this machine as one whose GPU Metal reaches: macOS 13 or later on a processor of Apple's."""
    if platform.system() != "Darwin":
        return ["this is no Mac"]
    version, machine = platform.mac_ver()[0], platform.machine()
    problems = [] if machine == "arm64" else [f"this Mac's processor is {machine}: M1 or later is needed"]
    if int(version.split(".")[0] or 0) < 13:
        problems.append(f"this is macOS {version}: 13 or later is needed")
    return problems


def find_card(wanted=""):
    """The first card, or that of the device `wanted`. With problems where there is none."""
    if wanted.startswith("metal:") or (not wanted and platform.system() == "Darwin"):
        return Card(wanted or "metal:0", [], mac_problems())
    known, others = amd_targets(kfd_nodes())
    kind = wanted.split(":")[0]
    nvidia = kind == "cuda" or shutil.which("nvidia-smi") or has_library("libcuda.so.1")
    amd = known or (not nvidia if others else has_pci_card(AMD))
    if kind == "rocm" or (not kind and amd):
        return amd_card(wanted or "rocm:0", known, others)
    if nvidia:
        found = cuda_targets()
        return Card(wanted or "cuda:0", found, [] if found else ["nvidia-smi names no card"])
    return Card("", [], ["no card was found: no AMD card on the PCI bus or in /sys/class/kfd, no nvidia-smi, no "
                         "libcuda.so.1; --device rocm:0 goes on all the same"])
