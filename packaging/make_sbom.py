#!/usr/bin/env python3
"""Writes what a portable program is made of, as SPDX 2.3, and with --notices the licences of it all.
Usage: make_sbom.py BUILD_FOLDER PROGRAM VERSION COMMIT OUT.spdx.json [--notices FILE]

The libraries are those of the link's command line; dpkg says which package each is of, and which headers are
whole libraries the list below says. SOURCE_DATE_EPOCH is the date."""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

# Their code is in the program, and no library of theirs on the command line.
HEADERS = ("libboost1.81-dev", "nlohmann-json3-dev", "libcli11-dev", "libspdlog-dev", "libfmt-dev", "libjs-markdown-it",
           "libjs-highlight.js")
# SPDX's names of the licences in the packages' copyright files.
LICENCES = {
    "boost1.81": "BSL-1.0", "nlohmann-json3": "MIT", "cli11": "BSD-3-Clause", "spdlog": "MIT", "fmtlib": "MIT",
    "ruby-rails-assets-markdown-it": "MIT", "highlight.js": "BSD-3-Clause", "curl": "curl", "openssl": "Apache-2.0",
    "pcre2": "BSD-3-Clause", "icu": "ICU", "libpng1.6": "libpng-2.0", "libjpeg-turbo": "IJG AND BSD-3-Clause AND Zlib",
    "libwebp": "BSD-3-Clause", "giflib": "MIT", "libzstd": "BSD-3-Clause", "zlib": "Zlib",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
PURL = "pkg:deb/debian/{source}@{version}?arch=source&distro=bookworm"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def packages_of(build):
    """Debian's binary packages whose files the link takes."""
    link = output("ninja", "-C", build, "-t", "commands", "bin/rbee").splitlines()[-1]
    found = set(HEADERS)
    for path in re.findall(r"\S+\.a\b", link):
        if os.path.basename(path) == "libcurl.a":  # of build_curl.sh
            found.add("libcurl4-openssl-dev")
        elif not os.path.basename(path).startswith("librbee_"):
            path = os.path.realpath(path)
            names = [path, path.removeprefix("/usr")]  # where /lib is a link to /usr/lib
            owners = (subprocess.run(["dpkg", "-S", name], capture_output=True, text=True) for name in names)
            line = next((done.stdout for done in owners if done.returncode == 0), None)
            if line is None:
                sys.exit(f"{path} is of no Debian package")
            found.add(line.split(":")[0])
    return sorted(found)


def zig_of(build):
    """The folder of zig, and its version."""
    folder = next(pathlib.Path(build).glob("tools/lib/python*/site-packages/ziglang"))
    return folder, next(folder.parent.glob("ziglang-*.dist-info")).name.split("-")[1].removesuffix(".dist")


def sources(names):
    """Source package -> its version and one of its binary packages."""
    found = {}
    for name in names:
        source, version = output("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n", name).split()[:2]
        found.setdefault(source, (version, name))
    return found


def entry(name, version, licence, **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence,
            "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def document(found, zig, program, version, commit):
    date = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    digest = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
    own = entry("rbee", version, "Apache-2.0 OR MIT", sourceInfo=f"commit {commit}",
                checksums=[{"algorithm": "SHA256", "checksumValue": digest}], primaryPackagePurpose="APPLICATION")
    parts = [entry(source, of[0], LICENCES[source], externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
         "referenceLocator": PURL.format(source=source, version=of[0])}]) for source, of in sorted(found.items())]
    # Start files of glibc, and functions of zig's own.
    parts.append(entry("ziglang", zig, "MIT AND LGPL-2.1-or-later", externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:pypi/ziglang@{zig}"}]))
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": own["SPDXID"],
                  "relationshipType": "DESCRIBES"}]
    relations += [{"spdxElementId": own["SPDXID"], "relatedSpdxElement": part["SPDXID"],
                   "relationshipType": "STATIC_LINK"} for part in parts]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"rbee-{version}", "documentNamespace": f"https://rbee.invalid/spdx/{version}/{digest}",
            "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Tool: rbee packaging/make_sbom.py"]},
            "packages": [own, *parts], "relationships": relations}


def notices(found, zig_folder, zig):
    parts = [f"==== zig {zig}\n\n{(zig_folder / 'LICENSE').read_text()}\n"]
    for source, (version, name) in sorted(found.items()):
        text = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text(errors="replace")
        parts.append(f"==== {source} {version}\n\n{text.strip()}\n")
    return "\n".join(parts)


def main():
    build, program, version, commit, out = sys.argv[1:6]
    found = sources(packages_of(build))
    zig_folder, zig = zig_of(build)
    pathlib.Path(out).write_text(json.dumps(document(found, zig, program, version, commit), indent=1) + "\n")
    if sys.argv[6:7] == ["--notices"]:
        pathlib.Path(sys.argv[7]).write_text(notices(found, zig_folder, zig))


if __name__ == "__main__":
    main()
