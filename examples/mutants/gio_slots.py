"""Slots of GIO 2.74: where a reference is kept, by the place that takes it and by the place that gives it back.

The library's source says it of what the library keeps. What its tests keep is one slot: they are not changed, and what
one function of a test takes another gives back. What GLib keeps is said in glib_slots.py.
"""

from __future__ import annotations

import re
from itertools import dropwhile

import glib_slots
from program import Calls, beyond

_ANY = None
_TEST = "test"
_TESTS = re.compile(
    r"test(_\w+)?$|(basic|error|legacy_error)_return$|(async_result|return_result|wait_for_cancel)_cb$|create_server_full$"
    r"|anon_thread_func$|callback_func$|clog_up_thread_pool$|(create|destroy)_streams$|echo_server_(dgram_)?thread$"
    r"|ensure_destroyed$|insert_string$|list_model_get$|message_(copy|lock)$|run_nested_task_thread$|same_start$|sleepy_stream_new$"
    r"|\w+_main$|wait_for_completed_notification$"
)
_WRAPPERS = {
    "g_object_new", "g_object_ref_sink", "g_initable_new", "g_initable_new_valist", "g_list_foreach",
    "g_list_free_full", "g_slist_foreach", "g_slist_free_full", "ptr_array_free", "g_ptr_array_free",
    "g_ptr_array_unref", "g_value_unset", "g_set_object", "g_assert_finalize_object", "g_value_dup_object",
}  # fmt: skip
"""What calls a create, a get or a put for whoever calls it."""
_HANDS_UP = {
    "GObject": re.compile(
        r"_?g_\w+_new(_(from|with|sized|resizable|native|valist|loopback|method|for|tmp)\w*)?$|\w+_from_tokens$"
        r"|g_(local_)?vfs_get_file_for_\w+$|new_for_cmdline_arg$|g_file_new_\w+$|g_(local_)?file_(read|replace)$"
        r"|_g_local_file_output_stream_replace$|g_icon_deserialize\w*$|g_icon_new_\w+$"
        r"|g_socket_(accept|get_local_address|receive\w*)$|g_dbus_message_copy$|cache_recv_address$"
        r"|input_message_from_msghdr$|g_(list_store|list_model)_get_(item|object)$"
        r"|g_(simple_)?async_result_get_source_object$|g_task_ref_source_object$|g_value_object_lcopy_value$"
        r"|g_object_get(_valist)?$|g_socket_connection_factory_create_connection$"
    ),
    "GVariant": re.compile(r"g_\w*(icon|emblem)_serialize$"),
    "GBytes": re.compile(r"g_memory_output_stream_steal_as_bytes$|g_input_stream_read_bytes$"),
    "GSource": re.compile(r"socket_source_new$|g_socket_create_source$"),
}
"""Functions that return what they take, or store it where their caller said."""
_Lines = dict[int | None, str]
_BIRTHS: dict[str, dict[str, _Lines]] = {
    "GObject": {
        "_g_local_file_io_stream_new": {65: "io.input_stream"},
        "g_file_new_tmp": {6940: "@g_file_new_tmp"},
        "g_io_stream_splice_async": {872: "op1_cancellable", 873: "op2_cancellable", 876: "@g_io_stream_splice_async"},
        "g_emblemed_icon_from_tokens": {380: "emblemed.icon", 388: "emblems"},
        "g_emblem_from_tokens": {340: "@g_emblem_from_tokens"},
        "g_icon_new_for_string_simple": {414: "@g_icon_new_for_string_simple", 415: "@g_icon_new_for_string_simple"},
        "g_icon_deserialize_emblem": {489: "@g_icon_deserialize_emblem"},
        "g_icon_deserialize_emblemed": {527: "@g_icon_deserialize_emblemed", 539: "@g_icon_deserialize_emblemed"},
        "g_inet_address_mask_new_from_string": {
            308: "@g_inet_address_mask_new_from_string", 316: "@g_inet_address_mask_new_from_string",
        },
        "g_socket_address_new_from_native": {233: "@g_socket_address_new_from_native"},
        "reparse_ignore_hosts": {188: "ignore_ips"},
    },
    "GVariant": {
        "set_string_header": {_ANY: "headers"},
        "set_object_path_header": {_ANY: "headers"},
        "g_dbus_message_copy": {_ANY: "headers"},
        "g_emblemed_icon_serialize": {
            421: "@g_emblemed_icon_serialize", 433: "@g_emblemed_icon_serialize", 445: "@g_emblemed_icon_serialize",
        },
        "g_emblem_serialize": {361: "@g_emblem_serialize"},
    },
    "GBytes": {"g_memory_input_stream_add_bytes": {286: "chunks"}},
}  # fmt: skip
"""Of what a function makes, by the line that makes it."""
_GETS: dict[str, _Lines] = {
    "_g_local_file_io_stream_new": {62: "io.output_stream"},
    "cache_recv_address": {5406: "recv_addr_cache"},
    "g_buffered_input_stream_fill_async": {_ANY: "pending"},
    "g_input_stream_read_async": {_ANY: "pending"},
    "g_input_stream_close_async": {_ANY: "pending"},
    "g_input_stream_skip_async": {_ANY: "pending"},
    "g_emblem_new": {_ANY: "emblem.icon"},
    "g_emblem_new_with_origin": {_ANY: "emblem.icon"},
    "g_emblemed_icon_add_emblem": {_ANY: "emblems"},
    "g_inet_socket_address_set_property": {_ANY: "address"},
    "g_io_stream_splice_async": {869: "stream1", 870: "stream2", 890: "spliced", 896: "spliced"},
    "splice_cb": {_ANY: "closed"},
    "g_list_store_append": {_ANY: "items"},
    "g_list_store_insert": {_ANY: "items"},
    "g_list_store_insert_sorted": {_ANY: "items"},
    "g_list_store_splice": {_ANY: "items"},
    "g_output_stream_real_splice_async": {_ANY: "op.source"},
    "g_output_stream_splice_async": {_ANY: "task_data"},
    "g_simple_async_result_complete_in_idle": {_ANY: "source"},
    "g_simple_async_result_new": {_ANY: "simple.source_object"},
    "g_socket_connect": {_ANY: "remote_address"},
    "g_task_attach_source": {_ANY: "source"},
    "g_task_new": {725: "source_object", 726: "cancellable"},
    "g_task_return": {_ANY: "return"},
    "g_task_start_task_thread": {1530: "handler", 1539: "pool"},
    "g_converter_input_stream_set_property": {_ANY: "converter"},
    "g_converter_output_stream_set_property": {_ANY: "converter"},
    "g_emblemed_icon_set_property": {_ANY: "emblemed.icon"},
    "g_file_icon_set_property": {_ANY: "file"},
    "g_filter_input_stream_set_property": {_ANY: "base_stream"},
    "g_filter_output_stream_set_property": {_ANY: "base_stream"},
    "g_inet_address_mask_set_property": {_ANY: "addr"},
    "g_simple_io_stream_set_property": {104: "io.input_stream", 108: "io.output_stream"},
    "g_socket_connection_set_property": {_ANY: "socket"},
    "g_value_object_collect_value": {_ANY: "value"},
    "g_value_set_object": {_ANY: "value"},
    "g_value_object_copy_value": {_ANY: "value"},
    "g_value_init_from_instance": {_ANY: "value"},
    "socket_source_new": {_ANY: "source.socket"},
    "g_object_get_valist": {2872: "@g_object_get_valist"},
}
_PUTS: dict[str, _Lines] = {
    "async_fill_callback_wrapper": {_ANY: "pending"},
    "async_ready_callback_wrapper": {_ANY: "pending"},
    "async_ready_close_callback_wrapper": {459: "task", 580: "pending", 1944: "task"},
    "complete_in_idle_cb": {_ANY: "return"},
    "free_splice_data": {_ANY: "op.source"},
    "g_converter_input_stream_finalize": {_ANY: "converter"},
    "g_converter_output_stream_finalize": {_ANY: "converter"},
    "g_emblem_finalize": {_ANY: "emblem.icon"},
    "g_emblemed_icon_finalize": {76: "emblemed.icon", 77: "emblems"},
    "g_emblemed_icon_clear_emblems": {_ANY: "emblems"},
    "g_file_icon_finalize": {_ANY: "file"},
    "g_filter_input_stream_finalize": {_ANY: "base_stream"},
    "g_filter_output_stream_dispose": {_ANY: "base_stream"},
    "g_inet_address_mask_dispose": {_ANY: "addr"},
    "g_inet_socket_address_dispose": {_ANY: "address"},
    "g_io_stream_splice_async": {_ANY: "@g_io_stream_splice_async"},
    "g_local_file_io_stream_finalize": {49: "io.input_stream", 50: "io.output_stream"},
    "g_simple_async_result_finalize": {_ANY: "simple.source_object"},
    "g_simple_io_stream_finalize": {85: "io.input_stream", 88: "io.output_stream"},
    "g_socket_close": {_ANY: "remote_address"},
    "g_socket_connection_finalize": {_ANY: "socket"},
    "g_socket_finalize": {_ANY: "recv_addr_cache"},
    "g_source_callback_unref": {_ANY: "source"},
    "g_task_finalize": {661: "source_object", 662: "cancellable", 669: "task_data", 672: _TEST},
    "g_task_return": {_ANY: "return"},
    "g_task_thread_pool_thread": {_ANY: "pool"},
    "g_value_object_free_value": {_ANY: "value"},
    "real_node_free": {_ANY: "items"},
    "socket_source_finalize": {_ANY: "source.socket"},
    "splice_cb": {_ANY: "spliced"},
    "splice_close_cb": {_ANY: "closed"},
    "splice_context_free": {690: "stream1", 691: "stream2", 694: "op1_cancellable", 695: "op2_cancellable"},
    "task_thread_cancelled_disconnect_notify": {_ANY: "handler"},
    "reparse_ignore_hosts": {167: "ignore_ips"},
}
_PUTS_TASK = {
    "async_ready_flush_callback_wrapper", "async_ready_splice_callback_wrapper", "async_ready_write_callback_wrapper",
    "fill_async_callback", "g_data_input_stream_read_complete", "g_input_stream_real_close_async",
    "g_input_stream_real_read_async", "g_input_stream_real_skip_async", "g_memory_input_stream_close_async",
    "g_memory_input_stream_skip_async", "g_memory_output_stream_close_async", "g_output_stream_real_close_async",
    "g_output_stream_real_flush_async", "g_output_stream_real_splice_async", "g_output_stream_real_write_async",
    "g_simple_proxy_resolver_lookup_async", "g_task_report_error", "large_skip_callback", "real_close_async_cb",
    "real_splice_async_complete_cb", "skip_fill_buffer_callback", "stream_close_complete",
}  # fmt: skip
"""What puts the task that was made for an operation: where it begins, or where it is told that it has ended."""
_PASSING = {"value", "pending", "return", "pool", "handler", "spliced", "closed"}
"""Slots in no counted object: in a value, or in what an operation is given until it has ended."""
_PLACES = (*_GETS.values(), *_BIRTHS["GObject"].values())
_MEMBERS = {slot for lines in _PLACES for slot in lines.values() if slot[0] != "@"}
HELD: dict[str, set[str]] = glib_slots.HELD | {
    "GObject": _MEMBERS - _PASSING,
    "GBytes": {"variant", "bytes", "chunks"},
    "GVariant": {"children", "headers"},
}
"""The slots of each family in other counted objects: of what is alive only because such another is."""


def unwrapped(stack: Calls) -> Calls:
    """Return the stack from the function on that wanted the get or the put."""
    return glib_slots.unwrapped(beyond(stack, _WRAPPERS.__contains__))


def put_slot(kind: str, stack: Calls) -> str:
    """Return the slot that a put empties."""
    calls = unwrapped(stack)
    function, line = calls[0]
    lines = _PUTS.get(function, {}) if kind == "GObject" else {}
    if slot := lines.get(line) or lines.get(_ANY):
        return slot
    if kind == "GObject" and function in _PUTS_TASK:
        return "task"
    if kind == "GBytes" and function == "g_memory_input_stream_finalize":
        return "chunks"
    slot = glib_slots.put_slot(kind, calls) if kind != "GObject" else f"@{function}"
    return "headers" if slot == "dict" else _TEST if _TESTS.match(slot[1:]) else slot


def get_slots(kind: str, stack: Calls, birth: bool) -> set[str]:
    """Return the slots that a reference may be kept in: two where one call takes two and hands up either."""
    calls = unwrapped(stack)
    if kind != "GObject":
        return {_handed_up(kind, calls, slot) for slot in glib_slots.get_slots(kind, calls, birth)}
    if birth and calls[0][0] == "g_task_new":
        slot = _handed_up(kind, calls, "@g_task_new")
        return {slot if slot in (_TEST, "@g_io_stream_splice_async") else "task"}
    function, line = calls[0]
    lines = {} if birth else _GETS.get(function, {})
    return {lines.get(line) or lines.get(_ANY) or _handed_up(kind, calls, f"@{function}")}


def _handed_up(kind: str, calls: Calls, slot: str) -> str:
    """Return the slot of who keeps what a function of GIO returns."""
    if slot[0] != "@":
        return "headers" if slot == "dict" else slot
    places = _BIRTHS.get(kind, {})
    for function, line in dropwhile(lambda call: call[0] != slot[1:], calls):
        lines = places.get(function, {})
        if known := lines.get(line) or lines.get(_ANY):
            return known
        if kind not in _HANDS_UP or not _HANDS_UP[kind].match(function):
            return _TEST if _TESTS.match(function) else f"@{function}"
    return slot
