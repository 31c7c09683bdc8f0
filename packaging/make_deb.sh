#!/usr/bin/env bash
# Makes the Debian package of a build folder's rbee: the program, its workers' links, and units.
# Usage: make_deb.sh BUILD_FOLDER OUT_FOLDER [NOTICES]: the licences of libraries, for a program that has them inside
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:?the build folder, e.g. build/cpu}")
mkdir -p "${2:?the folder for the packages}"
out=$(realpath "$2")
scripts=(/usr/share/doc/libjs-markdown-it/copyright /usr/share/doc/libjs-highlight.js/copyright)
inside=no
notices=("${scripts[@]}")
[ $# -lt 3 ] || { inside=yes && notices=("$3"); }

[ -x "$build/bin/rbee" ] || { echo "$build/bin holds no rbee" >&2; exit 1; }
version=$(sed -n 's/^project(rbee VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
architecture=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
root=$work/rbee
doc=$root/usr/share/doc/rbee
trap 'rm -rf "$work"' EXIT

# What a unit may reach of the machine, by the kind of device in its name.
device_lines() {
  case $1 in
    *-cpu@.service) printf 'PrivateDevices=yes\nMemoryDenyWriteExecute=yes\n' ;;
    # Drivers map their devices, and compile code.
    *) printf 'SupplementaryGroups=video render\n' ;;
  esac
}

# Names and versions of the packages whose libraries a program needs.
depends() {
  if [ "$inside" = yes ]; then  # dpkg-shlibdeps would ask for the glibc that this machine has its functions from
    echo "libc6 (>= $(objdump -T "$1" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -1)), libgcc-s1"
    return
  fi
  mkdir -p "$work/shlibs/debian"
  printf 'Source: rbee\n\nPackage: rbee\nArchitecture: any\n' >"$work/shlibs/debian/control"
  (cd "$work/shlibs" && dpkg-shlibdeps -O "$1" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

# One unit: its file, use, about, environment, command.
install_unit() {
  local unit=$1 use=$2 about=$3 environment=$4 command=$5
  mkdir -p "$root/lib/systemd/system"
  device_lines "$unit" >"$work/device"
  sed -e "s|@use@|$use|; s|@about@|$about|; s|@environment@|$environment|; s|@command@|$command|" \
    -e "/@device@/{r $work/device" -e 'd}' packaging/deb/unit.service.in >"$root/lib/systemd/system/$unit"
}

# Arguments: patterns for systemctl, of all units that may run.
install_scripts() {
  mkdir -p "$root/DEBIAN"
  for script in postinst prerm postrm; do
    sed "s/@units@/${*@Q}/g" "packaging/deb/$script.in" >"$root/DEBIAN/$script"
    chmod 755 "$root/DEBIAN/$script"
  done
}

install_documents() {
  mkdir -p "$doc"
  {
    cat LICENSE
    printf '\n---- LICENSE-APACHE\n\n'
    cat LICENSE-APACHE
    printf '\n---- LICENSE-MIT\n\n'
    cat LICENSE-MIT
    printf '\n---- THIRD_PARTY.md\n\n'
    cat THIRD_PARTY.md
  } >"$doc/copyright"
  cat "${notices[@]}" >"$doc/third-party-licences"
  install -m 644 packaging/deb/example.env packaging/deb/serve.json packaging/deb/serve.env \
    docs/reference/http-api.md docs/reference/worker-flags.md docs/reference/serve.md \
    docs/guide/command-line.md "$doc"
}

# In KiB, as dpkg-gencontrol counts: the same on every file system.
installed_size() {
  find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '1\n' |
    awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }'
}

# The workers were packages of their own, whose place this one takes: $1, comma-separated.
# Certificates: for collectors and hives of https.
make_package() {
  cat >"$root/DEBIAN/control" <<END
Package: rbee
Version: $version
Architecture: $architecture
Maintainer: rbee.cpp <rbee@localhost>
Section: science
Priority: optional
Installed-Size: $(installed_size)
Depends: passwd, $(depends "$root/usr/bin/rbee")
Recommends: ca-certificates
Suggests: libzmq5
Provides: $1
Conflicts: $1
Replaces: $1
Description: native inference workers, and several models behind one port
 One program: the command line, the workers (each loads one model on one
 device and answers over HTTP) and rbee serve, which starts workers itself.
 systemctl enable --now rbee-serve runs the models of /etc/rbee/serve.json;
 systemctl enable --now WORKER@NAME one worker, after /etc/rbee/NAME.env is
 written. Workers: $1.
END
  chmod -R u=rwX,go=rX "$root"
  dpkg-deb -Zgzip --root-owner-group --build "$root" "$out/rbee_${version}_$architecture.deb" >/dev/null
  echo "$out/rbee_${version}_$architecture.deb"
}

install -D -m 755 "$build/bin/rbee" "$root/usr/bin/rbee"
strip "$root/usr/bin/rbee"
install_documents
install_unit rbee-serve.service \
  "Models are those of /etc/rbee/serve.json; /etc/rbee/serve.env may set RBEE_ARGS." \
  "rbee serve, models behind one port" -/etc/rbee/serve.env \
  "/usr/bin/rbee serve --config /etc/rbee/serve.json"
units=(rbee-serve.service)
workers=""
for path in "$build"/bin/llm-worker-rbee-* "$build"/bin/sd-worker-*; do
  [ -L "$path" ] || continue
  worker=$(basename "$path")
  cp -P "$path" "$root/usr/bin/$worker"
  install_unit "$worker@.service" \
    "One instance for each model: /etc/rbee/NAME.env sets RBEE_ARGS, then systemctl enable --now $worker@NAME" \
    "rbee worker %i ($worker)" /etc/rbee/%i.env "/usr/bin/$worker --worker-id %i"
  units+=("$worker@*.service")
  workers+=${workers:+, }$worker
done
install_scripts "${units[@]}"
make_package "$workers"
