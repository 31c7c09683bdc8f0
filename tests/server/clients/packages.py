#!/usr/bin/env python3
"""Makes the Debian packages of small programs in the place of the real ones and looks into them.
Usage: packages.py REPOSITORY

Ends with status 77 and a line that says so where dpkg-deb or dpkg-shlibdeps is missing; without
systemd-analyze the units are read, but not verified."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = {"llm-worker-rbee-cpu": "llm-worker-rbee-cpu@.service",
            "sd-worker-cuda": "sd-worker-cuda@.service", "rbee": "rbee-serve.service"}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def make(repository, folder):
    programs = folder / "build" / "bin"
    programs.mkdir(parents=True)
    for name in PROGRAMS:  # any program with libraries will do
        shutil.copy(shutil.which("true"), programs / name)
    run("bash", repository / "packaging" / "make_deb.sh", folder / "build", folder / "out",
        env=os.environ | {"SOURCE_DATE_EPOCH": "0"})


def field(package, name):
    return run("dpkg-deb", "--field", package, name).strip()


def check_package(package, name, unit, folder):
    assert field(package, "Package") == name
    assert "libc6" in field(package, "Depends") and "passwd" in field(package, "Depends")
    recommended = field(package, "Recommends").split(", ")
    assert "ca-certificates" in recommended, recommended
    assert ("llm-worker-rbee-cpu" in recommended) == (name == "rbee"), recommended
    lines = run("dpkg-deb", "--contents", package).splitlines()
    owners = {line.split()[1] for line in lines}
    assert owners == {"root/root"}, owners
    files = {line.split()[5]: line.split()[0] for line in lines}
    assert files[f"./usr/bin/{name}"] == "-rwxr-xr-x", files
    assert files[f"./lib/systemd/system/{unit}"] == "-rw-r--r--", files
    assert any(path.startswith(f"./usr/share/doc/{name}/") for path in files), files
    there = folder / name
    run("dpkg-deb", "--raw-extract", package, there)
    for script in ("postinst", "prerm", "postrm"):
        path = there / "DEBIAN" / script
        assert os.access(path, os.X_OK), script
        run("sh", "-n", path)
        assert name.split("-rbee")[0] in path.read_text() and "@" not in path.read_text().replace(
            "@*", ""), path.read_text()
    return there / "lib" / "systemd" / "system" / unit


def check_unit(unit, name):
    text = unit.read_text()
    start = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert len(start) == 1 and start[0].startswith(f"ExecStart=/usr/bin/{name} "), start
    # A private /dev hides devices from units that need none.
    assert ("PrivateDevices=yes" in text) == name.endswith("-cpu"), text
    # rbee serve stops its workers itself.
    assert "KillMode=mixed" in text
    for word in ("@about@", "@command@", "@environment@", "@device@", "@program@", "@units@"):
        assert word not in text, word


def verify(units, folder):
    """By systemd itself, in a tree where the programs are."""
    if shutil.which("systemd-analyze") is None:
        print("SKIP: no systemd-analyze: the units are not verified")
        return
    for unit in units:
        text = unit.read_text().replace("/usr/bin/" + unit.name.split("@")[0].split("-serve")[0],
                                        shutil.which("true"))
        # An instance, since templates are not verified.
        copy = folder / unit.name.replace("@.", "@one.")
        copy.write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True,
                              text=True, check=False)
        # systemd only prints a line for an unknown setting.
        findings = [line for line in done.stderr.splitlines() if copy.name in line]
        assert done.returncode == 0 and not findings, done.stderr


def main():
    repository = pathlib.Path(sys.argv[1]).resolve()
    for tool in ("dpkg-deb", "dpkg-shlibdeps", "strip"):
        if shutil.which(tool) is None:
            print(f"SKIP: no {tool}")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(repository, folder)
        packages = sorted((folder / "out").iterdir())
        assert len(packages) == len(PROGRAMS), packages
        units = []
        for package in packages:
            program = package.name.split("_")[0]
            unit = check_package(package, program, PROGRAMS[program], folder)
            check_unit(unit, program)
            units.append(unit)
        verify(units, folder)
    print("ok")


if __name__ == "__main__":
    main()
