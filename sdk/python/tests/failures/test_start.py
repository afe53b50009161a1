"""Finding and starting the binary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import BINARY, HANDSHAKE, Options, last_of

from qwen_agent_sdk import (
    BinaryNotFoundError,
    HandshakeError,
    ProcessError,
    ProtocolVersionError,
    QwenAgentOptions,
    Timeouts,
    find_binary,
)

pytestmark = pytest.mark.anyio


async def test_a_missing_binary_says_where_was_looked_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BinaryNotFoundError, match="QWEN_BIN") as caught:
        await last_of(binary_path="/no/such/qwen")
    assert caught.value.searched == ["binary_path: /no/such/qwen"]
    monkeypatch.delenv("QWEN_BIN")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BinaryNotFoundError, match="Install the wheel") as caught:
        await last_of(model="demo")
    assert "cargo build --release -p qwen" in caught.value.message, "a package from a checkout has no binary"


def test_the_binary_is_looked_up_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("option", "environment", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "qwen").write_text("#!/bin/sh\n")
        (tmp_path / name / "qwen").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("QWEN_BIN", str(tmp_path / "environment" / "qwen"))
    assert find_binary(tmp_path / "option" / "qwen") == str(tmp_path / "option" / "qwen")
    assert find_binary() == str(tmp_path / "environment" / "qwen")
    monkeypatch.delenv("QWEN_BIN")
    bundled = Path(find_binary.__code__.co_filename).parent / "bin" / "qwen"
    expected = str(bundled) if bundled.exists() else str(tmp_path / "path" / "qwen")
    assert find_binary() == expected
    assert find_binary("qwen") == str(tmp_path / "path" / "qwen")


@pytest.mark.parametrize("program", ["#!/bin/sh\necho hello\ncat >/dev/null\n", "#!/bin/sh\nexit 3\n"])
async def test_a_program_that_is_no_worker_is_an_error(program: str, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text(program)
    path.chmod(0o755)
    with pytest.raises(HandshakeError, match="qwen"):
        await last_of(binary_path=path)


async def test_a_program_that_says_nothing_is_an_error_at_the_start_time_out(tmp_path: Path) -> None:
    path = tmp_path / "silent"
    path.write_text("#!/bin/sh\nwhile read -r line; do :; done\n")
    path.chmod(0o755)
    with pytest.raises(HandshakeError, match="start time-out") as caught:
        await last_of(binary_path=path, timeouts=Timeouts(start=0.2))
    assert caught.value.code == "start_timeout"


async def test_another_protocol_version_is_an_error_that_names_both(fake_worker: Callable[..., str]) -> None:
    other = json.loads(json.dumps(HANDSHAKE))
    other["metadata"]["protocol_version"] = "2.0"
    with pytest.raises(ProtocolVersionError, match=r"speaks protocol 2\.0, this SDK speaks 1\.0"):
        await last_of(binary_path=fake_worker(handshake=other))
    other["metadata"] = {"protocol_version": "1.7", "capabilities": ["sessions"]}
    with pytest.raises(ProtocolVersionError, match="control"):
        await last_of(binary_path=fake_worker(handshake=other))


async def test_a_bad_flag_is_an_error_in_the_worker_s_own_words(options: Options) -> None:
    with pytest.raises(ProcessError, match="no-such-flag") as caught:
        await last_of(options=options("Hi.", extra_args=["--no-such-flag"]))
    assert "cannot start" in caught.value.message


async def test_a_missing_directory_is_an_error(options: Options) -> None:
    with pytest.raises(ProcessError, match="does not exist"):
        await last_of(options=options("Hi.", cwd="/no/such/place"))


def test_the_binary_under_test_is_the_one_that_runs() -> None:
    assert Path(BINARY).exists()
    assert QwenAgentOptions().binary_path is None
