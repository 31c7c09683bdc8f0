#!/usr/bin/env python3
"""Installs the packages of make_packages.sh on bare systems and uses them there: the .deb, the archive and the wheel; a chat,
a picture, a model by name from the test hub. Usage (as root): check_packages.py FOLDER MODEL.gguf SYSTEM...

FOLDER has the packages, MODEL.gguf is for chats. A SYSTEM is one that mmdebstrap (Debian's: bullseye, trixie, ...) or debootstrap
(Ubuntu's: jammy, noble, ...) makes and this script removes, or the folder of one with python3-venv, which stays. UNSIGNED=1
takes Ubuntu's packages as they come, where this machine has none of its keys."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "hub"))
from hub_server import Repo, TestHub  # noqa: E402

UBUNTU = ("focal", "jammy", "noble", "resolute")
KEYS = pathlib.Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
QUESTION = ["--temperature", "0", "-n", "12", "Why is the sky blue?"]
PICTURE = ["imagine", "-m", "/root/tiny-emoji", "--seed", "1", "a dog face on a blue background", "-o", "/root/picture.png"]
SERVER = """
import json, sys, urllib.request, rbee
with rbee.Server("/root/model.gguf", name="chat") as server:
    body = {"model": "chat", "temperature": 0, "max_tokens": 12,
            "messages": [{"role": "user", "content": "Why is the sky blue?"}]}
    asked = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
    print(json.load(urllib.request.urlopen(asked, timeout=300))["choices"][0]["message"]["content"])
"""


def make_system(name, folder):
    packages = "--include=python3-venv,ca-certificates,passwd"  # what the .deb and pip ask for
    if name not in UBUNTU:
        subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--dpkgopt=force-unsafe-io", packages, name,
                        folder], check=True)
        return
    if KEYS.exists():
        keys = f"--keyring={KEYS}"
    elif os.environ.get("UNSIGNED") == "1":
        keys = "--no-check-gpg"
    else:
        sys.exit(f"{name}: {KEYS} is missing, by which its packages are signed (UNSIGNED=1 goes without)")
    # python3-venv is of universe in some; an old debootstrap does not know new names, whose script is this.
    subprocess.run(["debootstrap", "--variant=minbase", keys, "--components=main,universe", packages, name, folder, "",
                    "/usr/share/debootstrap/scripts/gutsy"], check=True, stdout=subprocess.DEVNULL)


class System:
    def __init__(self, name, folder, endpoint):
        self.name = name
        self.folder = folder
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                            "DEBIAN_FRONTEND": "noninteractive", "HF_ENDPOINT": endpoint}

    def run(self, *command):
        done = subprocess.run(["chroot", self.folder, *command], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def report(self, check, text):
        print(f"{self.name:10} {check:12} {' '.join(text.split())}", flush=True)

    def use(self, kind, rbee):
        """What every kind of installation must do."""
        self.report(kind, self.run(rbee, "--version").splitlines()[0])
        self.report(kind, self.run(rbee, "doctor").splitlines()[-1])
        self.report(kind, self.run(rbee, "run", "-m", "/root/model.gguf", *QUESTION).split("[prompt")[0])
        self.run(rbee, *PICTURE)
        picture = (self.folder / "root/picture.png").read_bytes()
        self.report(kind, "picture " + hashlib.sha256(picture).hexdigest()[:16])

    def check(self, packages):
        glibc = self.run("ldd", "--version").splitlines()[0]
        self.report("system", glibc)
        deb, archive, wheel = (next(packages.glob(f"rbee{pattern}")) for pattern in ("_*.deb", "-*.tar.zst", "-*.whl"))
        for path in (deb, wheel):
            shutil.copy(path, self.folder / "root")
        # bullseye's tar has no zstd beside it.
        subprocess.run(["tar", "--zstd", "-xf", archive, "-C", self.folder / "opt"], check=True)
        unpacked = next((self.folder / "opt").glob("rbee-*")).name
        self.use("archive", f"/opt/{unpacked}/bin/rbee")
        self.report("archive", self.run(f"/opt/{unpacked}/bin/llm-worker-rbee-cpu", "--version"))

        self.run("apt-get", "install", "-y", "--no-install-recommends", f"/root/{deb.name}")
        self.use("deb", "rbee")
        self.run("apt-get", "purge", "-y", "rbee")

        self.run("python3", "-m", "venv", "/root/venv")
        self.run("/root/venv/bin/pip", "install", "-q", "--no-index", f"/root/{wheel.name}")
        self.use("wheel", "/root/venv/bin/rbee")
        self.report("wheel, hub", self.run("/root/venv/bin/rbee", "run", "-m", "hf:org/chat-GGUF", *QUESTION).split("[prompt")[0])
        self.report("rbee.Server", self.run("/root/venv/bin/python", "-c", SERVER))


@contextlib.contextmanager
def mounted(folder):
    subprocess.run(["mount", "-t", "proc", "proc", folder / "proc"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder / "proc"], check=True)


def check(name, folder, packages, model, hub):
    shutil.copy(model, folder / "root/model.gguf")
    shutil.copytree(ROOT / "models/tiny-emoji", folder / "root/tiny-emoji", dirs_exist_ok=True)
    with mounted(folder):
        System(name, folder, hub.endpoint).check(packages)
    print(f"{name:10} ok", flush=True)


def main():
    packages, model, *names = sys.argv[1:]
    packages, model = pathlib.Path(packages), pathlib.Path(model)
    repos = {"org/chat-GGUF": Repo({"chat-Q4_1.gguf": model.read_bytes()})}
    with tempfile.TemporaryDirectory() as work, TestHub(repos) as hub:
        for name in names:
            folder = pathlib.Path(name)
            if "/" in name:
                check(folder.name, folder, packages, model, hub)
                continue
            folder = pathlib.Path(work) / name
            make_system(name, folder)
            check(name, folder, packages, model, hub)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
