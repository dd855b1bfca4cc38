"""bpf/draws.h, the very code that the kernel runs: what it draws, and how often.

The random words come from a generator with a fixed seed, so no bound here can be missed by chance on another day.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

DRAWS = Path(__file__).parents[3] / "bpf" / "draws.h"
PROGRAM = f"""
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uint64_t u64;
static u64 state = 20261121, scripted[512], scripted_count, scripted_used;
static u64 random_word(void)
{{
	u64 z = state += 0x9e3779b97f4a7c15;  /* splitmix64 (Steele, Lea, Flood 2014) */

	if (scripted_count)
		return scripted_used < scripted_count ? scripted[scripted_used++] : 0;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}}
#include "{DRAWS}"
static struct draws draws;
int main(int argc, char **argv)
{{
	if (!strcmp(argv[1], "script")) {{  /* words: print whole, part, words used */
		for (int i = 2; i < argc; i++)
			scripted[scripted_count++] = strtoull(argv[i], 0, 0);
		exponential(&draws);
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\\n", draws.whole, draws.part, scripted_used);
	}} else if (!strcmp(argv[1], "variates")) {{  /* count: print each as a double */
		for (long i = 0; i < atol(argv[2]); i++) {{
			exponential(&draws);
			double value = draws.whole + draws.part / 18446744073709551616.0;
			fwrite(&value, sizeof(value), 1, stdout);
		}}
	}} else {{  /* rounds, mean, sizes: print for each block in turn whether it was drawn */
		u64 mean = strtoull(argv[3], 0, 0);

		for (long i = 0; i < atol(argv[2]); i++)
			for (int j = 4; j < argc; j++)
				putchar(is_drawn(&draws, strtoull(argv[j], 0, 0), mean));
	}}
	return 0;
}}
"""
Run = Callable[..., bytes]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("draws")
    (folder / "draws.c").write_text(PROGRAM)
    flags = ["-O2", "-Wall", "-Werror", "-Wno-unknown-pragmas"]
    subprocess.run(["gcc", *flags, "-o", folder / "draws", folder / "draws.c"], check=True)
    return lambda *words: subprocess.run([folder / "draws", *map(str, words)], check=True, capture_output=True).stdout


def drawn(run: Run, rounds: int, mean: int, sizes: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return whether each block was drawn, shape (rounds, len(sizes))."""
    out = run("blocks", rounds, mean, *sizes)
    return np.frombuffer(out, dtype=np.uint8).astype(np.bool_).reshape(rounds, len(sizes))


@pytest.mark.parametrize(
    ("words", "whole", "part", "used"),
    [
        ((5, 9), 0, 5, 2),  # a run of one
        ((5, 5), 0, 5, 2),  # a tie ends a run
        ((9, 5, 7, 4, 6), 1, 4, 5),  # a run of two is refused; the word that ended it is not used again
        ((9, 5, 3, 8), 0, 9, 4),  # a run of three
        ((9, 5, 7, 8, 2, 3, 1, 1), 2, 1, 8),
        (tuple(range(300, 0, -1)), 0, 300, 129),  # no end: what is known by then
    ],
)
def test_runs_of_odd_length_are_accepted(run: Run, words: tuple[int, ...], whole: int, part: int, used: int) -> None:
    assert tuple(map(int, run("script", *words).split())) == (whole, part, used)


def test_the_variates_are_exponential(run: Run) -> None:
    values = np.sort(np.frombuffer(run("variates", 1_000_000), dtype=np.float64))
    steps = np.arange(1, len(values) + 1) / len(values)
    distance = np.abs(steps - (1 - np.exp(-values))).max()
    assert distance * np.sqrt(len(values)) < 1.95  # Kolmogorov's bound at 0.1 %
    for power, moment in ((1, 1), (2, 2), (3, 6)):
        spread = np.sqrt(np.var(values**power) / len(values))
        assert abs((values**power).mean() - moment) < 4 * spread


@pytest.mark.parametrize("mean", [1, 7, 4096, 524288, (1 << 30) - 1])
def test_each_block_is_drawn_with_its_own_probability(run: Run, mean: int) -> None:
    sizes = [0, 1, 16, 48, 100, 4096, 70_001, 524_288, 5_000_000, 1 << 31, 1 << 40]
    rounds = 100_000
    times = drawn(run, rounds, mean, sizes).sum(axis=0)
    p = -np.expm1(-np.maximum(np.array(sizes, dtype=np.float64), 1) / mean)
    sigma = np.sqrt(rounds * p * (1 - p))
    assert (np.abs(times - rounds * p) <= 4.5 * sigma + 1).all(), (times, rounds * p)
    assert times[-1] == rounds


def test_draws_are_independent_of_each_other(run: Run) -> None:
    sizes = [300, 20, 700, 1000]
    found = drawn(run, 300_000, 1000, sizes).ravel()
    p = np.tile(-np.expm1(-np.array(sizes) / 1000), 300_000)
    for lag in range(1, 9):
        both = (found[:-lag] - p[:-lag]) * (found[lag:] - p[lag:])
        assert abs(both.sum()) < 4 * np.sqrt((p[:-lag] * (1 - p[:-lag]) * p[lag:] * (1 - p[lag:])).sum())


def test_estimates_from_drawn_blocks_are_right(run: Run) -> None:
    """What the report makes of them: the weights' sums come out, and their error is the error."""
    sizes = np.array([24, 130, 2_000, 9_000, 65_536], dtype=np.float64)
    mean, rounds = 8192, 60_000
    p = -np.expm1(-sizes / mean)
    found = drawn(run, rounds, mean, sizes.astype(int).tolist())
    for worth in (np.ones(len(sizes)), sizes):
        estimates = (found * worth / p).sum(axis=1)
        variance = (worth**2 * (1 - p) / p).sum()
        assert abs(estimates.mean() - worth.sum()) < 4 * np.sqrt(variance / rounds)
        reported = (found * worth**2 * (1 - p) / p**2).sum(axis=1).mean()
        assert abs(reported / variance - 1) < 0.2
        assert abs(estimates.var() / variance - 1) < 0.2
