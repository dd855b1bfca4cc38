#!/usr/bin/env python3
"""Write the pages of the commands, the manual page and the shell completion from the parsers.

Run it after a change of an option: `make docs`. A unit test checks that all files are in step.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from generator.bash_completion import bash_completion  # noqa: E402
from generator.command_line import commands  # noqa: E402
from generator.fish_completion import fish_completion  # noqa: E402
from generator.man_page import man_page  # noqa: E402
from generator.markdown import page  # noqa: E402
from generator.zsh_completion import zsh_completion  # noqa: E402


def generated() -> dict[Path, str]:
    """Return every generated file, by its path from the top, with what it should hold."""
    found = commands()
    pages = {Path("docs/commands") / f"{command.name or 'refleak'}.md": page(command) for command in found}
    return {
        **pages,
        Path("docs/refleak.1"): man_page(found),
        Path("completions/refleak.bash"): bash_completion(found),
        Path("completions/_refleak"): zsh_completion(found),
        Path("completions/refleak.fish"): fish_completion(found),
    }


def main() -> None:
    files = generated()
    for old in (ROOT / "docs/commands").glob("*.md"):
        if old.relative_to(ROOT) not in files:
            old.unlink()
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main()
