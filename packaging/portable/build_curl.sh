#!/usr/bin/env bash
# Builds Debian's libcurl as a static library with HTTP and TLS alone: Debian's own needs Kerberos and LDAP, which
# have no static libraries. Usage: build_curl.sh FOLDER; FOLDER gets include/, lib/libcurl.a, version, copyright.
set -euo pipefail
mkdir -p "${1:?the folder}"
out=$(realpath "$1")
[ -f "$out/version" ] && exit 0
work=$out/source
rm -rf "$work"
mkdir -p "$work/lists/partial"
cd "$work"

# The sources of the same archives that this machine's packages come from.
apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/sources.sources" -o Dir::Etc::sourceparts=/nonexistent
     -o Dir::State::lists="$work/lists" -o APT::Sandbox::User=root)
if [ -f /etc/apt/sources.list.d/debian.sources ]; then
  sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >sources.sources
else
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >sources.list
  apt[2]=Dir::Etc::sourcelist="$work/sources.list"
fi
"${apt[@]}" update
"${apt[@]}" source "curl=$(dpkg-query -W -f '${source:Version}' libcurl4-openssl-dev)"

cd curl-*/
./configure --quiet --prefix="$out" --disable-shared --enable-static --with-openssl --with-zlib \
  --disable-dict --disable-file --disable-ftp --disable-gopher --disable-imap --disable-ldap --disable-ldaps \
  --disable-mqtt --disable-pop3 --disable-rtsp --disable-smb --disable-smtp --disable-telnet --disable-tftp \
  --disable-manual --disable-dependency-tracking --without-brotli --without-gssapi --without-libidn2 \
  --without-libpsl --without-librtmp --without-libssh2 --without-nghttp2 --without-zstd \
  --without-ca-bundle --without-ca-path CFLAGS="-O2 -fPIC -ffile-prefix-map=$PWD=curl" >/dev/null
make -s -j"$(nproc)" -C lib >/dev/null
make -s -C lib install >/dev/null
make -s -C include install >/dev/null
cp debian/copyright "$out/copyright"
dpkg-parsechangelog -S Version >"$out/version"
cd "$out"
rm -rf "$work"
