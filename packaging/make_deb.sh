#!/usr/bin/env bash
# Makes a Debian package of each worker that a build folder holds, and of rbee where it is there.
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

# The unit, and the scripts that know it, of: device, use, about, environment, command, unit (its
# file), units (all of it that may run, for systemctl).
install_unit() {
  local root=$1
  mkdir -p "$root/lib/systemd/system" "$root/DEBIAN"
  device_lines "$device" >"$work/device"
  sed -e "s|@use@|$use|; s|@about@|$about|; s|@environment@|$environment|; s|@command@|$command|" \
    -e "/@device@/{r $work/device" -e 'd}' packaging/deb/unit.service.in >"$root/lib/systemd/system/$unit"
  for script in postinst prerm postrm; do
    sed "s/@units@/$units/g" "packaging/deb/$script.in" >"$root/DEBIAN/$script"
    chmod 755 "$root/DEBIAN/$script"
  done
}

# Standard input: what the package's description says. Certificates: for collectors and hives of
# https. recommends: more than those, after a comma.
finish_package() {
  local package=$1 root=$2 recommends=$3
  cat >"$work/description"
  cat >"$root/DEBIAN/control" <<END
Package: $package
Version: $version
Architecture: $architecture
Maintainer: rbee.cpp <rbee@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: passwd, $(depends "$root/usr/bin/$package")
Recommends: ca-certificates$recommends
$(cat "$work/description")
END
  chmod -R u=rwX,go=rX "$root"
  dpkg-deb -Zgzip --root-owner-group --build "$root" "$out/${package}_${version}_$architecture.deb" >/dev/null
  echo "$out/${package}_${version}_$architecture.deb"
}

install_program() {
  local program=$1 root=$2
  install -D -m 755 "$build/bin/$program" "$root/usr/bin/$program"
  strip "$root/usr/bin/$program"
  mkdir -p "$root/usr/share/doc/$program"
  {
    cat LICENSE
    printf '\n---- LICENSE-APACHE\n\n'
    cat LICENSE-APACHE
    printf '\n---- LICENSE-MIT\n\n'
    cat LICENSE-MIT
    printf '\n---- THIRD_PARTY.md\n\n'
    cat THIRD_PARTY.md
  } >"$root/usr/share/doc/$program/copyright"
}

worker_package() {
  local program=$1 root=$work/$1
  install_program "$program" "$root"
  device=$program about="rbee worker %i ($program)" environment=/etc/rbee/%i.env
  command="/usr/bin/$program --worker-id %i" unit="$program@.service" units="$program@*.service"
  use="One instance for each model: /etc/rbee/NAME.env sets RBEE_ARGS, then systemctl enable --now $program@NAME"
  install_unit "$root"
  install -m 644 packaging/deb/example.env docs/reference/http-api.md \
    docs/reference/worker-flags.md "$root/usr/share/doc/$program"
  cat /usr/share/doc/libjs-markdown-it/copyright /usr/share/doc/libjs-highlight.js/copyright \
    >"$root/usr/share/doc/$program/third-party-licences"
  finish_package "$program" "$root" "" <<END
Description: native inference worker of rbee
 Loads one model on one device and answers over HTTP. Start an instance with
 systemctl enable --now $program@NAME after /etc/rbee/NAME.env is written.
END
}

# The command line, and rbee serve over the workers of other packages.
serve_package() {
  local root=$work/rbee
  install_program rbee "$root"
  device=serve about="rbee serve, models behind one port" environment=-/etc/rbee/serve.env
  command="/usr/bin/rbee serve --config /etc/rbee/serve.json"
  unit=rbee-serve.service units=rbee-serve.service
  use="Models are those of /etc/rbee/serve.json; /etc/rbee/serve.env may set RBEE_ARGS."
  install_unit "$root"
  install -m 644 packaging/deb/serve.json packaging/deb/serve.env docs/reference/serve.md \
    docs/guide/command-line.md "$root/usr/share/doc/rbee"
  finish_package rbee "$root" ", llm-worker-rbee-cpu" <<END
Description: command line of rbee, and several models behind one port
 Start rbee serve with systemctl enable --now rbee-serve after
 /etc/rbee/serve.json is written; its models need the packages of their
 workers.
END
}

found=0
for path in "$build"/bin/llm-worker-rbee-* "$build"/bin/sd-worker-*; do
  [ -x "$path" ] || continue
  worker_package "$(basename "$path")"
  found=1
done
[ $found -eq 1 ] || { echo "$build/bin holds no worker" >&2; exit 1; }
[ ! -x "$build/bin/rbee" ] || serve_package
