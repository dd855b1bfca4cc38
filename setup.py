"""The packages: all of `tracer`, and the BPF sources of the checkout's `bpf/` as `tracer/bpf`; beside them what other
tools look for below a prefix: the header, its pkg-config file, the manual page, completions."""

import re
from pathlib import Path

from setuptools import find_packages, setup


def pkg_config() -> str:
    """Write the pkg-config file of this version; return its path."""
    version = re.search(r'^__version__ = "(.*)"$', Path("tracer/__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    path = Path("build/refleak.pc")
    path.parent.mkdir(exist_ok=True)
    template = Path("packaging/refleak.pc.in").read_text(encoding="utf-8")
    path.write_text(template.replace("@VERSION@", version[1]), encoding="utf-8")
    return str(path)


setup(
    packages=[*find_packages(include=["tracer", "tracer.*"]), "tracer.bpf"], package_dir={"tracer.bpf": "bpf"},
    data_files=[
        ("include", ["examples/refleak.h"]), ("share/pkgconfig", [pkg_config()]),
        ("share/man/man1", ["docs/refleak.1"]),
        ("share/bash-completion/completions", ["completions/refleak.bash"]),
        ("share/zsh/site-functions", ["completions/_refleak"]),
        ("share/fish/vendor_completions.d", ["completions/refleak.fish"]),
    ],
)  # fmt: skip
