"""What a build needs, before it begins."""
import re
import shutil
import tempfile

import runner

INSTALL = "Debian 12: bash tools/install_deps.sh test"
INSTALL_ON_A_MAC = "docs/guide/apple.md#build-on-a-mac"
PROGRAMS = {"rocm": {"zstd": ["zstd"]}, "cuda": {"nvcc": ["nvcc", "/usr/local/cuda/bin/nvcc"]},
            "metal": {"zstd": ["zstd"]}}


def cmake_errors(text):
    """The messages of CMake's errors, one line each; a message is indented, or stands behind a colon."""
    found = re.findall(r"^CMake Error(?: at [^\n]*\n((?:(?:  [^\n]*)?(?:\n|\Z))+)|: ([^\n]*))", text, re.M)
    return [" ".join((indented or behind).split())[:300] for indented, behind in found]


def named_clang(cache):
    """The compiler that a build folder's cache names, as CMake's argument."""
    found = re.search(r"^RBEE_HIP_CLANG:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
    return [f"-DRBEE_HIP_CLANG={found[1]}"] if found else []


def no_hip_compiler(targets, root):
    """CMake's sentences if it finds no compiler and linker for AMD's `targets`."""
    with tempfile.TemporaryDirectory() as folder:
        done = runner.run(["cmake", f"-DRBEE_ROCM_ARCHS={';'.join(targets)}", f"-DPROJECT_BINARY_DIR={folder}",
                           *named_clang(root / "build/rocm/CMakeCache.txt"), "-P", str(root / "cmake/check_hip.cmake")], 120)
    return [] if done.ok else cmake_errors(done.text) or [done.text.strip() or done.reason()]


def missing_to_build(card, root):
    """Sentences, none if it can begin. Libraries that are missing are told by CMake itself."""
    wanted = {"cmake": ["cmake"], "ninja": ["ninja"], "g++": ["g++"], **PROGRAMS[card.kind]}
    lacking = [name for name, programs in wanted.items() if not any(shutil.which(p) for p in programs)]
    install = INSTALL_ON_A_MAC if card.kind == "metal" else INSTALL
    sentences = [f"to build: {', '.join(lacking)} ({install})"] if lacking else []
    if card.kind == "rocm" and "cmake" not in lacking:
        sentences += [f"to build: {error}" for error in no_hip_compiler(card.targets or ["gfx1100"], root)]
    return sentences
