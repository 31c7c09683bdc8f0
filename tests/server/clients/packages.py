#!/usr/bin/env python3
"""Makes the Debian package of a small program in the place of rbee and looks into it.
Usage: packages.py REPOSITORY

Ends with status 77 and a line that says so where dpkg-deb or dpkg-shlibdeps is missing; without
systemd-analyze the units are read, but not verified."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WORKERS = ("llm-worker-rbee-cpu", "sd-worker-cuda")
UNITS = {"rbee-serve.service": "/usr/bin/rbee serve ",
         **{f"{worker}@.service": f"/usr/bin/{worker} --worker-id %i " for worker in WORKERS}}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def make(repository, folder):
    programs = folder / "build" / "bin"
    programs.mkdir(parents=True)
    shutil.copy(shutil.which("true"), programs / "rbee")  # any program with libraries will do
    for worker in WORKERS:
        (programs / worker).symlink_to("rbee")
    run("bash", repository / "packaging" / "make_deb.sh", folder / "build", folder / "out",
        env=os.environ | {"SOURCE_DATE_EPOCH": "0"})


def field(package, name):
    return run("dpkg-deb", "--field", package, name).strip()


def check_package(package, there):
    assert field(package, "Package") == "rbee"
    assert "libc6" in field(package, "Depends") and "passwd" in field(package, "Depends")
    assert field(package, "Recommends") == "ca-certificates"
    assert field(package, "Suggests") == "libzmq5"
    for relation in ("Provides", "Conflicts", "Replaces"):
        assert field(package, relation) == ", ".join(WORKERS), relation
    lines = run("dpkg-deb", "--contents", package).splitlines()
    owners = {line.split()[1] for line in lines}
    assert owners == {"root/root"}, owners
    files = {line.split()[5]: line.split()[0] for line in lines}
    assert files["./usr/bin/rbee"] == "-rwxr-xr-x", files
    for unit in UNITS:
        assert files[f"./lib/systemd/system/{unit}"] == "-rw-r--r--", files
    assert any(path.startswith("./usr/share/doc/rbee/") for path in files), files
    run("dpkg-deb", "--raw-extract", package, there)
    for worker in WORKERS:
        assert os.readlink(there / "usr" / "bin" / worker) == "rbee", worker
    for script in ("postinst", "prerm", "postrm"):
        path = there / "DEBIAN" / script
        assert os.access(path, os.X_OK), script
        run("sh", "-n", path)
        text = path.read_text()
        for unit in UNITS:
            assert f"'{unit.replace('@.', '@*.')}'" in text, text
        assert "@" not in text.replace("@*.", ""), text


def check_unit(unit):
    text = unit.read_text()
    start = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert len(start) == 1 and start[0].startswith(f"ExecStart={UNITS[unit.name]}"), start
    # A private /dev hides devices from units that need none.
    assert ("PrivateDevices=yes" in text) == ("-cpu@" in unit.name), text
    # rbee serve stops its workers itself.
    assert "KillMode=mixed" in text
    for word in ("@about@", "@command@", "@environment@", "@device@", "@use@", "@units@"):
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
        assert len(packages) == 1, packages
        check_package(packages[0], folder / "rbee")
        units = sorted((folder / "rbee" / "lib" / "systemd" / "system").iterdir())
        assert {unit.name for unit in units} == set(UNITS), units
        for unit in units:
            check_unit(unit)
        verify(units, folder)
    print("ok")


if __name__ == "__main__":
    main()
