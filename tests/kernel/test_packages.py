"""refleak as it is installed: from a wheel, and from the Debian package, without the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SYSTEM_PYTHON = "/usr/bin/python3"
NOT_COPIED = shutil.ignore_patterns(".venv", ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _check_traces(refleak: Path, folder: Path) -> None:
    """Trace a shell that leaks nothing that is known but runs, from another folder than the checkout."""
    report = folder / "report.json"
    output = _run(refleak, "-o", report, "--exec", "/bin/sh", "-c", "echo traced", cwd=folder)
    assert output == "traced\n"
    document = json.loads(report.read_text())
    assert (document["complete"], document["lost"]) == (True, [])
    assert document["totals"]["allocations"]["made"] > 0
    assert _run(refleak, "--version", cwd=folder) == f"refleak {document['tool']['version']}\n"
    assert "refleak can trace here" in _run(refleak, "doctor", cwd=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(CHECKOUT, folder / "source", ignore=NOT_COPIED, symlinks=True)
    _run(SYSTEM_PYTHON, "-m", "venv", "--system-site-packages", folder / "venv")
    _run(folder / "venv/bin/pip", "wheel", "--quiet", "--no-deps", "-w", folder, folder / "source")
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_contains_all_of_bpf(wheel: Path) -> None:
    listed = _run(SYSTEM_PYTHON, "-m", "zipfile", "-l", wheel)
    sources = [path.relative_to(CHECKOUT / "bpf") for path in (CHECKOUT / "bpf").rglob("*.[ch]")]
    assert len(sources) > 20
    assert [source for source in sources if f"tracer/bpf/{source} " not in listed] == []


def test_wheel_installs_a_command_that_traces(wheel: Path, tmp_path: Path) -> None:
    _run(wheel.parent / "venv/bin/pip", "install", "--quiet", wheel)
    _check_traces(wheel.parent / "venv/bin/refleak", tmp_path)


def _check_header(prefix: Path, folder: Path) -> None:
    """Compile a program that finds the header by pkg-config."""
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config")
    search = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
    asked = ["pkg-config", "--define-prefix", "--cflags", "refleak"]
    flags = subprocess.run(asked, capture_output=True, text=True, check=True, env=search).stdout.split()
    source = folder / "header.c"
    source.write_text("#include <refleak.h>\nint main(void) { return 0; }\n")
    _run("gcc", *flags, "-o", folder / "header", source)


def test_wheel_has_what_other_tools_look_for(wheel: Path, tmp_path: Path) -> None:
    _run(wheel.parent / "venv/bin/pip", "install", "--quiet", "--no-deps", wheel)
    prefix = wheel.parent / "venv"
    _check_header(prefix, tmp_path)
    for path in ("man/man1/refleak.1", "bash-completion/completions/refleak.bash", "zsh/site-functions/_refleak",
                 "fish/vendor_completions.d/refleak.fish"):  # fmt: skip
        assert (prefix / "share" / path).is_file()


@pytest.fixture(scope="module")
def debian_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = Path(_run(CHECKOUT / "packaging/build-deb.sh", tmp_path_factory.mktemp("deb")).strip())
    missing = [name for name in _dependencies(package) if not _is_installed(name)]
    if missing:
        pytest.skip(f"needs {' '.join(missing)}")
    return package


def _dependencies(package: Path) -> list[str]:
    fields = " ".join(_run("dpkg-deb", "-f", package, "Depends").split())
    first = (alternatives.split("|")[0] for alternatives in fields.split(","))
    return [words.split()[0] for words in first]


def _is_installed(name: str) -> bool:
    asked = ["dpkg-query", "-W", "-f=${Status}", name]
    return "ok installed" in subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def test_debian_package_installs_traces_and_goes(debian_package: Path, tmp_path: Path) -> None:
    root, work = tmp_path / "root", tmp_path / "work"
    work.mkdir()
    for folder in ("info", "updates"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    for file in ("status", "available"):
        (root / "var/lib/dpkg" / file).touch()
    dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--log=/dev/null")
    _run(*dpkg, "--install", debian_package)
    assert "Status: install ok installed" in _run(*dpkg, "--status", "refleak")
    _check_compiled(root)
    _check_traces(root / "usr/bin/refleak", work)
    (root / "var/cache/refleak").mkdir(parents=True)
    _run(*dpkg, "--purge", "refleak")
    left = [path for path in (root / "usr").rglob("*") if path.is_file()]
    assert left == []
    assert not (root / "var/cache/refleak").exists()


def _check_compiled(root: Path) -> None:
    """Look for the bytecode, which whoever is not root cannot write, and which names no folder of the test."""
    sources = [path for path in (root / "usr/lib/refleak/tracer").rglob("*.py") if path.stat().st_size]
    compiled = [next(path.parent.glob(f"__pycache__/{path.stem}.*.pyc")) for path in sources]
    assert len(compiled) > 400
    assert not any(bytes(root) in path.read_bytes() for path in compiled)


def test_debian_package_has_what_its_readme_links_to(debian_package: Path, tmp_path: Path) -> None:
    """Messages name docs/specs.md and others, and the package had none."""
    _run("dpkg-deb", "-x", debian_package, tmp_path)
    documents = tmp_path / "usr/share/doc/refleak"
    pages = [documents / "README.md", *documents.glob("docs/**/*.md")]
    assert len(pages) > 20
    shipped = {documents / "docs", documents / "examples"}
    linked = {
        target for page in pages for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
        if shipped & {*(target := Path(os.path.normpath(page.parent / link))).parents}
    }  # fmt: skip
    assert documents / "docs/specs.md" in linked
    assert [target for target in sorted(linked) if not target.exists()] == []


def test_debian_package_has_its_documents(debian_package: Path, tmp_path: Path) -> None:
    _run("dpkg-deb", "-x", debian_package, tmp_path)
    for path in ("share/man/man1/refleak.1.gz", "share/doc/refleak/copyright", "share/doc/refleak/changelog.gz",
                 "share/bash-completion/completions/refleak", "include/refleak.h",
                 "share/pkgconfig/refleak.pc"):  # fmt: skip
        assert (tmp_path / "usr" / path).stat().st_size > 0
    _check_header(tmp_path / "usr", tmp_path)
    _run("gcc", "-o", tmp_path / "leaky",
         tmp_path / "usr/share/doc/refleak/examples/demo/leaky.c")  # fmt: skip
