"""The BPF sources: where they are, and the one text that BCC compiles."""

from __future__ import annotations

from pathlib import Path

from tracer.errors import PackageMissing

_SOURCES = ("allocations.bpf.c", "references.bpf.c", "calls.bpf.c", "probes.bpf.c", "stack_dump.bpf.c",
            "interpreters.bpf.c", "lifecycle.bpf.c", "mappings.bpf.c", "unwinders.bpf.c", "preload.bpf.c",
            "turns.bpf.c")  # fmt: skip


def bpf_directory() -> Path:
    """Return where the BPF sources are: in the checkout, or installed beside the package."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "bpf"
    directory = installed if installed.is_dir() else package.parent / "bpf"
    if not directory.is_dir():
        raise PackageMissing("refleak's own BPF sources are missing", PackageMissing.again)
    return directory


def source_text(directory: Path) -> str:
    """Return all sources as the one text that BCC compiles: each includes what it uses."""
    lines = []
    for name in _SOURCES:
        lines += [f'#line 1 "{name}"', (directory / name).read_text()]
    return "\n".join(lines)
