"""Slots of perf 6.1: where a reference is kept, by the place that takes it and by the place that gives it back."""

from __future__ import annotations

import re

from program import Calls, beyond

_HANDS_UP = {
    "thread": "__threads__get_last_match threads__get_last_match ____machine__findnew_thread __machine__findnew_thread"
    " machine__findnew_thread machine__find_thread machine__idle_thread",
    "dso": "dsos__findnew_id machine__findnew_dso_id machine__findnew_kernel machine__get_kernel machine__findnew_vdso"
    " machine__findnew_dso dsos__findnew dso__new_id dso__new",
    "map": "map__new map__new2 map__clone kernel_get_module_map get_target_map",
    "cpus": "perf_cpu_map__new perf_cpu_map__read cpu_map__read_all_cpu_map cpu_map__trim_new perf_cpu_map__alloc"
    " perf_cpu_map__dummy_new perf_cpu_map__empty_new cpu_map__from_range cpu_map__new_data perf_cpu_map__default_new"
    " perf_cpu_map__merge cpu_map__online",
    "threads": "perf_thread_map__new_array thread_map__new_by_tid_str thread_map__new_by_tid thread_map__new_str"
    " thread_map__new thread_map__new_event thread_map__copy_event perf_thread_map__new_dummy"
    " thread_map__new_by_pid_str",
}
_INITIALIZERS = {"map__init", "maps__init", "comm_str__alloc", "perf_cpu_map__alloc"}
_WRAPPER = re.compile(r"^_*\w+__z?(get|put)$")
_PUT_SLOTS = {
    "cs": {}, "maps": {}, "nsi": {"thread__delete": "thread.nsinfo"},
    "dso": {"map__exit": "map.dso", "dsos__purge": "list", "__dsos__addnew_id": "new", "__machine__addnew_vdso": "new"},
    "map": {"__maps__purge": "tree", "__maps__remove": "tree", "hists__findnew_entry": "he.map",
            "callchain_cursor_reset": "cursor", "free_callchain_node": "chain",
            "machine__destroy_kernel_maps": "vmlinux"},
    "cpus": {"evsel__exit": "evsel.cpus"},
    "threads": {"perf_evlist__exit": "evlist.threads", "evsel__exit": "evsel.threads"},
    "thread": {"__machine__remove_thread": "tree", "hist_entry__delete": "he.thread", "addr_location__put": "al"},
}  # fmt: skip
_PUT_LINES: dict[tuple[str, str], dict[int | None, str]] = {
    ("map", "maps__fixup_overlappings"): {306: "tree", None: "@maps__fixup_overlappings"},
    ("map", "hist_entry__delete"): {1317: "mem.map", 1318: "mem.map", None: "he.map"},
    ("cpus", "perf_evlist__exit"): {138: "evlist.user", 139: "evlist.all"},
}
_ONLY_SLOT = {"cs": "comm.str", "maps": "thread.maps", "nsi": "dso.nsinfo", "mi": "mi", "cgrp": "cgrp"}
_GET_SLOTS = {
    "dso": {"map__init": "map.dso", "map__clone": "map.dso", "__dsos__add": "list", "__machine__addnew_vdso": "list"},
    "map": {"__maps__insert": "tree", "callchain_cursor_append": "cursor", "fill_node": "chain",
            "hist_entry__init": "he.map", "hists__findnew_entry": "he.map"},
    "cpus": {"perf_evlist__set_maps": "evlist.user", "__perf_evlist__propagate_maps": "evsel.cpus"},
    "threads": {"__perf_evlist__propagate_maps": "evsel.threads", "perf_evlist__set_maps": "evlist.threads"},
    "thread": {"hist_entry__init": "he.thread"},
}  # fmt: skip
_GET_LINES = {
    ("map", "hist_entry__init"): {471: "mem.map", 472: "mem.map"},
    ("cpus", "__perf_evlist__propagate_maps"): {63: "evlist.all"},
}
_CAME_TO = {
    ("map", "__machine__create_kernel_maps"): "vmlinux", ("thread", "machine__resolve"): "al",
    ("cpus", "process_cpu_map_event"): "@perf_script__exit",
    ("threads", "process_thread_map_event"): "@perf_script__exit",
    ("cpus", "process_numa_topology"): "@perf_env__exit", ("cpus", "__evsel__prepare_open"): "static",
    ("cpus", "perf_stat_init_aggr_mode"): "@perf_stat__exit_aggr_mode",
    ("cpus", "cpu_aggr_map__empty_new"): "@perf_stat__exit_aggr_mode",
}  # fmt: skip
HELD = {
    "dso": {"map.dso"}, "map": {"tree"}, "maps": {"thread.maps"}, "nsi": {"thread.nsinfo", "dso.nsinfo"},
    "cs": {"comm.str"},
}  # fmt: skip
"""The slots of each family in other counted objects: of what is alive only because such another is."""


def family(type_name: str) -> str:
    """Return one name for a type whose counter is spelled in several ways."""
    name = type_name.strip("&").split("->")[0].split(".")[0]
    return {"nnsi": "nsi", "cgroup": "cgrp"}.get(name, name)


def put_slot(kind: str, stack: Calls) -> str:
    """Return the slot that a put empties."""
    function, line = unwrapped(stack)[0]
    lines = _PUT_LINES.get((kind, function), {})
    found = lines.get(line) or lines.get(None) or _PUT_SLOTS.get(kind, {}).get(function)
    return found or _ONLY_SLOT.get(kind) or f"@{function}"


def get_slots(kind: str, stack: Calls, birth: bool) -> set[str]:
    """Return the slots that a reference may be kept in: two where one call takes two and hands up either."""
    calls = unwrapped(stack)
    function, line = calls[0]
    if kind in _ONLY_SLOT:
        return {_only_slot(kind, calls)}
    inlined = {name for name, _ in stack[:3]}
    if kind == "dso" and not birth and "map__init" in inlined:
        return {"map.dso"}
    if kind == "dso" and birth:
        return {"new"}
    known = _GET_LINES.get((kind, function), {}).get(line) or _GET_SLOTS.get(kind, {}).get(function)
    if known and not birth:
        return {known}
    came_to = _came_to(kind, calls)
    slot = _CAME_TO.get((kind, came_to), f"@{came_to}")
    made = birth or (function, line) == ("____machine__findnew_thread", 672)
    return {slot, "tree"} if kind == "thread" and made else {slot}


def unwrapped(stack: Calls) -> Calls:
    """Return the stack from the function on that wanted the get or the put."""
    return beyond(stack, _is_wrapper)


def _is_wrapper(function: str) -> bool:
    return function in _INITIALIZERS or (bool(_WRAPPER.match(function)) and function != "addr_location__put")


def _only_slot(kind: str, calls: Calls) -> str:
    through = {function for function, _ in calls}
    if kind == "maps" and "thread__init_maps" not in through:
        return "machine.kmaps"
    return "thread.nsinfo" if kind == "nsi" and "thread__new" in through else _ONLY_SLOT[kind]


def _came_to(kind: str, calls: Calls) -> str:
    """Return the function that a reference was handed up to."""
    hands_up = {*_HANDS_UP.get(kind, "").split(), *(["thread__new"] if kind == "thread" else [])}
    return next((function for function, _ in calls if function not in hands_up), calls[-1][0])
