#!/usr/bin/env bash
# Build GLib 2.74 from Debian's source, and tests of its own linked with it, with -O2 -g:
#   build.sh  -> build/glib-tests
# Installs the packages that are missing. A second run does nothing. REFLEAK_CACHE moves the source and the objects.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
cache=$(readlink -m "${REFLEAK_CACHE:-$here/build}")/glib
[ $# = 0 ] || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

. "$here/../debian_source.sh"

packages=(gcc meson ninja-build pkg-config xz-utils libc6-dev libpcre2-dev libffi-dev zlib1g-dev)
version=2.74
tests=(mainloop bytes gvariant regex asyncqueue keyfile tree)
flags=(--default-library=static --buildtype=plain --wrap-mode=nodownload -Dtests=false -Dman=false -Dgtk_doc=false
    -Dlibmount=disabled -Dselinux=disabled -Dxattr=false -Dnls=disabled "-Dc_args=-O2 -g -w -fno-optimize-sibling-calls")
# Creates, gets and puts stay functions, so that each of their calls can be changed; what calls them is inlined freely.
names='g_[a-z_]*_\(un\)\?ref\(_internal\|_sink\|_unlocked\)\?\|g_variant_alloc\|g_variant_\(maybe_\)\?get_child_value'
names+='\|g_variant_type_info_get\|g_bytes_new_with_free_func\|match_info_new\|g_regex_new\|mapped_file_new_from_fd'
names+='\|g_key_file_\(new\|free\)\|g_tree_new_full\|g_async_queue_new_full\|g_main_context_new_with_flags'
names+='\|g_source_new\|g_main_loop_new\|array_info_new\|tuple_info_new'
out_of_line="s/^\\($names\\) *(/__attribute__((noinline, noclone)) &/"

# The library by meson(1), then the tests, each with a main() of its own name; what is said goes to a file.
build() {
    local library=$cache/output/glib/libglib-2.0.a include=() objects=() name
    include=(-I"$cache/source" -I"$cache/source/glib" -I"$cache/output" -I"$cache/output/glib")
    {
        meson setup "${flags[@]}" "$cache/output" "$cache/source"
        ninja -C "$cache/output" glib/libglib-2.0.a
        for name in "${tests[@]}"; do
            gcc -O2 -g -w -fno-optimize-sibling-calls -pthread '-DG_LOG_DOMAIN="GLib"' "-Dmain=${name}_main" "${include[@]}" -c "$cache/source/glib/tests/$name.c" \
                -o "$cache/$name.o"
            objects+=("$cache/$name.o")
        done
        gcc -O2 -g -pthread "-DTESTS=$(printf 'TEST(%s) ' "${tests[@]}")" "$here/tests.c" "${objects[@]}" "$library" \
            $(find "$cache/output/glib" -name '*.a' ! -name libglib-2.0.a) -lpcre2-8 -lm -o "$cache/glib-tests"
    } >"$cache/log" 2>&1 && return
    tail -20 "$cache/log" >&2
    echo "GLib was not built; the whole log is $cache/log" >&2
    return 1
}

stamp=$(cat "$here/tests.c" <(printf '%s\n' "$version" "${flags[@]}" "${tests[@]}" "$out_of_line") | sha256sum | cut -d' ' -f1)
build_once glib2.0 "$version" glib-tests "$stamp" "glib/g*.c"
