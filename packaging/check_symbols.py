#!/usr/bin/env python3
"""Which systems have the symbol versions that a program needs of glibc and libgcc_s, by readelf. Usage: check_symbols.py PROGRAM
Prints a line for each system; status 1 if one lacks any."""

import re
import subprocess
import sys

# The newest versions of their libraries on x86-64: glibc's own number, and that of libgcc_s by the release of GCC
# (8 and 11 have no newer one than 7.0.0; 12, 13 and 14 added one each).
SYSTEMS = {"Red Hat 8, Alma 8, Rocky 8": ("2.28", "7.0.0"), "Red Hat 9, Alma 9, Rocky 9": ("2.34", "7.0.0"),
           "Red Hat 10, Alma 10, Rocky 10": ("2.39", "14.0.0"), "Debian 11": ("2.31", "7.0.0"), "Debian 12": ("2.36", "12.0.0"),
           "Ubuntu 22.04": ("2.35", "12.0.0")}
PREFIXES = ("GLIBC_", "GCC_")


def number(text):
    return tuple(int(part) for part in text.split("."))


def needs(program):
    """Names of versions, such as GLIBC_2.28; also those that are no numbers (GLIBC_ABI_DT_RELR)."""
    text = subprocess.run(["readelf", "-V", "-W", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted(set(re.findall(r"Name: (\S+)\s+Flags", text.partition("Version needs section")[2])))


def lacking(names, newest):
    """Those of the names that no library of these versions has."""
    out = []
    for name in names:
        limits = [limit for prefix, limit in zip(PREFIXES, newest) if name.startswith(prefix)]
        version = name.partition("_")[2]
        if not limits or not re.fullmatch(r"[\d.]+", version) or number(version) > number(limits[0]):
            out.append(name)
    return out


def main():
    names = needs(sys.argv[1])
    for prefix in PREFIXES:
        versions = [name for name in names if re.fullmatch(prefix + r"[\d.]+", name)]
        if versions:
            print(f"newest: {max(versions, key=lambda name: number(name.partition('_')[2]))}")
    bad = False
    for system, newest in SYSTEMS.items():
        missing = lacking(names, newest)
        bad = bad or bool(missing)
        print(f"{system}: {'lacks ' + ', '.join(missing) if missing else 'has all'}")
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())
