"""examples/mutants: the slots of references of GLib and GIO, and gets and puts that are paired by slots."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples" / "mutants"))

import gio_slots
from glib_slots import get_slots, put_slot
from program import Calls
from proof import pair_by_slot

TEST: Calls = (("test_varargs", 3638),)
ARGUMENT: Calls = (("g_variant_valist_get_leaf", 5132), ("g_variant_valist_get", 5313), ("g_variant_iter_loop", 5861))


@pytest.mark.parametrize(
    ("kind", "birth", "stack", "slots"),
    [
        ("GSource", False, (("g_source_attach_unlocked", 1291), ("g_source_attach", 1340)), {"context"}),
        ("GBytes", False, (("g_bytes_new_from_bytes", 250),), {"bytes"}),
        ("GBytes", False, (("g_bytes_new_from_bytes", 234),), {"@test_varargs"}),
        ("GBytes", True, (("g_bytes_new_take", 130), ("g_variant_ensure_serialised", 537)), {"variant"}),
        ("GVariant", False, (("g_variant_get_child_value", 1154), ("g_variant_get_variant", 749)), {"@test_varargs"}),
        ("GVariant", False, (("g_variant_valist_get_nnp", 5012), *ARGUMENT), {"@test_varargs"}),
        ("GVariant", False, (("g_variant_ref_sink", 864), ("g_variant_new_variant", 726)), {"children"}),
        ("GVariant", True, (("g_variant_new_from_bytes", 608), ("g_variant_deep_copy", 5890)), {"children"}),
        ("GVariant", True, (("g_variant_new_from_bytes", 608),), {"children", "@test_varargs"}),
    ],
)
def test_a_reference_is_kept_by_whom_it_is_handed_up_to(kind: str, birth: bool, stack: Calls, slots: set[str]) -> None:
    assert get_slots(kind, (*stack, *TEST), birth) == slots


@pytest.mark.parametrize(
    ("kind", "stack", "slot"),
    [
        ("GSource", (("g_main_context_unref", 625),), "pending"),
        ("GSource", (("g_main_context_unref", 686),), "@g_main_context_unref"),
        ("GSource", (("g_source_unref", 2440),), "@test_varargs"),
        ("GVariant", (("g_variant_valist_free_nnp", 4778), *ARGUMENT), "@test_varargs"),
        ("GVariant", (("g_variant_valist_get", 5349),), "@g_variant_valist_get"),
    ],
)
def test_a_put_empties_the_slot_of_whom_it_is_made_for(kind: str, stack: Calls, slot: str) -> None:
    assert put_slot(kind, (*stack, *TEST)) == slot


def test_a_get_of_two_slots_leaves_the_one_that_another_needs() -> None:
    assert pair_by_slot([["a", "b"], ["a"]], ["a", "b"]) == {0: 1, 1: 0}


def test_what_has_no_put_of_its_slot_is_left() -> None:
    assert pair_by_slot([["a"], ["a"], ["b"]], ["a", "c"]) == {0: 0}


@pytest.mark.parametrize(
    ("kind", "birth", "stack", "slots"),
    [
        ("GObject", True, (("g_task_new", 724), ("g_input_stream_real_read_async", 1416)), {"task"}),
        ("GObject", True, (("g_object_new", 2037), ("g_task_new", 724)), {"test"}),
        ("GObject", False, (("g_value_dup_object", 4577), ("g_file_icon_set_property", 108)), {"file"}),
        ("GObject", False, (("g_list_store_get_item", 228), ("g_list_model_get_item", 245)), {"test"}),
        ("GVariant", False, (("g_dbus_message_copy", 3829),), {"headers"}),
        ("GBytes", True, (("g_bytes_new_take", 130), ("g_input_stream_read_bytes", 337)), {"test"}),
    ],
)
def test_of_gio_what_tests_keep_is_one_slot(kind: str, birth: bool, stack: Calls, slots: set[str]) -> None:
    assert gio_slots.get_slots(kind, (*stack, ("test_read_bytes", 255)), birth) == slots


def test_a_list_of_gio_puts_for_who_frees_it() -> None:
    stack = (("g_list_foreach", 1092), ("g_list_free_full", 246), ("g_emblemed_icon_finalize", 77))
    assert gio_slots.put_slot("GObject", stack) == "emblems"
