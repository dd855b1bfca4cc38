"""Run bcc's memleak tool where its Python binding passes too few arguments.

bpf_attach_uprobe takes a seventh, the offset of a reference counter, since bcc 0.19; the binding of 0.26 gives six,
and where the stack holds anything but 0 in its place the kernel refuses the probe (EINVAL).

Run: python3 bcc_memleak.py memleak-bpfcc [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import runpy
import sys

from bcc import libbcc

_ARGUMENTS = 7


def main() -> None:
    attach = libbcc.lib.bpf_attach_uprobe
    if len(attach.argtypes) < _ARGUMENTS:
        attach.argtypes = [*attach.argtypes, ctypes.c_uint32]
        libbcc.lib.bpf_attach_uprobe = lambda *arguments: attach(*arguments, 0)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
