"""Sites whose functions are C++ operators: allocators of programs that bring their own."""

from __future__ import annotations

from dataclasses import replace

from hand_made import snapshot

from tracer.model.operations import Operation
from tracer.model.snapshot import SiteInfo
from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.naming import as_written

NEW = SiteInfo(Operation.ALLOC, "_Znwm", "chromium", "_Znwm")
MALLOC = SiteInfo(Operation.ALLOC, "malloc", "libc.so.6", "malloc")
CREATE = SiteInfo(Operation.CREATE, "_ZN4Conn4makeEv", "server", "_ZTV4Conn")


def written(*sites: SiteInfo, demangle: bool = True) -> tuple[SiteInfo, ...]:
    return as_written(replace(snapshot(), sites=sites), JudgeOptions(demangle=demangle)).sites


def test_an_operator_of_the_programs_own_is_written_out() -> None:
    (new,) = written(NEW)
    assert (new.function, new.type) == ("operator new(unsigned long)", "operator new(unsigned long)")


def test_a_type_that_is_no_function_stays() -> None:
    (create,) = written(CREATE)
    assert (create.function, create.type) == ("Conn::make()", "_ZTV4Conn")


def test_names_of_c_stay() -> None:
    assert written(MALLOC) == (MALLOC,)


def test_names_as_linked_stay_where_they_are_wanted() -> None:
    assert written(NEW, CREATE, demangle=False) == (NEW, CREATE)
