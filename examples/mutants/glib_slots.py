"""Slots of GLib 2.74: where a reference is kept, by the place that takes it and by the place that gives it back.

The library's source says it of what the library keeps. A test of GLib mostly keeps what it makes in a local variable.
"""

from __future__ import annotations

import re
from itertools import dropwhile

from program import Calls, beyond

_ANY = None
Lines = dict[int | None, set[str]]

_WRAPPERS = {
    "g_source_unref", "g_variant_ref_sink", "g_tree_destroy", "g_slist_free_full", "check_and_free", "untrusted",
}  # fmt: skip
"""What calls a get or a put for whoever calls it."""
_MAKES_VARIANTS = re.compile(
    r"g_variant_(new|alloc|valist_new|deep_copy|builder_end|dict_end|parse)|\w+_get_value$|(\w+_)?parse$|maybe_wrapper$"
    r"|ast_resolve$|untrusted$|get_asv$"
)
_ARGUMENT = re.compile(r"g_variant_(valist_|get_va$|get$|get_child$|iter_loop$|iter_next$|lookup$|dict_lookup$)")
_OF_ARGUMENTS = {"g_variant_valist_get_nnp", "g_variant_valist_free_nnp"}
"""What gives a reference to a variable of its caller, or puts that there, by way of the argument list."""
_HANDS_UP = {
    "GSource": re.compile(r"(g_)?(idle|timeout|unix_fd|child_watch)_source_new|g_io_(unix_)?create_watch$"),
    "GMainContext": re.compile(r"g_main_context_(new|ref_thread_default|new_with_next_id)$"),
    "GKeyFile": re.compile("load_data$"),
    "GBytes": re.compile(r"g_bytes_new|g_variant_get_data_as_bytes$|untrusted$"),
    "GMatchInfo": re.compile(r"match_info_new$|g_regex_match(_all)?(_full)?$"),
    "GTree": re.compile(r"g_tree_new"),
    "GAsyncQueue": re.compile(r"g_async_queue_new"),
    "GVariantTypeInfo": re.compile(r"g_variant_type_info_get$|gvs_\w+_get_child$|g_variant_serialised_get_child$"),
    "GVariant": re.compile(
        r"g_variant_((maybe_)?get_child_value|get_variant|get_maybe|iter_next_value|lookup_value|dict_lookup_value"
        r"|get_normal_form|byteswap|valist_get_(nnp|leaf))$"
    ),
}
"""Functions that return what they take."""
_PUTS_SOME = {("GVariant", "g_variant_lookup_value")}
"""Those that put some of it."""
_CHILDREN = {"children"}
_LOOKUP = {"@g_variant_lookup_value"}
_COPY = {"@g_variant_deep_copy"}
_FROM_SOURCE = "test_maincontext_source_finalization_from_source"
_FROM_DISPATCH = "test_maincontext_source_finalization_from_dispatch"
_BIRTHS: dict[tuple[str, str], Lines] = {
    ("GSource", "swap_sources"): {_ANY: {"@test_swapping_child_sources", "@swap_sources"}},
    ("GSource", _FROM_SOURCE): {_ANY: {f"@{_FROM_SOURCE}", "@finalize_source_with_source"}},
    ("GSource", _FROM_DISPATCH): {_ANY: {f"@{_FROM_DISPATCH}", "@finalize_source_with_source"}},
    ("GBytes", "g_variant_ensure_serialised"): {_ANY: {"variant"}},
    ("GVariantTypeInfo", "gvs_variant_is_normal"): {_ANY: {"@gvs_variant_is_normal", "@gvs_variant_get_child"}},
    ("GVariantTypeInfo", "random_instance"): {_ANY: {"@random_instance_free"}},
    ("GVariantTypeInfo", "g_variant_alloc"): {_ANY: {"variant"}},
    ("GVariantTypeInfo", "array_info_new"): {_ANY: {"container"}},
    ("GVariantTypeInfo", "tuple_allocate_members"): {_ANY: {"container"}},
    ("GVariantTypeInfo", "g_variant_get_child_value"): {_ANY: {"variant", "@g_variant_get_child_value"}},
    ("GVariantTypeInfo", "g_variant_maybe_get_child_value"): {_ANY: {"variant", "@g_variant_maybe_get_child_value"}},
    ("GVariant", "g_variant_builder_add"): {_ANY: _CHILDREN},
    ("GVariant", "g_variant_builder_close"): {_ANY: _CHILDREN},
    ("GVariant", "g_variant_lookup_value"): {1057: _LOOKUP, 1062: _LOOKUP},
    ("GVariant", "g_variant_dict_init"): {_ANY: {"dict"}},
    ("GVariant", "g_variant_dict_insert"): {_ANY: {"dict"}},
    ("GVariant", "test_stack_dict_init"): {_ANY: {"dict", "children", "@test_stack_dict_init"}},
    ("GVariant", "g_variant_deep_copy"): {
        5889: _COPY, 5890: _CHILDREN, 5933: _COPY, 5941: _CHILDREN, 5949: _COPY, 5950: _COPY,
    },
}
_GETS: dict[tuple[str, str], Lines] = {
    ("GVariant", "g_variant_lookup_value"): {1057: _LOOKUP, 1062: _LOOKUP},
    ("GVariant", "g_variant_dict_init"): {_ANY: {"dict"}},
    ("GSource", "g_source_attach_unlocked"): {_ANY: {"context"}},
    ("GSource", "g_source_iter_next"): {_ANY: {"iterator"}},
    ("GSource", "g_source_add_child_source"): {_ANY: {"parent"}},
    ("GSource", "g_main_context_check"): {_ANY: {"pending"}},
    ("GMainContext", "g_main_loop_new"): {_ANY: {"loop"}},
    ("GMainContext", "g_main_context_push_thread_default"): {_ANY: {"thread"}},
    ("GRegex", "match_info_new"): {_ANY: {"match"}},
    ("GBytes", "g_variant_new_from_bytes"): {_ANY: {"variant"}},
    ("GBytes", "g_variant_get_child_value"): {_ANY: {"variant"}},
    ("GBytes", "g_variant_maybe_get_child_value"): {_ANY: {"variant"}},
    ("GBytes", "g_bytes_new_from_bytes"): {250: {"bytes"}},
    ("GVariant", "g_variant_builder_add_value"): {_ANY: _CHILDREN},
    ("GVariant", "g_variant_iter_new"): {_ANY: {"iterator"}},
    ("GVariant", "g_variant_dict_insert_value"): {_ANY: {"dict"}},
    ("GVariantTypeInfo", "g_variant_alloc"): {_ANY: {"variant"}},
    ("GVariantTypeInfo", "array_info_new"): {_ANY: {"container"}},
    ("GVariantTypeInfo", "tuple_allocate_members"): {_ANY: {"container"}},
    ("GVariantTypeInfo", "g_variant_get_child_value"): {_ANY: {"variant", "@g_variant_get_child_value"}},
    ("GVariantTypeInfo", "g_variant_maybe_get_child_value"): {_ANY: {"variant", "@g_variant_maybe_get_child_value"}},
}
_PUTS: dict[tuple[str, str], dict[int | None, str]] = {
    ("GSource", "g_source_destroy_internal"): {_ANY: "context"},
    ("GSource", "g_source_iter_next"): {_ANY: "iterator"},
    ("GSource", "g_source_iter_clear"): {_ANY: "iterator"},
    ("GSource", "g_child_source_remove_internal"): {_ANY: "parent"},
    ("GSource", "g_source_unref_internal"): {2413: "parent"},
    ("GSource", "g_main_dispatch"): {_ANY: "pending"},
    ("GSource", "g_main_context_prepare"): {_ANY: "pending"},
    ("GSource", "g_main_context_unref"): {625: "pending"},
    ("GMainContext", "g_main_loop_unref"): {_ANY: "loop"},
    ("GMainContext", "g_main_context_pop_thread_default"): {_ANY: "thread"},
    ("GRegex", "g_match_info_unref"): {_ANY: "match"},
    ("GBytes", "g_variant_unref"): {_ANY: "variant"},
    ("GBytes", "g_bytes_unref"): {_ANY: "bytes"},
    ("GVariant", "g_variant_release_children"): {_ANY: "children"},
    ("GVariant", "g_variant_builder_clear"): {_ANY: "children"},
    ("GVariant", "g_variant_iter_free"): {_ANY: "iterator"},
    ("GVariant", "g_hash_table_remove_all_nodes"): {_ANY: "dict"},
    ("GVariant", "g_hash_table_insert_node"): {_ANY: "dict"},
    ("GVariantTypeInfo", "g_variant_unref"): {_ANY: "variant"},
    ("GVariantTypeInfo", "array_info_free"): {_ANY: "container"},
    ("GVariantTypeInfo", "tuple_info_free"): {_ANY: "container"},
}
HELD: dict[str, set[str]] = {
    "GSource": {"context", "parent", "pending"},
    "GMainContext": {"loop"},
    "GVariant": {"children"},
    "GVariantTypeInfo": {"variant", "container"},
    "GBytes": {"variant", "bytes"},
    "GRegex": {"match"},
}
"""The slots of each family in other counted objects: of what is alive only because such another is."""


def unwrapped(stack: Calls) -> Calls:
    """Return the stack from the function on that wanted the get or the put."""
    return beyond(stack, _WRAPPERS.__contains__)


def put_slot(kind: str, stack: Calls) -> str:
    """Return the slot that a put empties."""
    calls = unwrapped(stack)
    if calls[0][0] in _OF_ARGUMENTS:
        calls = tuple(dropwhile(lambda call: _ARGUMENT.match(call[0]), calls)) or calls
    function, line = calls[0]
    lines = _PUTS.get((kind, function), {})
    return lines.get(line) or lines.get(_ANY) or f"@{function}"


def get_slots(kind: str, stack: Calls, birth: bool) -> set[str]:
    """Return the slots that a reference may be kept in: two where one call takes two and hands up either."""
    places = _BIRTHS if birth else _GETS
    function, by_argument, slots = "", False, set[str]()
    for function, line in unwrapped(stack):
        lines = places.get((kind, function), {})
        if known := lines.get(line) or lines.get(_ANY):
            return known
        if kind == "GVariant" and not birth and function.startswith("g_variant_new_"):
            return _CHILDREN
        slots |= {f"@{function}"} if (kind, function) in _PUTS_SOME else set()
        by_argument = by_argument or function in _OF_ARGUMENTS
        if not _hands_up(kind, function, birth) and not (by_argument and _ARGUMENT.match(function)):
            break
    slots |= {f"@{function}"}
    return slots | _CHILDREN if kind == "GVariant" and birth else slots


def _hands_up(kind: str, function: str, birth: bool) -> bool:
    if kind == "GVariant" and birth and _MAKES_VARIANTS.match(function):
        return True
    return kind in _HANDS_UP and _HANDS_UP[kind].match(function) is not None
