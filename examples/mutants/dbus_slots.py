"""Slots of dbus 1.14: where a reference is kept, by the place that takes it and by the place that gives it back.

Where a function ends by a jump to a put (a tail call), its frame is gone: the place is the call of that function.
"""

from __future__ import annotations

from program import Calls, beyond

_ANY = None
ONLY = "only"
"""The slot of objects to which nobody but their creator takes a reference."""
Lines = dict[int | None, str]

_WRAPPERS = {
    "_dbus_list_foreach", "_dbus_list_clear_full", "dbus_clear_message", "_dbus_clear_credentials", "free_rule_func",
}  # fmt: skip
"""What calls a put for whoever calls it."""
_HANDS_UP = {
    "DBusMessage": {
        "dbus_message_new", "dbus_message_new_method_call", "dbus_message_new_method_return", "dbus_message_new_error",
        "dbus_message_new_error_printf", "dbus_message_new_signal", "dbus_message_copy", "_dbus_asv_new_method_return",
    },
    "BusMatchRule": {"bus_match_rule_parse"},
    "DBusServer": {"_dbus_server_new_for_domain_socket"},
}  # fmt: skip
_BIRTHS: dict[tuple[str, str], dict[int | None, set[str]]] = {
    ("DBusMessage", "_dbus_message_loader_queue_messages"): {_ANY: {"incoming", "@load_message"}},
    ("DBusMessage", "_dbus_connection_new_for_transport"): {_ANY: {"incoming", "disconnect"}},
    ("DBusMessage", "bus_connection_preallocate_oom_error"): {_ANY: {"oom"}},
    ("BusOwner", "bus_service_add_owner"): {_ANY: {"service.owners"}},
    ("BusService", "bus_driver_handle_hello"): {_ANY: {"registry", "cancel"}},
    ("BusService", "bus_registry_acquire_service"): {_ANY: {"registry", "cancel"}},
    ("DBusBabysitter", "_dbus_spawn_async_with_babysitter"): {_ANY: {"activation"}},
    ("DBusServer", "_dbus_server_listen_platform_specific"): {_ANY: {"context"}},
    ("DBusLoop", "bus_context_new"): {_ANY: {"context"}},
    ("DBusWatch", "_dbus_server_new_for_socket"): {_ANY: {"server"}},
    ("DBusWatch", "_dbus_spawn_async_with_babysitter"): {1329: {"error pipe"}, 1350: {"babysitter"}},
    ("DBusWatch", "_dbus_transport_new_for_socket"): {1312: {"write"}, 1319: {"read"}},
    ("DBusWatch", "setup_reload_pipe"): {_ANY: {"reload"}},
    ("DBusCounter", "_dbus_connection_new_for_transport"): {_ANY: {"outgoing"}},
    ("DBusCounter", "_dbus_transport_init_base"): {_ANY: {"live"}},
}
_GETS: dict[tuple[str, str], Lines] = {
    ("DBusMessage", "bus_transaction_send"): {_ANY: "transaction"},
    ("DBusMessage", "_dbus_connection_send_preallocated_unlocked_no_update"): {_ANY: "outgoing"},
    ("DBusMessage", "bus_activation_activate_service"): {_ANY: "activation"},
    ("BusMatchRule", "bus_matchmaker_add_rule"): {_ANY: "matchmaker"},
    ("BusOwner", "add_cancel_ownership_to_transaction"): {_ANY: "cancel"},
    ("BusOwner", "add_restore_ownership_to_transaction"): {_ANY: "restore"},
    ("BusService", "add_cancel_ownership_to_transaction"): {_ANY: "cancel"},
    ("BusService", "add_restore_ownership_to_transaction"): {_ANY: "restore"},
    ("BusPolicyRule", "bus_policy_append_default_rule"): {_ANY: "default"},
    ("BusPolicyRule", "bus_policy_append_mandatory_rule"): {_ANY: "mandatory"},
    ("BusPolicyRule", "bus_policy_append_console_rule"): {_ANY: "console"},
    ("BusPolicyRule", "bus_policy_append_user_rule"): {_ANY: "users and groups"},
    ("BusPolicyRule", "bus_policy_append_group_rule"): {_ANY: "users and groups"},
    ("BusPolicyRule", "bus_client_policy_append_rule"): {_ANY: "client"},
    ("DBusCounter", "_dbus_connection_preallocate_send_unlocked"): {_ANY: "message"},
    ("DBusCounter", "_dbus_message_add_counter"): {_ANY: "message"},
    ("DBusWatch", "_dbus_loop_add_watch"): {_ANY: "loop"},
    ("DBusWatch", "_dbus_watch_list_add_watch"): {_ANY: "list"},
    ("DBusTransport", "_dbus_connection_new_for_transport"): {_ANY: "connection"},
    ("DBusConnection", "bus_connections_setup_connection"): {_ANY: "connections"},
    ("DBusConnection", "_dbus_loop_queue_dispatch"): {_ANY: "loop"},
    ("DBusConnection", "add_cancel_ownership_to_transaction"): {_ANY: "cancel"},
    ("DBusConnection", "add_restore_ownership_to_transaction"): {_ANY: "restore"},
    ("DBusConnection", "bus_activation_activate_service"): {_ANY: "activation"},
}
_UPDATE = "@_dbus_connection_update_dispatch_status_and_unlock"
_CLOSE = "@_dbus_connection_close_possibly_shared_and_unlock"
_PUTS: dict[tuple[str, str], Lines] = {
    ("DBusMessage", "message_to_send_free"): {_ANY: "transaction"},
    ("DBusMessage", "_dbus_connection_unlock"): {_ANY: "outgoing"},
    ("DBusMessage", "bus_pending_activation_entry_free"): {_ANY: "activation"},
    ("DBusMessage", "dbus_connection_dispatch"): {_ANY: "incoming"},
    ("DBusMessage", "_dbus_connection_last_unref"): {2791: "disconnect", _ANY: "incoming"},
    ("DBusMessage", "_dbus_message_loader_queue_messages"): {_ANY: "@load_message"},
    ("DBusMessage", "free_connection_data"): {_ANY: "oom"},
    ("BusMatchRule", "bus_matchmaker_remove_rule_link"): {_ANY: "matchmaker"},
    ("BusOwner", "bus_service_unlink_owner"): {_ANY: "service.owners"},
    ("BusOwner", "bus_service_remove_owner"): {_ANY: "service.owners"},
    ("BusOwner", "bus_registry_acquire_service"): {_ANY: "service.owners"},
    ("BusOwner", "free_ownership_cancel_data"): {_ANY: "cancel"},
    ("BusOwner", "free_ownership_restore_data"): {_ANY: "restore"},
    ("BusService", "bus_service_unlink"): {_ANY: "registry"},
    ("BusService", "free_ownership_cancel_data"): {_ANY: "cancel"},
    ("BusService", "free_ownership_restore_data"): {_ANY: "restore"},
    ("BusPolicyRule", "bus_client_policy_unref"): {_ANY: "client"},
    ("BusPolicyRule", "remove_rules_by_type_up_to"): {_ANY: "client"},
    ("BusPolicyRule", "bus_policy_unref"): {215: "default", 218: "mandatory", 221: "console"},
    ("BusPolicyRule", "free_rule_list_func"): {_ANY: "users and groups"},
    ("DBusBabysitter", "bus_pending_activation_unref"): {_ANY: "activation"},
    ("DBusBabysitter", "handle_watch"): {884: "@pending_activation_finished_cb", _ANY: "@handle_watch"},
    ("DBusServer", "bus_context_unref"): {_ANY: "context"},
    ("DBusServer", "shutdown_server"): {_ANY: "@dbus_server_disconnect"},
    ("DBusServer", "socket_disconnect"): {_ANY: "@protected_change_watch"},
    ("DBusLoop", "bus_context_unref"): {_ANY: "context"},
    ("DBusLoop", "main"): {_ANY: "@_dbus_loop_run"},
    ("DBusWatch", "socket_disconnect"): {_ANY: "server"},
    ("DBusWatch", "close_error_pipe_from_child"): {576: "list", 578: "error pipe"},
    ("DBusWatch", "close_socket_to_babysitter"): {555: "list", 557: "babysitter"},
    ("DBusWatch", "free_watches"): {81: "list", 84: "read", 91: "list", 94: "write"},
    ("DBusWatch", "protected_change_watch"): {_ANY: "list"},
    ("DBusWatch", "_dbus_loop_remove_watch"): {_ANY: "loop"},
    ("DBusWatch", "free_watch_table_entry"): {_ANY: "loop"},
    ("DBusTransport", "_dbus_connection_last_unref"): {_ANY: "connection"},
    ("DBusTransport", "_dbus_connection_do_iteration_unlocked"): {_ANY: "@_dbus_transport_do_iteration"},
    ("DBusTransport", "_dbus_transport_queue_messages"): {_ANY: "@check_read_watch"},
    ("DBusTransport", "do_authentication"): {491: "@check_read_watch", 492: "@check_write_watch"},
    ("DBusTransport", "socket_connection_set"): {1074: "@check_read_watch", 1075: "@check_write_watch"},
    ("DBusTransport", "socket_do_iteration"): {1245: "@check_write_watch"},
    ("DBusTransport", "socket_handle_watch"): {1016: "@check_write_watch"},
    ("DBusCounter", "_dbus_connection_last_unref"): {_ANY: "outgoing"},
    ("DBusCounter", "_dbus_transport_finalize_base"): {_ANY: "live"},
    ("DBusCounter", "dbus_connection_free_preallocated_send"): {_ANY: "message"},
    ("DBusCounter", "dbus_message_cache_or_finalize"): {_ANY: "message"},
    ("DBusCounter", "do_writing"): {_ANY: "message"},
    ("DBusCounter", "_dbus_connection_message_sent_unlocked"): {_ANY: "message"},
    ("DBusConnection", "_dbus_loop_dispatch"): {536: "loop", 532: "@dbus_connection_dispatch"},
    ("DBusConnection", "_dbus_loop_unref"): {_ANY: "loop"},
    ("DBusConnection", "_dbus_connection_close_possibly_shared_and_unlock"): {2894: _UPDATE},
    ("DBusConnection", "_dbus_connection_handle_watch"): {1532: _UPDATE},
    ("DBusConnection", "connection_execute_transaction"): {2628: _UPDATE},
    ("DBusConnection", "bus_connections_expire_incomplete"): {1004: _CLOSE},
    ("DBusConnection", "bus_dispatch"): {257: "connections", 328: "connections", 415: _CLOSE},
    ("DBusConnection", "bus_connections_unref"): {
        539: _CLOSE, 540: "connections", 554: _CLOSE, 555: "connections", _ANY: "@bus_connections_unref",
    },
    ("DBusConnection", "bus_pending_activation_entry_free"): {_ANY: "activation"},
    ("DBusConnection", "free_ownership_cancel_data"): {_ANY: "cancel"},
    ("DBusConnection", "free_ownership_restore_data"): {_ANY: "restore"},
    ("DBusConnection", "dbus_connection_dispatch"): {4614: "@_dbus_connection_acquire_dispatch", 4897: _UPDATE},
}
_COUNTED = {kind for kind, _ in [*_BIRTHS, *_GETS, *_PUTS]}
"""Types to which more than the creator's reference is taken."""
HELD = {
    "DBusMessage": {"incoming", "disconnect", "oom", "outgoing", "activation"},
    "DBusTransport": {"connection"},
    "DBusCounter": {"outgoing", "live", "message"},
    "DBusConnection": {"activation", "loop"},
    "DBusBabysitter": {"activation"},
    "DBusWatch": {"server", "loop", "list", "read", "write", "error pipe", "babysitter"},
    "BusMatchRule": {"matchmaker"},
    "BusService": {"registry"},
    "BusOwner": {"service.owners"},
    "BusPolicyRule": {"default", "mandatory", "console", "users and groups", "client"},
    "DBusLoop": {"context"},
    "DBusServer": {"context"},
}  # fmt: skip
"""The slots of each family in other counted objects: of what is alive only because such another is."""


def unwrapped(stack: Calls) -> Calls:
    """Return the stack from the function on that wanted the get or the put."""
    return beyond(stack, _WRAPPERS.__contains__)


def put_slot(kind: str, stack: Calls) -> str:
    """Return the slot that a put empties."""
    if kind not in _COUNTED:
        return ONLY
    function, line = unwrapped(stack)[0]
    lines = _PUTS.get((kind, function), {})
    return lines.get(line) or lines.get(_ANY) or f"@{function}"


def get_slots(kind: str, stack: Calls, birth: bool) -> set[str]:
    """Return the slots that a reference may be kept in: two where one call takes two and hands up either."""
    if kind not in _COUNTED:
        return {ONLY}
    calls = unwrapped(stack)
    if birth:
        return _birth_slots(kind, calls)
    function, line = calls[0]
    if kind == "BusPolicyRule" and len(calls) > 1 and calls[1][0] == "add_list_to_client":
        function = "bus_client_policy_append_rule"  # the compiler made one of the two, which are the same code
    lines = _GETS.get((kind, function), {})
    return {lines.get(line) or lines.get(_ANY) or f"@{function}"}


def _birth_slots(kind: str, calls: Calls) -> set[str]:
    hands_up = _HANDS_UP.get(kind, set())
    function, line = next((call for call in calls if call[0] not in hands_up), calls[-1])
    known = _BIRTHS.get((kind, function), {})
    slots = known.get(line) or known.get(_ANY) or {f"@{function}"}
    # A rule that is not understood is put by the function that would have handed it up.
    return slots | {"@bus_match_rule_parse"} if kind == "BusMatchRule" else slots
