#!/bin/sh
# install-0.12.sh DEST: puts the Neovim of Debian's testing release, 0.12 or newer, into a folder.
#
# It needs Debian, apt and patchelf. The system's packages stay as they are: apt works with lists
# and a package state below DEST, and the packages are unpacked and not installed. DEST/nvim starts
# it.
set -eu

SUITE=forky
mkdir -p "$1"
dest=$(cd "$1" && pwd)
[ -x "$dest/nvim" ] && exec "$dest/nvim" --version >/dev/null

sources=/etc/apt/sources.list.d/debian.sources
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
for needed in "$sources" "$keyring"; do
  [ -e "$needed" ] || {
    echo "$needed is missing; Neovim 0.12 comes from Debian's own archive" >&2
    exit 1
  }
done
mirror=$(awk '/^URIs:/ { print $2; exit }' "$sources")

# This begins from scratch, whatever an earlier try has left.
apt=$dest/apt root=$dest/root
rm -rf "$apt" "$root"
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$root"
: > "$apt/status"
echo "deb [signed-by=$keyring] $mirror $SUITE main" > "$apt/sources.list"
own_apt() {
  apt-get -qq -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" \
    -o Dir::Cache="$apt/cache" -o Dir::Etc::sourcelist="$apt/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o APT::Sandbox::User= -o Acquire::Languages=none "$@"
}
own_apt update
own_apt install --yes --no-install-recommends --download-only neovim >/dev/null
for package in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
rm -rf "$apt"

# This Neovim needs a newer C library than the system's. Every file gets the path of its own one.
lib=$(dirname "$(find "$root/usr/lib" -name 'libluajit-5.1.so.*' | head -n 1)")
loader=$(find "$root/usr/lib" -name 'ld-linux*.so.*' | head -n 1)
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$lib" "$root/usr/bin/nvim"
find "$lib" -type f -name '*.so*' | grep -E 'luajit|tree-sitter|unibilium|utf8proc|libuv|lpeg|luv' |
  xargs patchelf --force-rpath --set-rpath "$lib"

cat > "$dest/nvim.new" <<START
#!/bin/sh
VIMRUNTIME='$root/usr/share/nvim/runtime' LUA_PATH=';;$root/usr/share/lua/5.1/?.lua' \\
LUA_CPATH='$lib/lua/5.1/?.so;;' exec '$root/usr/bin/nvim' "\$@"
START
chmod +x "$dest/nvim.new"
"$dest/nvim.new" --version | head -n 1
mv "$dest/nvim.new" "$dest/nvim"
