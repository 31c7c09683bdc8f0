#!/usr/bin/env python3
"""From nothing to an answer on a bare Debian 12, as commands with their times. Usage (as root): film_first_minute.py WHEEL MODEL.gguf
[FOLDER]. Debian's debootstrap makes the system (--variant=minbase) in FOLDER, which stays, or in one that is removed; an existing
FOLDER is taken as it is. The test hub (tests/hub) serves MODEL.gguf on this machine."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from check_packages import mounted
from hub_server import Repo, TestHub

ENVIRONMENT = {"PATH": "/root/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
MODEL = "hf:org/chat-GGUF"


class Film:
    """Commands in the system, with the time that each took."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = dict(ENVIRONMENT, **environment)

    def run(self, command, shown=3):
        begun = time.monotonic()
        done = subprocess.run(["chroot", self.folder, "sh", "-c", command], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        took = time.monotonic() - begun
        print(f"{took:6.1f} s  $ {command}", flush=True)
        if done.returncode != 0:
            sys.exit(f"status {done.returncode}\n{done.stdout}")
        for line in done.stdout.strip().splitlines()[-shown:] if shown else []:
            print(f"            {line[:120]}", flush=True)
        return took


def load():
    return f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors"


def film(folder, wheel, model):
    if not (folder / "usr/bin").is_dir():
        begun = time.monotonic()
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
        print(f"{time.monotonic() - begun:6.1f} s  # debootstrap --variant=minbase bookworm")
    shutil.copy(wheel, folder / "root")
    for left in ("root/venv", "root/.cache"):
        shutil.rmtree(folder / left, ignore_errors=True)
    with mounted(folder), TestHub({"org/chat-GGUF": Repo({model.name: model.read_bytes()})}) as hub:
        made = Film(folder, {"HF_ENDPOINT": hub.endpoint})
        # What Debian's Python needs for any package of PyPI.
        made.run("apt-get update -q && apt-get install -y -q --no-install-recommends python3-venv ca-certificates", shown=0)
        made.run("python3 -m venv /root/venv", shown=0)
        print(f"          # the minute begins; {load()}")
        total = made.run(f"pip install -q --no-index /root/{wheel.name}", shown=0)
        total += made.run(f"rbee run -m {MODEL} --temperature 0 -n 24 'Why is the sky blue?'", shown=6)
        print(f"{total:6.1f} s  # from pip install to the answer; {load()}")
        made.run(f"rbee run -m {MODEL} --temperature 0 -n 24 'Why is the sky blue?'")  # the model is here
        made.run("rbee list")


def main():
    wheel, model, *folder = map(pathlib.Path, sys.argv[1:])
    print(f"# {wheel.name} (SHA-256 {hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]}), {model.name} "
          f"({model.stat().st_size / 1e6:.0f} MB)")
    with contextlib.ExitStack() as stack:
        film(folder[0] if folder else pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())), wheel, model)


if __name__ == "__main__":
    main()
