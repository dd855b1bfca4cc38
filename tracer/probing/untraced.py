"""Programs that ran in a traced process and in which nothing is probed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tracer.binaries.open_binaries import OpenBinary
from tracer.model.addresses import Space
from tracer.model.operations import Operation
from tracer.model.snapshot import Mapping as MappedRange
from tracer.model.snapshot import Process, SiteInfo, Untraced
from tracer.procfs import process as proc

_GO_SECTIONS = (".gopclntab", ".note.go.buildid")
_REFERENCES = frozenset((Operation.CREATE, Operation.GET, Operation.PUT, Operation.DELETE))
_MEMORY = frozenset(
    (Operation.ALLOC, Operation.REALLOC, Operation.FREE, Operation.MAP, Operation.UNMAP, Operation.REMAP)
)
_OLDER = "it ran before refleak attached to its parent: -p PID --tree traces it too"
_FORKED_MEANWHILE = "it was forked while refleak attached to its parent"
_NOT_READ = "it was gone before it was looked into, or is no ELF program"


def untraced_programs(
    processes: Sequence[Process], mappings: Sequence[MappedRange], binaries: Mapping[int, OpenBinary],
    sites: Sequence[SiteInfo], foreign: Mapping[Space, str],
) -> Iterator[Untraced]:
    """Yield the programs none of whose binaries has a probe. `foreign`: why those that are of another kind have none.

    Where references alone are counted, most programs have nothing to count: they are yielded only if all are so.
    """
    operations = {site.operation for site in sites}
    if operations & _REFERENCES and not operations & _MEMORY:
        return
    mapped: dict[tuple[int, int], set[int]] = {}
    for mapping in mappings:
        mapped.setdefault((mapping.pid, mapping.generation), set()).add(mapping.binary)
    for process in processes:
        space = [binaries[id_] for id_ in mapped.get(process.space, ()) if id_ in binaries]
        if any(map(_is_probed, space)) or (not space and process.forked_from is not None):
            continue
        program = process.executable or (process.command[0] if process.command else f"pid {process.pid}")
        why = foreign.get(process.space) or why_untraced(space)
        yield Untraced(process.pid, process.generation, program, why)


def descendants_of(pids: Sequence[int]) -> tuple[int, ...]:
    """Return the processes that descend from these, each once, without these."""
    return tuple(dict.fromkeys(child for pid in pids for child in proc.descendants(pid) if child not in pids))


def older_children(pids: Sequence[int], *, tree: bool) -> tuple[Untraced, ...]:
    """Return the processes that descend from those that are traced, and are not among them.

    `tree`: those that ran before are among them. Children that are traced since their fork are returned too.
    """
    reason = _FORKED_MEANWHILE if tree else _OLDER
    return tuple(Untraced(child, 0, proc.executable(child) or f"pid {child}", reason) for child in descendants_of(pids))


def _is_probed(binary: OpenBinary) -> bool:
    return any(placement.site.function.operation in _REFERENCES | _MEMORY for _, placement in binary.placements)


def why_untraced(space: Sequence[OpenBinary]) -> str:
    """Return why a program that maps these binaries has no probe, as a clause."""
    own = [binary for binary in space if not binary.is_vdso]
    if not own:
        return _NOT_READ
    if _is_go(own):
        return "a Go program, which allocates without malloc"
    if any(binary.is_loader for binary in own):
        return "neither it nor its libraries have a function that is looked for"
    if any(len(binary.symbols) for binary in own):
        return "it is static, and has no function that is looked for"
    return "it is static and has no symbols"


def what_helps(space: Sequence[OpenBinary]) -> str | None:
    """Return what the user can do about a program that has no probe; None where it is the usual."""
    if _is_go(space):
        return "runtime/pprof shows Go's own memory; of a program with cgo, refleak traces what its C code allocates"
    return None


def _is_go(space: Sequence[OpenBinary]) -> bool:
    return any(
        binary.image.section(name) is not None for binary in space if not binary.is_vdso for name in _GO_SECTIONS
    )
