#!/usr/bin/env bash
# Fail on a leak that the baseline does not have.
#
#   leak-check.sh [--update] BASELINE OUTPUT-DIRECTORY COMMAND [ARGUMENT ...]
#
# Traces COMMAND once, as root or with sudo, and writes into OUTPUT-DIRECTORY the recording and what is new of it:
# leaks.sarif (code scanning), leaks.xml (JUnit), leaks.md (for a merge request), leaks.html (to look into).
# --update writes BASELINE anew instead, to be reviewed and committed.
#
# Status 0: nothing new; 1: a new leak, a broken rule, or data lost, with which nothing can be said; 2: wrong usage; else that of
# COMMAND, or refleak's own where it could not trace.
# REFLEAK names the program, SOURCE_ROOT the directory that the paths in the SARIF file are relative to (the current one).
set -euo pipefail

update=
if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
if [ $# -lt 3 ]; then
    sed -n '4p' "$0" >&2
    exit 2
fi
baseline=$1 output=$2
shift 2

refleak=${REFLEAK:-refleak}
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
mkdir -p "$output"
recording=$output/run.refleak

status=0
"${as_root[@]}" "$refleak" --force -o "$recording" --top 0 --exec "$@" || status=$?
if [ "$status" != 0 ]; then
    echo "leak-check: '$*' ended with status $status" >&2
    exit "$status"
fi

if [ -n "$update" ]; then
    "$refleak" report "$recording" --format json -o "$baseline"
    echo "leak-check: wrote $baseline"
    exit 0
fi

options=(--source-root "${SOURCE_ROOT:-.}")
[ -e "$baseline" ] && options+=(--baseline "$baseline")
for suffix in sarif xml md html; do
    "$refleak" report "$recording" "${options[@]}" -o "$output/leaks.$suffix"
done
"$refleak" report "$recording" "${options[@]}" --fail-on leaks,errors,incomplete
