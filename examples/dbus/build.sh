#!/usr/bin/env bash
# Build dbus-daemon 1.14 from Debian's source, libdbus linked in, with -O2 -g:
#   build.sh  -> build/dbus-daemon
# Installs the packages that are missing. A second run does nothing. REFLEAK_CACHE moves the source and the objects.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
cache=$(readlink -m "${REFLEAK_CACHE:-$here/build}")/dbus
[ $# = 0 ] || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

. "$here/../debian_source.sh"

packages=(gcc make pkg-config xz-utils libc6-dev libexpat1-dev)
version=1.14
flags=(--disable-shared --enable-static --disable-tests --disable-embedded-tests --disable-modular-tests
    --disable-asserts --disable-checks --disable-doxygen-docs --disable-xml-docs --disable-ducktype-docs
    --disable-systemd --disable-selinux --disable-apparmor --disable-libaudit --disable-x11-autolaunch --without-x
    --disable-inotify "CFLAGS=-O2 -g")
# Creates, gets and puts stay functions, so that each of their calls can be left out; what calls them is inlined freely.
out_of_line='s/^_\?[a-z_]*_\(\(un\)\?ref\|new\|registry_ensure\)\(_unlocked\|_and_unlock\)\? *(/__attribute__((noinline, noclone)) &/'

# configure(1) and make(1); what they write goes to a file.
build() {
    mkdir -p "$cache/output"
    cd "$cache/output"
    { "$cache/source/configure" "${flags[@]}" && make -j"$(nproc)" -C dbus && make -j"$(nproc)" -C bus dbus-daemon; } \
        >"$cache/log" 2>&1 && return
    tail -20 "$cache/log" >&2
    echo "dbus was not built; the whole log is $cache/log" >&2
    return 1
}

stamp=$(printf '%s\n' "$version" "${flags[@]}" "$out_of_line" | sha256sum | cut -d' ' -f1)
build_once dbus "$version" output/bus/dbus-daemon "$stamp" "bus/*.c" "dbus/*.c"
