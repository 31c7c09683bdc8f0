#!/usr/bin/env python3
"""Makes the wheel of a program: the Python module of packaging/python with the program inside.
Usage: make_wheel.py PROGRAM VERSION PLATFORM OUT_FOLDER [DOCUMENT...]; PLATFORM as in manylinux_2_28_x86_64.

The same input and SOURCE_DATE_EPOCH give the same bytes."""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
METADATA = """Metadata-Version: 2.1
Name: rbee
Version: {version}
Summary: Native inference workers for language models and pictures: one program, no dependencies
License: Apache-2.0 OR MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{description}"""
WHEEL = """Wheel-Version: 1.0
Generator: rbee
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""
ENTRY_POINTS = "[console_scripts]\nrbee = rbee.__main__:main\n"


def contents(program, version, platform, documents):
    """Path in the wheel -> bytes, in the order of the wheel."""
    files = {f"rbee/{path.name}": path.read_bytes() for path in sorted((HERE / "python" / "rbee").glob("*.py"))}
    files["rbee/bin/rbee"] = program.read_bytes()
    info = f"rbee-{version}.dist-info"
    for document in documents:
        files[f"{info}/licenses/{document.name}"] = document.read_bytes()
    description = (HERE / "python" / "README.md").read_text()
    files[f"{info}/METADATA"] = METADATA.format(version=version, description=description).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(platform=platform).encode()
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    record = f"{info}/RECORD"
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    return files


def main():
    program, version, platform, out, *documents = sys.argv[1:]
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # a zip begins in 1980
    wheel = pathlib.Path(out) / f"rbee-{version}-py3-none-{platform}.whl"
    files = contents(pathlib.Path(program), version, platform, [pathlib.Path(path) for path in documents])
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.create_system = 3
            entry.external_attr = (0o100755 if name == "rbee/bin/rbee" else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
    print(wheel)


if __name__ == "__main__":
    main()
