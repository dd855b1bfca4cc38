#!/usr/bin/env bash
# Build refleak's Debian package from this checkout:
#   build-deb.sh [FOLDER]   writes FOLDER/refleak_VERSION_amd64.deb (default: dist) and prints its path
# Needs dpkg-deb and gzip, no privileges. All dependencies are Debian 12's own packages.
set -euo pipefail

top=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
out=$(readlink -m "${1:-$top/dist}")
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$top/tracer/__init__.py")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"

lib=$root/usr/lib/refleak doc=$root/usr/share/doc/refleak
install -d "$root/DEBIAN" "$root/usr/bin" "$root/usr/include" "$lib" "$doc/examples/demo" \
    "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions"
(cd "$top" && find tracer bpf -name __pycache__ -prune -o -type f -print0 | tar -c --null -T -) |
    tar -x -C "$lib" --no-same-owner --no-same-permissions
install -m 755 "$top/refleak" "$lib/refleak"
ln -s ../lib/refleak/refleak "$root/usr/bin/refleak"
install -m 644 "$top/examples/refleak.h" "$root/usr/include/refleak.h"
install -d "$root/usr/share/pkgconfig"
sed "s|^prefix=.*|prefix=/usr|; s|@VERSION@|$version|" "$top/packaging/refleak.pc.in" >"$root/usr/share/pkgconfig/refleak.pc"
install -m 644 "$top/examples/demo/leaky.c" "$top/examples/demo/README.md" "$doc/examples/demo/"
ln -s ../../../../include/refleak.h "$doc/examples/refleak.h"
install -m 644 "$top/completions/refleak.bash" "$root/usr/share/bash-completion/completions/refleak"
install -D -m 644 "$top/completions/_refleak" "$root/usr/share/zsh/vendor-completions/_refleak"
install -D -m 644 "$top/completions/refleak.fish" "$root/usr/share/fish/vendor_completions.d/refleak.fish"
gzip -9n <"$top/docs/refleak.1" >"$root/usr/share/man/man1/refleak.1.gz"
gzip -9n <"$top/CHANGELOG.md" >"$doc/changelog.gz"
install -m 644 "$top/README.md" "$doc/"
install -d "$doc/docs/commands" "$doc/examples/ci" "$doc/examples/perf"
install -m 644 "$top"/docs/*.md "$top"/docs/*.png "$top/docs/report.schema.json" "$doc/docs/"
install -m 644 "$top"/docs/commands/*.md "$doc/docs/commands/"
install -m 644 "$top"/examples/ci/* "$doc/examples/ci/"
install -m 644 "$top"/examples/perf/*.* "$doc/examples/perf/"
cat >"$doc/copyright" <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: refleak

Files: *
License: GPL-2.0-only

Files: examples/refleak.h
License: GPL-2.0-only or MIT

License: GPL-2.0-only
 The text of the license is in /usr/share/common-licenses/GPL-2.
END
cat >"$root/DEBIAN/control" <<END
Package: refleak
Version: $version
Architecture: amd64
Maintainer: refleak maintainers <refleak@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: python3 (>= 3.11), python3-bpfcc, python3-numpy (>= 1:1.24),
 python3-psutil (>= 5.9), python3-tabulate (>= 0.8.9), python3-capstone (>= 4.0.2), python3-rich (>= 13),
 llvm | binutils
Suggests: debuginfod, gcc
Description: tracer for reference counts and allocations
 refleak attaches eBPF probes to unmodified processes and reports which counted
 objects and which blocks of memory they leave behind, with the call stacks that
 made them.
END
# Only root could write the bytecode later, which dpkg would not know of.
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    /usr/bin/python3 -m compileall -q ${DPKG_ROOT:+-s "$DPKG_ROOT"} "$DPKG_ROOT/usr/lib/refleak/tracer"
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
find "$DPKG_ROOT/usr/lib/refleak" -name __pycache__ -type d -prune -exec rm -rf {} +
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ "$1" = purge ]; then
    rm -rf "$DPKG_ROOT/var/cache/refleak"
fi
END
chmod 755 "$root"/DEBIAN/p*
mkdir -p "$out"
package=$out/refleak_${version}_amd64.deb
dpkg-deb --build --root-owner-group "$root" "$package" >/dev/null
echo "$package"
