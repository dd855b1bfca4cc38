#!/usr/bin/env bash
# Build unmodified perf with one put taken out, as mutations.txt says:
#   mutate.sh NAME   -> build/mutants/NAME
# Only the changed file is compiled again; the source is put back afterwards. Builds unmodified perf first if need be.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
name=${1:?"NAME of a mutation: see mutations.txt"}
mutant=$here/build/mutants/$name

# The value of a key in the section of this mutation.
field() {
    awk -v name="[$name]" -v key="$1" '
        /^\[/ { inside = $0 == name }
        inside && index($0, key " = ") == 1 { print substr($0, length(key) + 4); exit }' "$here/mutations.txt"
}

file=$(field file) function=$(field function) line=$(field line)
[ -n "$file" ] || { echo "mutations.txt has no [$name]" >&2; exit 2; }

"$here/build.sh" --unmodified
work=$(readlink -m "${REFLEAK_CACHE:-$here/build}")/unmodified
source=$work/source/tools/perf/$file
stamp=$(cat "$work/stamp" "$here/mutations.txt" | sha256sum | cut -d' ' -f1)
[ -x "$mutant" ] && [ "$(cat "$mutant.stamp" 2>/dev/null)" = "$stamp" ] && exit 0

mkdir -p "$here/build/mutants"
cp -p "$source" "$work/original"
cp -p "$work/output/perf" "$work/original-perf"
# Nothing of this mutation is left behind for the next one.
restore() {
    mv "$work/original" "$source"
    mv "$work/original-perf" "$work/output/perf"
    rm -f "$work/output/${file%.c}.o"
}
trap restore EXIT
awk -v function_name="$function" -v line="$line" '
    !behind && $0 ~ "^[a-z].*[ *]" function_name "\\(" && !/;$/ { behind = 1 }
    behind && !gone && index($0, line) { sub(/[^ \t].*/, ";"); gone = 1 }
    { print }
    END { exit !gone }' "$work/original" >"$source" || { echo "$file: $function has no $line" >&2; exit 1; }
"$here/build.sh" --make "$work/output/$name.log"
cp "$work/output/perf" "$mutant.new"
mv "$mutant.new" "$mutant"
echo "$stamp" >"$mutant.stamp"
