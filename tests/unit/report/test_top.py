"""The live view: what a sample holds, what a screen shows of it, and the terminal's way back."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
from dataclasses import replace

import pytest
from hand_made import LOSSES, SECOND, SITES, Code, blocks, broken_rules, server, snapshot

from tracer.analysis import analyse
from tracer.analysis.top import top_sample
from tracer.cli.terminal import Terminal
from tracer.errors import UsageError
from tracer.model.events import ErrorKind
from tracer.model.findings import Growing, Holder, Retainer
from tracer.model.frames import Frame
from tracer.model.periods import Checkpoint
from tracer.model.reachability import Scan
from tracer.model.top import HeldNode, HeldTree, Look, TopRow, TopSample
from tracer.report.top_screen import DETAILS, ERRORS, HELD, HELP, TYPES, TopState, render, sparkline


def samples() -> list[TopSample]:
    """Two samples of the server: two seconds and one page apart, with a mark at 3 s."""
    snap, code = server()
    before = replace(snap, allocations=snap.allocations[1:], duration_ns=59 * SECOND)
    first = top_sample(analyse(before, code.symbols), None)
    marked = replace(snap, checkpoints=(Checkpoint(1, 3 * SECOND),), losses=LOSSES)
    return [first, top_sample(analyse(marked, code.symbols), first)]


def test_a_sample_sums_what_is_outstanding() -> None:
    first, second = samples()
    assert (first.bytes, first.blocks, first.objects, first.mark_ns) == (6 * 4096 + 72 + 13 + (1 << 20), 9, 2, None)
    assert (second.bytes - first.bytes, second.blocks, second.mark_ns, second.lost) == (4096, 10, 3 * SECOND, 317)
    page = next(row for row in second.rows if row.bytes == 7 * 4096)
    assert (page.count, page.count_per_second, page.bytes_per_second) == (7, 0.5, 2048.0)
    assert (page.count_since_mark, page.bytes_since_mark) == (3, 3 * 4096)  # made at 4, 5 and 6 s
    assert [row.kind for row in second.rows] == ["mapping", "allocation", "allocation", "allocation", "reference"]
    assert {row.count_per_second for row in first.rows} == {0.0}


def lines(state: TopState, width: int = 80, height: int = 24) -> list[str]:
    screen = render(state, width, height, color=False).split("\n")
    assert len(screen) == height
    assert max(map(len, screen)) <= width
    return screen


def test_errors_have_a_line_and_a_view() -> None:
    code = Code()
    code.stack(1, code.frame("again", "a.c:5"), code.frame("main", "a.c:9"))
    code.stack(2, code.frame("make", "a.c:2"), code.frame("main", "a.c:8"))
    code.stack(3, code.frame("drop", "a.c:3"), code.frame("main", "a.c:7"))
    seen = broken_rules({"error": ErrorKind.DOUBLE_FREE, "stack": 1, "birth": 2, "release": 3, "block_size": 101})
    found = analyse(replace(snapshot(code, errors=seen), sites=SITES), code.symbols)
    sample = top_sample(found, None)
    assert [(error.kind, error.count) for error in sample.errors] == [("double-free", 1)]
    screen = lines(TopState("./srv", [sample]))
    assert screen[4].rstrip() == "1 error: double-free in again (a.c:5) (a block of 101 bytes)"
    shown = [line.rstrip() for line in lines(TopState("./srv", [sample], view=ERRORS))[5:14]]
    assert shown[0] == "double-free in again (a.c:5) (a block of 101 bytes), pid 812"
    assert shown[1:] == [
        "    again  a.c:5", "    main  a.c:9", "  released at", "    drop  a.c:3", "    main  a.c:7", "  made at",
        "    make  a.c:2", "    main  a.c:8",
    ]  # fmt: skip
    quiet = lines(TopState("./srv", [TopSample(1)], view=ERRORS))
    assert (quiet[4].strip(), quiet[5].strip()) == ("", "no rule was broken")


def test_the_screen_at_80_by_24() -> None:
    screen = lines(TopState("./srv", samples()))
    assert screen[0].rstrip() == "refleak top  ./srv"
    assert screen[1].startswith("61.0 s: 1.0 MiB in 10 blocks, 2 objects, +2.0 KiB/s; marked at 3.0 s  317 lost")
    assert screen[2].rstrip() == "bytes    ██"
    assert screen[5].split() == ["bytes*", "count", "per", "s", "since", "mark", "trend", "made", "in"]
    assert screen[7].split()[:8] == ["28.0", "KiB", "7", "+2.0", "KiB", "12.0", "KiB", "one-off"]
    assert screen[7].rstrip().endswith(" parse_body (body.c:118)")
    assert screen[-1].startswith("q quit")


def test_a_narrow_terminal_has_room_for_the_function() -> None:
    """At 40 columns the amounts took all of them."""
    state = TopState("srv", samples())
    head, _, second = lines(state, 40)[5:8]
    assert head.split() == ["bytes*", "count", "made", "in"]
    assert second == "  28.0 KiB        7  parse_body (body.c…"
    state.sort = "since mark"
    assert lines(state, 40)[5].split() == ["bytes", "count", "since", "mark*", "made", "in"]
    assert lines(state, 70)[5].split() == ["bytes", "count", "per", "s", "since", "mark*", "made", "in"]


SCOPED = Frame("net::http::Cache<net::http::Session>::remember(net::http::Session*)", "srv", file="srv.cc", line=17)


def test_names_are_shortened_from_outside() -> None:
    """In 40 columns three functions of one namespace were all called "net::http::remembe…"."""
    row = TopRow("id", "allocation", "malloc", 7, 999, 0, 0, 0, 0, None, (SCOPED,), 0)
    of_type = replace(row, kind="reference", type="conn", bytes=None)
    for width, own, of in [
        (40, "Cache<..>::remembe…", "conn from remember…"),
        (80, "remember (srv.cc:17)", "conn from remember (srv.cc…"),
        (98, "net::http::Cache<..>::remember (srv.cc:17)", "conn from Cache<..>::remember (srv.cc:17)"),
    ]:  # fmt: skip
        for shown, place in [(row, own), (of_type, of)]:
            line = lines(TopState("x", [TopSample(1, rows=(shown,))]), width)[6]
            assert line.rstrip().endswith(f"  {place}")


def test_types_have_their_names_in_any_width() -> None:
    """At 40 columns the numbers took all of them."""
    head, row = (line.rstrip() for line in lines(TopState("x", samples(), view=TYPES), 40)[5:7])
    assert head == "      alive    created  type" and row.split()[-1] == samples()[1].types[0].type
    assert lines(TopState("x", samples(), view=TYPES), 70)[5].split() == [
        "alive", "created", "gets", "puts", "destroyed", "type",
    ]  # fmt: skip


def test_a_look_shows_in_the_list_of_any_width() -> None:
    """Up to 119 columns only the stack of an entry said what was lost, and what not."""
    for width in (40, 80, 119):
        head, _, page = (line.rstrip() for line in lines(TopState("./srv", [after_two_looks()]), width)[5:8])
        assert head.endswith("memory is made in") and "trend" not in head
        assert page[head.index("memory is") :].startswith("held      parse_body")


def test_the_keys_are_explained() -> None:
    state = TopState("srv", samples(), view=HELP)
    shown = "\n".join(lines(state))
    assert all(f"  {key} " in shown for key in ("?", "q", "s", "l", "h", "t", "e", "m", "p", "enter", "escape"))
    assert "end the trace and write the report" in shown
    narrow = [line.strip() for line in lines(state, 40, 40)]
    assert "page up, page down  ten at a time" in narrow and not any("…" in line for line in narrow[6:-1])
    assert "? help" in lines(TopState("srv"), 40)[-1]


def test_what_does_not_fit_says_so() -> None:
    """The help ended at the edge of a screen of 40 times 24, as if that were all."""
    state = TopState("srv", samples(), view=HELP)

    def shown(height: int) -> list[str]:
        return [line.strip() for line in lines(state, 40, height)[5:-1] if line.strip()]

    whole, cut = shown(60), shown(24)
    assert cut == [*whole[: len(cut) - 1], f"{len(whole) - len(cut) + 1} more lines: down, page down"]
    state.move(99)
    assert shown(24) == whole[-len(cut) :]
    assert "more lines" not in "".join(lines(TopState("srv", view=HELP), 80, 24))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 8), (20, 3), (300, 90), (1, 2)])
@pytest.mark.parametrize("view", [HELP, "entries", TYPES, DETAILS, HELD])
def test_it_fits_any_size(width: int, height: int, view: str) -> None:
    lines(TopState("a command with a long name " * 5, samples(), view=view), width, height)
    lines(TopState("looked into", [after_two_looks()], view=view), width, height)
    lines(TopState("nothing yet", view=view), width, height)


def test_keys_move_and_sort() -> None:
    state = TopState("x", samples())
    by_bytes = [row.id for row in state.rows()]
    state.move(1)
    assert state.selected == by_bytes[1]
    state.move(-9)
    assert state.selected == by_bytes[0]
    state.move(99)
    assert state.selected == by_bytes[-1]
    state.sort = "growth"
    assert state.rows()[0].bytes_per_second == 2048.0
    assert state.selected == by_bytes[-1]  # stays, wherever it now is
    state.sort = "since mark"
    assert [row.bytes_since_mark for row in state.rows()][:2] == [3 * 4096, 0]


def test_the_details_are_the_whole_stack() -> None:
    page = next(row.id for row in samples()[1].rows if row.bytes == 7 * 4096)
    state = TopState("x", samples(), view=DETAILS, selected=page)
    screen = [line.rstrip() for line in lines(state)]
    assert screen[5].endswith("7 blocks, 28.0 KiB by malloc, one-off")
    assert screen[6:9] == [
        "  malloc  [libc.so.6]", "  parse_body  body.c:118", "  handle_request  /src/net/http.c:402  (inlined)",
    ]  # fmt: skip
    state.move(99)
    screen = lines(state, height=9)
    assert screen[7].strip().startswith("_start")  # the last frame, in the last of the two lines there are


def test_names_cannot_command_the_terminal() -> None:
    evil = Frame("f\x1b[2J\n", "m", file="\x1b]0;x\x07.c", line=1)
    row = TopRow("id", "allocation", "malloc", 1, 1, 0, 0, 0, 0, None, (evil,), 0)
    for view in ("entries", DETAILS):
        text = render(TopState("\x1b[1m", [TopSample(1, rows=(row,))], view=view), 80, 10, color=False)
        assert "\x1b" not in text and "\x07" not in text
        assert len(text.split("\n")) == 10


def test_an_empty_trace() -> None:
    found = top_sample(analyse(snapshot(allocations=blocks(), duration_ns=0), {}), None)
    assert (found.bytes, found.rows) == (0, ())


@pytest.mark.parametrize(
    ("values", "width", "bars"),
    [([], 5, ""), ([0, 0], 5, "  "), ([1, 4, 8], 5, "▁▄█"), ([1, 2, 4, 8], 2, "▄█"), ([1, 10**12], 9, "▁█")],
)
def test_sparkline(values: list[int], width: int, bars: str) -> None:
    assert sparkline(values, width) == bars


def on_terminal(end: str) -> tuple[bytes, bool]:
    """Take a terminal in a process below a shell's, and end it; return what was written, and if the modes are back."""
    pid, master = pty.fork()
    if pid == 0:
        if os.fork():
            signal.pause()
        terminal = Terminal()
        terminal.take()
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        terminal.close()
        signal.pause()
    before = termios.tcgetattr(master)
    written = b""
    while b"\x1b[?1049l" not in written:
        assert select.select([master], [], [], 20)[0], written
        written += os.read(master, 4096)
    for _ in range(2000):  # the settings follow the last bytes
        if termios.tcgetattr(master)[3] & termios.ICANON:
            break
        select.select([], [], [], 0.01)
    after = termios.tcgetattr(master)
    os.killpg(pid, signal.SIGKILL)  # the one below too, which hears of no hang-up under nohup
    os.waitpid(pid, 0)
    os.close(master)
    return written, bool(after[3] & termios.ICANON) and bool(after[3] & termios.ECHO) and bool(before)


@pytest.mark.parametrize("end", ["close", "kill"])
def test_the_terminal_is_given_back(end: str) -> None:
    written, is_back = on_terminal(end)
    assert written.startswith(b"\x1b[?1049h") and written.count(b"\x1b[?1049l") == 1
    assert is_back


def test_without_a_terminal_it_is_said() -> None:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            Terminal()
        except UsageError as error:
            os._exit(7 if "terminal" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


TABLE = Holder(1, "global", "cache.table", module="srv")
NODE = Holder(7, "block", stack=(Frame("make_node", "srv", file="a.c", line=5),))


def after_two_looks() -> TopSample:
    """The second sample of the server, as if 7 pages had been found to be held, and 4 of them before."""
    sample, scan = samples()[1], Scan(812, 1, held_ns=2_000_000)
    page = max(sample.rows, key=lambda row: row.count)
    now, then = (TABLE, replace(NODE, count=6)), (TABLE, replace(NODE, count=3))
    rows = tuple(
        replace(row, classes=(("reachable", 7),), holders=now, classes_before=(("reachable", 4),), holders_before=then)
        if row is page else row for row in sample.rows
    )  # fmt: skip
    below = HeldNode(NODE, page.id, 7, 28672, 28672, 12288), HeldNode(replace(NODE, count=1), "x", 1, 13, 13, -1)
    other = HeldNode(replace(TABLE, name="other"), None, 0, 0, 90000, 0)
    nodes = other, HeldNode(TABLE, None, 0, 0, 28685, 12287, below)
    look = Look(
        60 * SECOND, (scan,), (HeldTree(812, nodes),), Growing(12440, (Retainer(TABLE, 12288),)), 50 * SECOND,
        lost={812: (3, 400)}, lost_before={812: (1, 248)},
    )  # fmt: skip
    return replace(sample, rows=rows, look=look)


def test_what_holds_memory_and_what_that_grew_by() -> None:
    state = TopState("./srv", [after_two_looks()], view=HELD)
    screen = [line.rstrip() for line in lines(state)]
    assert screen[4].startswith("looked into at 60.0 s, held 2.0 ms while its memory was read; 2 errors: ")
    assert screen[5:14] == [
        "  98 % of the 12.1 KiB that grew since the look at 50.0 s are retained by",
        "    cache.table [srv]",
        "  lost: 400 bytes in 3 blocks (+152 B)",
        "  retained*      grown  by (with what is below)",
        "   87.9 KiB       +0 B  other [srv]",
        "   28.0 KiB  +12.0 KiB  cache.table [srv]",
        "   28.0 KiB  +12.0 KiB    7 x a block from make_node a.c:5",
        "       13 B       -1 B    a block from make_node a.c:5",
        "",
    ]
    state.sort_by_next()
    screen = [line.rstrip() for line in lines(state)]
    assert [line.split("  ")[-1] for line in screen[8:11]] == [
        "by (with what is below)", "cache.table [srv]", "7 x a block from make_node a.c:5",
    ]  # fmt: skip
    assert state.sort == "bytes"  # that of the entries is another


def test_what_holds_memory_in_40_columns() -> None:
    state = TopState("./srv", [after_two_looks()], view=HELD, held_sort="grown")
    screen = [line.rstrip() for line in lines(state, 40)]
    assert screen[5:7] == ["  98 % of the 12.1 KiB that grew since", "    the look at 50.0 s are retained by"]
    assert screen[9:12] == [
        "     grown*  by", "  +12.0 KiB  cache.table [srv]", "  +12.0 KiB    7 x make_node a.c:5",
    ]  # fmt: skip
    none = "\n".join(line.strip() for line in lines(TopState("./srv", samples(), view=HELD), 40))
    assert "not looked into yet\npress l: the target stands while its\nmemory is read\n" in none


def test_a_wide_screen_says_who_holds_an_entry() -> None:
    head, _, page = (line.rstrip() for line in lines(TopState("./srv", [after_two_looks()]), 200)[5:8])
    assert head.split()[-4:] == ["made", "in", "held", "by"]
    assert page[head.index("made in") :].startswith("parse_body (body.c:118)  ")
    assert page[head.index("held by") :] == "cache.table [srv] and 1 more"
    assert lines(TopState("./srv", samples()), 200)[5].rstrip().endswith("made in")  # nobody looked


def test_the_details_say_who_holds_it_and_since_when() -> None:
    sample = after_two_looks()
    page = max(sample.rows, key=lambda row: row.count)
    screen = [line.rstrip() for line in lines(TopState("x", [sample], view=DETAILS, selected=page.id))]
    at = screen.index("  7 still reachable (+3)")
    assert screen[at + 1 : at + 4] == [
        "  held by a block from make_node a.c:5: 6 (+3)", "  held by cache.table [srv]: 1",
        "  without cache.table [srv] it would be lost",
    ]  # fmt: skip


def test_it_says_that_it_looks() -> None:
    assert "looking into the memory ...; 2 errors" in lines(TopState("x", samples(), looking=True))[4]
