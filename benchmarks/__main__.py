"""Measure what refleak costs: `python -m benchmarks` as root, on a machine that does nothing else."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from benchmarks.attach import attach
from benchmarks.bystanders import bystanders
from benchmarks.commands import Unmeasured
from benchmarks.document import fill, markdown
from benchmarks.families import families
from benchmarks.floor import instruction_costs
from benchmarks.goals import goals_table
from benchmarks.machine import description
from benchmarks.mixed import mixed_loads
from benchmarks.pairs import malloc_pairs, pairs_of_peers, preloaded_pairs, stub_pairs
from benchmarks.programs import Programs
from benchmarks.rates import first_loss, tracer_share
from benchmarks.servers import servers
from benchmarks.settings import Settings, full_settings, quick_settings
from benchmarks.startup import million_blocks, start_up
from benchmarks.symbolization import symbolization
from benchmarks.tables import Results, Table

Benchmark = Callable[[Programs, Settings], Results]
BENCHMARKS: Mapping[str, Sequence[Benchmark]] = {
    "floor": (instruction_costs,),
    "pairs": (malloc_pairs,),
    "stubs": (stub_pairs,),
    "preload": (preloaded_pairs,),
    "peers": (pairs_of_peers,),
    "loads": (mixed_loads,),
    "startup": (start_up,),
    "attach": (attach,),
    "million": (million_blocks,),
    "symbols": (symbolization,),
    "rates": (first_loss, tracer_share),
    "bystanders": (bystanders,),
    "servers": (servers,),
    "families": (families,),
}


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds of little: does it work at all?")
    parser.add_argument("--only", type=_names, nargs="+", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--scale", type=float, metavar="X", help="multiply all counts")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each (5; 2 with --quick)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the Markdown there too")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put it between the markers of this document")
    arguments = parser.parse_args(words)
    arguments.only = [name for names in arguments.only or () for name in names]
    return arguments


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = set(names) - BENCHMARKS.keys()
    if unknown:
        raise argparse.ArgumentTypeError(f"no benchmark is called {', '.join(sorted(unknown))}")
    return names


def _settings(arguments: argparse.Namespace, folder: Path) -> Settings:
    settings = (quick_settings if arguments.quick else full_settings)(folder)
    if arguments.scale:
        settings = replace(settings, scale=arguments.scale)
    if arguments.rounds:
        settings = replace(settings, rounds=arguments.rounds)
    return settings


def _measure(names: Sequence[str], settings: Settings) -> Results:
    results, programs = Results(), Programs(settings.folder)
    for name in names:
        for benchmark in BENCHMARKS[name]:
            began = time.monotonic()
            try:
                found = benchmark(programs, settings)
            except Unmeasured as reason:
                found = Results([Table(name, ["absent because"], [[str(reason)]])])
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
            results.add(found)
    return results


def _ended(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # through every `with`, so that nothing stays behind


def main(words: Sequence[str] | None = None) -> int:
    arguments = _parse(words)
    if os.geteuid() != 0:
        print("benchmarks: probes need root: run the same command with sudo", file=sys.stderr)
        return 77
    signal.signal(signal.SIGTERM, _ended)
    signal.signal(signal.SIGHUP, _ended)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="refleak-bench-") as folder:
        settings = _settings(arguments, Path(folder))
        results = _measure(arguments.only or list(BENCHMARKS), settings)
        machine = description(time.monotonic() - began, settings.rounds)
    goals = goals_table(results.figures, whole=not arguments.only)
    text = markdown(machine, [goals, *results.tables] if goals.rows else results.tables)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    if arguments.write:
        fill(arguments.write, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
