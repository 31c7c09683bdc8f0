#!/usr/bin/env bash
# Makes what Homebrew builds rbee from: an archive of this commit with the chat page's two libraries from Debian's
# packages, and the formula that names it. On Debian 12, after tools/install_deps.sh build. Copy both to the Mac, into
# one folder. Usage: make_archive.sh FOLDER [FOLDER-ON-THE-MAC]
set -euo pipefail
[ $# -ge 1 ] && [ "$1" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
there=${2:-$out}
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^project(rbee VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=rbee-$version
git archive --prefix="$name/" HEAD | tar -x -C "$work"
for package in markdown-it highlight.js; do
  mkdir -p "$work/$name/debian/share"/{javascript,"doc/libjs-$package"}
  cp -rL "/usr/share/javascript/$package" "$work/$name/debian/share/javascript"
  cp -L "/usr/share/doc/libjs-$package/copyright" "$work/$name/debian/share/doc/libjs-$package"
done
archive=$name.tar.gz
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -c "$name" |
  gzip -9n >"$out/$archive"
sum=$(sha256sum "$out/$archive" | cut -d' ' -f1)
sed -e "s|@ARCHIVE@|$there/$archive|; s|@SHA256@|$sum|; s|@VERSION@|$version|" packaging/homebrew/rbee.rb >"$out/rbee.rb"
echo "$out/$archive $out/rbee.rb"
