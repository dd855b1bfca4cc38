#!/usr/bin/env bash
# Build GIO 2.74 from Debian's source of GLib, and tests of its own linked with it, with -O2 -g:
#   build.sh  -> build/gio-tests
# Installs the packages that are missing. A second run does nothing. REFLEAK_CACHE moves the source and the objects.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
cache=$(readlink -m "${REFLEAK_CACHE:-$here/build}")/gio
[ $# = 0 ] || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

. "$here/../debian_source.sh"

packages=(gcc meson ninja-build pkg-config xz-utils libc6-dev libpcre2-dev libffi-dev zlib1g-dev)
version=2.74
tests=(task cancellable memory-input-stream memory-output-stream data-input-stream buffered-input-stream
    buffered-output-stream filter-streams converter-stream async-splice-output-stream async-close-output-stream io-stream
    sleepy-stream g-icon glistmodel permission simple-async-result gdbus-message unix-streams socket
    contexts simple-proxy)
flags=(--default-library=static --buildtype=plain --wrap-mode=nodownload -Dtests=false -Dman=false -Dgtk_doc=false
    -Dlibmount=disabled -Dselinux=disabled -Dxattr=false -Dnls=disabled "-Dc_args=-O2 -g -w -fno-optimize-sibling-calls")
# Creates, gets and puts stay functions, so that each of their calls can be changed; what calls them is inlined freely.
names='g_[a-z_]*_\(un\)\?ref\(_internal\|_sink\|_unlocked\)\?\|g_variant_alloc\|g_variant_\(maybe_\)\?get_child_value'
names+='\|g_bytes_new_with_free_func\|g_main_context_new_with_flags\|g_source_new\|g_main_loop_new'
names+='\|(g_object_ref\(_sink\)\?)\|g_object_new[a-z_]*\|g_type_register_[a-z_]*'
out_of_line="s/^\\($names\\) *(/__attribute__((noinline, noclone)) &/"

# The libraries by meson(1), then the tests, each with a main() of its own name and nothing else for others; what is
# said goes to a file. What mutants change is between two marks.
build() {
    local output=$cache/output objects=() name archive=() include=(-I"$cache/source" -I"$cache/output")
    for name in glib gio gobject gmodule; do
        include+=(-I"$cache/source/$name" -I"$cache/output/$name")
    done
    {
        meson setup "${flags[@]}" "$output" "$cache/source"
        ninja -C "$output" gio/libgio-2.0.a gobject/libgobject-2.0.a gmodule/libgmodule-2.0.a glib/libglib-2.0.a
        for name in "${tests[@]}"; do
            gcc -O2 -g -w -fno-optimize-sibling-calls -pthread '-DG_LOG_DOMAIN="GLib-GIO"' "-Dmain=${name//-/_}_main" \
                "${include[@]}" -c "$cache/source/gio/tests/$name.c" -o "$cache/$name.o"
            objcopy "--keep-global-symbol=${name//-/_}_main" "$cache/$name.o"
            objects+=("$cache/$name.o")
        done
        for name in gio_begins gio_ends; do
            echo "void $name(void) {}" | gcc -O2 -g -x c -c - -o "$cache/$name.o"
        done
        mapfile -t archive < <(find "$output/gio" -name '*.a' ! -name libgio-2.0.a)
        gcc -O2 -g -pthread "-DTESTS=$(printf 'TEST(%s) ' "${tests[@]//-/_}")" "$here/../glib/tests.c" "${objects[@]}" \
            "$cache/gio_begins.o" "$output/gio/libgio-2.0.a" "${archive[@]}" "$cache/gio_ends.o" \
            "$output/gobject/libgobject-2.0.a" "$output/gmodule/libgmodule-2.0.a" \
            "$output/glib/libglib-2.0.a" $(find "$output/glib" -name '*.a' ! -name libglib-2.0.a) -lpcre2-8 -lffi -lz \
            -lresolv -lm -o "$cache/gio-tests"
    } >"$cache/log" 2>&1 && return
    tail -20 "$cache/log" >&2
    echo "GIO was not built; the whole log is $cache/log" >&2
    return 1
}

stamp=$(cat "$here/../glib/tests.c" <(printf '%s\n' "$version" "${flags[@]}" "${tests[@]}" "$out_of_line") | sha256sum | cut -d' ' -f1)
build_once glib2.0 "$version" gio-tests "$stamp" "glib/g*.c" "gobject/g*.c"
