#!/usr/bin/env bash
# Build perf from Debian's linux-source-6.1 with the four stubs, no call site touched:
#   build.sh               -> build/perf
#   build.sh --unmodified  -> build/perf-unmodified, the same without the stubs
# Installs the packages that are missing. A second run does nothing. REFLEAK_CACHE moves the source and the objects.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
cache=$(readlink -m "${REFLEAK_CACHE:-$here/build}")
variant=stubs program=perf
case ${1-} in
    "") ;;
    --unmodified) variant=unmodified program=perf-unmodified ;;
    --make) variant=unmodified log=$2 ;; # of mutate.sh: make what has changed in the unmodified one
    *) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

packages=(linux-source-6.1 flex bison libelf-dev libdw-dev gcc make xz-utils libc6-dev pkg-config)
archive=/usr/src/linux-source-6.1.tar.xz
parts=(tools/arch tools/build tools/include tools/lib tools/perf tools/scripts)
flags=(NO_LIBPERL=1 NO_LIBPYTHON=1 NO_LIBBPF=1 NO_BPF_SKEL=1 NO_SLANG=1 NO_GTK2=1 NO_LIBNUMA=1 NO_LIBBABELTRACE=1
    NO_JVMTI=1 NO_LIBTRACEEVENT=1 NO_LIBCRYPTO=1 NO_LIBLZMA=1 NO_LIBZSTD=1 NO_LIBCAP=1 WERROR=0 EXTRA_CFLAGS=-g)

# What the result depends on; a run with the same recipe has nothing to do.
recipe() {
    printf '%s\n' "$variant" "${parts[@]}" "${flags[@]}"
    [ "$variant" = unmodified ] || cat "$here/refcount_stubs.h" "$here/refcount_stubs.c"
}

# make(1) in a variant's tree; its output goes to a file.
build() {
    local tree=$1 log=$2
    make -C "$tree/source/tools/perf" -j"$(nproc)" O="$tree/output" "${flags[@]}" perf >"$log" 2>&1 && return
    tail -20 "$log" >&2
    echo "perf was not built; the whole log is $log" >&2
    return 1
}

unpack() {
    local source=$1
    rm -rf "$source"
    mkdir -p "$source"
    tar -xJf "$archive" -C "$source" --strip-components=1 "${parts[@]/#/linux-source-6.1/}"
    # Without it perf asks the kernel's top Makefile, which is not unpacked.
    echo '#define PERF_VERSION "6.1"' >"$source/PERF-VERSION-FILE"
}

add_stubs() {
    local source=$1 header=$1/tools/include/linux/refcount.h
    cp "$here/refcount_stubs.h" "$source/tools/include/linux/"
    cp "$here/refcount_stubs.c" "$source/tools/perf/util/"
    echo 'perf-y += refcount_stubs.o' >>"$source/tools/perf/util/Build"
    sed -i '$!b; s|^#endif.*|#include <linux/refcount_stubs.h>\n&|' "$header"
    grep -q refcount_stubs.h "$header"
}

# Begin with the objects of the other variant, half of which are the same: make(1) finds out which by their dates, but
# the commands that it compares hold the names of the trees.
share() {
    local other=$1 tree=$2 file
    cp -a "$other/output" "$tree/output"
    { grep -rlIF "$other/" "$tree/output" || true; } | while read -r file; do
        touch -r "$file" "$tree/date"
        sed -i "s|$other/|$tree/|g" "$file"
        touch -r "$tree/date" "$file"
    done
}

work=$cache/$variant
if [ -n "${log-}" ]; then
    build "$work" "$log"
    exit
fi
stamp=$(recipe | sha256sum | cut -d' ' -f1)
mkdir -p "$here/build" "$work"
if [ ! -x "$work/output/perf" ] || [ "$(cat "$work/stamp" 2>/dev/null)" != "$stamp" ]; then
    "$(readlink -f "$here/../../.ci/install")" "${packages[@]}"
    rm -rf "$work/stamp" "$work/output"
    unpack "$work/source"
    for other in "$cache/stubs" "$cache/unmodified"; do
        if [ "$other" != "$work" ] && [ -f "$other/stamp" ] && [ ! -e "$work/output" ]; then
            share "$other" "$work"
            touch "$work/source/tools/include/linux/refcount.h" # what differs is newer than every object
        fi
    done
    [ "$variant" = unmodified ] || add_stubs "$work/source"
    mkdir -p "$work/output"
    build "$work" "$work/log"
    echo "$stamp" >"$work/stamp"
fi
# Compared, since it may be there from another cache; moved, since it may be running.
if ! cmp -s "$work/output/perf" "$here/build/$program"; then
    cp "$work/output/perf" "$here/build/$program.new"
    mv "$here/build/$program.new" "$here/build/$program"
fi
