"""`rbee` and `opcheck` as programs whose AMD device is emulated, and tools/first_card.sh over them."""
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from amd_emulator.sweep import SCRIPT

PROGRAMS = {"opcheck": [], "rbee": ["--rbee"]}


def write(folder, tinygrad, arch, build):
    """Puts the programs into the folder."""
    for name, flags in PROGRAMS.items():
        command = [sys.executable, str(SCRIPT), "--tinygrad", str(tinygrad), "--arch", arch, "--build", str(build),
                   *flags, "--"]
        file = Path(folder) / name
        file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        file.chmod(0o755)


def first_card(tinygrad, arch, build, words):
    """Runs tools/first_card.sh with more arguments. Returns its exit status."""
    with tempfile.TemporaryDirectory(prefix="emulated-") as folder:
        write(folder, tinygrad, arch, build)
        return subprocess.run([str(SCRIPT.parent / "first_card.sh"), "--device", "rocm:0", "--programs", folder,
                               *words]).returncode
