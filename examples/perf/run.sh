#!/usr/bin/env bash
# Trace three commands of the perf that build.sh makes:
#   run.sh [OPTION...]   OPTIONs go to refleak, for example --refs-only
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
refleak=$(readlink -f "$here/../../refleak")
options=("$@")
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)

"$here/build.sh"
work=$(mktemp -d)
trap '"${as_root[@]}" rm -rf "$work"' EXIT

# The user's own perf settings and build id cache stay out of it. As root, since perf needs the privileges itself.
trace() {
    printf '\n$ refleak --exec perf %s\n' "$*"
    "${as_root[@]}" env PERF_CONFIG=/dev/null PERF_BUILDID_DIR="$work/build-ids" \
        "$refleak" --user root "${options[@]}" --exec "$here/build/perf" "$@" </dev/null
}

status=0
trace probe vfs_read || status=$?
case $status in
    0) ;;
    25[0-9]) echo "(this kernel has no kprobes: perf probe did all of its set-up and ended with $status)" ;;
    *) exit "$status" ;;
esac
trace record -e cpu-clock -o "$work/perf.data" true
trace report --stdio -i "$work/perf.data"
