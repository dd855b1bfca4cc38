"""The reference-counting stubs proposed for perf on the Linux kernel mailing list, and their holder variants.

    void __refcnt__init(atomic_t *refcnt, int n, void *obj, const char *name)
    void __refcnt__get(atomic_t *refcnt, void *obj, const char *name)
    int __refcnt__put(atomic_t *refcnt, void *obj, const char *name)
    void refcnt__delete(void *obj)
"""

from __future__ import annotations

from tracer.architecture.current import argument
from tracer.model.operations import NO_FLAGS, NOWHERE, FunctionSpec, Location, Operation, SiteFlag, Spec


def _counted(function: str, operation: Operation, holder: Location = NOWHERE) -> FunctionSpec:
    return FunctionSpec(
        function,
        operation,
        flags=SiteFlag.COUNTER | SiteFlag.ENTRY_RESULT | SiteFlag.NAMED,
        counter=argument(0),
        object=argument(1),
        name=argument(2),
        holder=holder,
    )


def _delete(function: str) -> FunctionSpec:
    flags = NO_FLAGS | SiteFlag.ENTRY_RESULT | SiteFlag.DELETES_OBJECT
    return FunctionSpec(function, Operation.DELETE, flags=flags, object=argument(0))


STUBS = Spec(
    "refcnt",
    (
        FunctionSpec(
            "__refcnt__init",
            Operation.CREATE,
            flags=SiteFlag.COUNTER | SiteFlag.ENTRY_RESULT | SiteFlag.NAMED,
            counter=argument(0),
            count=argument(1, width=4),
            object=argument(2),
            name=argument(3),
        ),
        _counted("__refcnt__get", Operation.GET),
        _counted("__refcnt__put", Operation.PUT),
        _counted("__refcnt__get_by", Operation.GET, holder=argument(3)),
        _counted("__refcnt__put_by", Operation.PUT, holder=argument(3)),
        _delete("refcnt__delete"),
        _delete("__refcnt__delete"),
    ),
    description="Reference counts through the four stubs of refleak.h",
    source="built in",
)
