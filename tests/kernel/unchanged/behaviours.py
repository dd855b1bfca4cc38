"""The table of programs that must do the same with refleak and without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Behaviour:
    """One program: its command line, and the exit status that it has by itself, 128 + N for signal N.

    `differs` tells why refleak fails at it, as is expected; `differs_launched`, only where it is launched.
    """

    name: str
    command: tuple[str, ...]
    status: int = 0
    differs: str = ""
    differs_launched: str = ""


def _own(program: str, names: str, status: int = 5, differs: str = "") -> tuple[Behaviour, ...]:
    part = program.removeprefix("behaves_")
    return tuple(Behaviour(f"{part} {name}", (program, name), status, differs) for name in names.split())


def shell(name: str, script: str, status: int = 0) -> Behaviour:
    return Behaviour(name, ("/bin/sh", "-c", script), status)


SIGNALS = (
    *_own("behaves_signals", "alarm_storm profile_timer alternate_stack recover own_traps undefined_instruction"),
    *_own("behaves_signals", "coroutines queued stopped_child broken_pipe"),
    *_own("behaves_signals", "aborts", 128 + 6),
    *_own("behaves_signals", "divides", 128 + 8),
    *_own("behaves_signals", "terminated", 128 + 15),
    *_own("behaves_signals", "trapped", 128 + 5),
)
TASKS = (
    *_own("behaves_tasks", "cancels short_threads forks_in_thread vforks spawns clone_vm bare_clone3"),
    *_own("behaves_tasks", "seccomp_filter not_dumpable other_user limits deep_recursion inherited usable_sizes"),
    *_own("behaves_tasks", "own_status open_files own_limits exit_order"),
    *_own("behaves_tasks", "seccomp_strict", 41),
    *_own("behaves_tasks", "small_stack", 0),
)
FLOW = (
    *_own("behaves_flow", "exceptions exceptions_in_threads rethrown stored through_c too_much handler_of_new"),
    *_own("behaves_flow", "coroutines futures conditions thread_locals jumps_from_handlers containers expressions"),
    *_own("behaves_flow", "by_terminate", 43),
    *_own("behaves_flow", "uncaught within_noexcept", 128 + 6),
)
SYSTEM = (
    *_own("behaves_system", "traced_by_parent seized single_steps child_crashes address_space process_limit"),
    *_own("behaves_system", "no_new_privileges fixed_addresses executes_from_memory executes_in_thread"),
    *_own("behaves_system", "vforks_and_executes fork_chain orphans user_dispatch"),
    *_own("behaves_files", "handles_of_processes descriptors_of_signals events watches_files passes_descriptors"),
    *_own("behaves_files", "terminal other_memory shared_segments"),
)
MEMORY = (
    *_own(
        "behaves_memory", "sealed sealed_text served_faults huge_pages moved replaced breaks trimmed aligned failing"
    ),
    *_own("behaves_memory", "libraries another_namespace own_hash copied_code builtin_traps small_thread_stacks"),
    *_own("behaves_memory", "locked_memory"),
    *_own("behaves_memory", "hash_of_malloc", differs="breakpoints stand in what it reads"),
    *_own("behaves_memory", "copied_start_of_malloc", differs="a copy of two bytes, by which it cannot be told"),
    *_own("behaves_patching", "hooks protected_hooks hooks_in_a_child hooks_with_threads copies"),
    *_own("behaves_patching", "writable_copies", differs="it executes a copy of a breakpoint"),
)
OWN = SIGNALS + TASKS + FLOW + SYSTEM + MEMORY
