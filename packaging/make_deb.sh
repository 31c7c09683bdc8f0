#!/usr/bin/env bash
# Makes a Debian package of each worker that a build folder holds.
# Usage: make_deb.sh BUILD_FOLDER OUT_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:?the build folder, e.g. build/cpu}")
mkdir -p "${2:?the folder for the packages}"
out=$(realpath "$2")

version=$(sed -n 's/^project(rbee VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
architecture=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What a worker may reach of the machine, by the kind of its device.
device_lines() {
  case $1 in
    *cpu) printf 'PrivateDevices=yes\nMemoryDenyWriteExecute=yes\n' ;;
    # Drivers map their devices, and compile code.
    *) printf 'SupplementaryGroups=video render\n' ;;
  esac
}

# Names and versions of the packages whose libraries a program needs.
depends() {
  mkdir -p "$work/shlibs/debian"
  printf 'Source: rbee\n\nPackage: rbee\nArchitecture: any\n' >"$work/shlibs/debian/control"
  (cd "$work/shlibs" && dpkg-shlibdeps -O "$1" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

make_package() {
  local program=$1 root=$work/$1
  install -D -m 755 "$build/bin/$program" "$root/usr/bin/$program"
  strip "$root/usr/bin/$program"
  mkdir -p "$root/lib/systemd/system" "$root/DEBIAN" "$root/usr/share/doc/$program"
  device_lines "$program" >"$work/device"
  sed -e "s/@program@/$program/g" -e "/@device@/{r $work/device" -e 'd}' packaging/deb/worker.service.in \
    >"$root/lib/systemd/system/$program@.service"
  for script in postinst prerm postrm; do
    sed "s/@program@/$program/g" "packaging/deb/$script.in" >"$root/DEBIAN/$script"
    chmod 755 "$root/DEBIAN/$script"
  done
  install -m 644 packaging/deb/example.env docs/reference/http-api.md \
    docs/reference/worker-flags.md "$root/usr/share/doc/$program"
  cat /usr/share/doc/libjs-markdown-it/copyright /usr/share/doc/libjs-highlight.js/copyright \
    >"$root/usr/share/doc/$program/third-party-licences"
  cat >"$root/DEBIAN/control" <<END
Package: $program
Version: $version
Architecture: $architecture
Maintainer: rbee.cpp <rbee@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: passwd, $(depends "$root/usr/bin/$program")
Description: native inference worker of rbee
 Loads one model on one device and answers over HTTP. Start an instance with
 systemctl enable --now $program@NAME after /etc/rbee/NAME.env is written.
END
  chmod -R u=rwX,go=rX "$root"
  dpkg-deb -Zgzip --root-owner-group --build "$root" "$out/${program}_${version}_$architecture.deb" >/dev/null
  echo "$out/${program}_${version}_$architecture.deb"
}

found=0
for path in "$build"/bin/llm-worker-rbee-* "$build"/bin/sd-worker-*; do
  [ -x "$path" ] || continue
  make_package "$(basename "$path")"
  found=1
done
[ $found -eq 1 ] || { echo "$build/bin holds no worker" >&2; exit 1; }
