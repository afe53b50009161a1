"""A clean place for every test: a home, a workspace and a model of its own, and no process left behind."""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mock_model import MockModel, MockModels
from watched import watched  # noqa: F401

FOREIGN = ("OPENAI_", "ANTHROPIC_", "DASHSCOPE_", "QWEN_", "CLAUDE_", "OTEL_", "TRACE")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True)
class Place:
    """Where a test happens."""

    home: Path
    work: Path
    nap: int
    """How many seconds a command of this test may sleep: no other process sleeps so long."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty home and an empty workspace; nothing of the caller's configuration is seen."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) and name != "QWEN_BIN":
            monkeypatch.delenv(name)
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    for name, folder in {"HOME": home, "QWEN_HOME": home / ".qwen", "CLAUDE_CONFIG_DIR": home / ".claude"}.items():
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(work)
    return Place(home, work, random.randrange(100_000, 900_000))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., MockModel]]:
    """Starts a model that gives these replies, and points the program at it."""
    models = MockModels(tmp_path, monkeypatch.setenv)
    yield lambda *replies, loop=False: models.start(list(replies), loop=loop)
    models.close()


def sleeping(nap: int) -> set[int]:
    """The processes on this machine that sleep so long."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"sleep\0%d\0" % nap:
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def children() -> set[int]:
    """The processes of this one that run the program under test."""
    binary = os.path.realpath(os.environ["QWEN_BIN"])
    own = str(os.getpid())
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.path.realpath(entry / "exe") != binary:
                continue
            status = (entry / "status").read_text()
        except OSError:
            continue
        if f"\nPPid:\t{own}\n" in status:
            found.add(int(entry.name))
    return found


@pytest.fixture(autouse=True)
def nothing_left(place: Place) -> Iterator[None]:
    """Every test ends with no process of the program still running."""
    yield
    assert children() == set()
