"""Finding the `qwen` binary: the option, then `QWEN_BIN`, then the one in the package, then `PATH`."""

from __future__ import annotations

import os

from ..errors import BinaryNotFoundError

__all__ = ["find_binary"]


def find_binary(binary_path: str | os.PathLike[str] | None = None) -> str:
    """The path of the binary to start.

    A name without a slash is looked up in `PATH`. Raises `BinaryNotFoundError`, which lists the places that were searched.
    """
    searched: list[str] = []
    if binary_path is not None:
        return _explicit(os.fspath(binary_path), "binary_path", searched)
    from_environment = os.environ.get("QWEN_BIN")
    if from_environment:
        return _explicit(from_environment, "QWEN_BIN", searched)
    package = os.path.dirname(os.path.dirname(__file__))
    bundled = os.path.join(package, "bin", "qwen")
    if _is_executable(bundled):
        return bundled
    searched.append(f"bundled: {bundled}")
    found = _which("qwen")
    if found:
        return found
    searched.append("qwen in PATH")
    raise _missing("no qwen binary was found", searched)


def _explicit(name: str, origin: str, searched: list[str]) -> str:
    if os.sep in name:
        path = os.path.expanduser(name)
        if _is_executable(path):
            return path
        searched.append(f"{origin}: {path}")
        problem = "is not executable" if os.path.exists(path) else "does not exist"
        raise _missing(f"{origin} names {path!r}, which {problem}", searched)
    found = _which(name)
    if found:
        return found
    searched.append(f"{origin}: {name} in PATH")
    raise _missing(f"{origin} names {name!r}, which is not in PATH", searched)


def _which(name: str) -> str | None:
    # Most programs never get here, and the module is slow to load.
    import shutil

    return shutil.which(name)


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _missing(problem: str, searched: list[str]) -> BinaryNotFoundError:
    places = "; ".join(searched)
    advice = (
        "Install the wheel that carries the binary, set QWEN_BIN, or pass binary_path. A package that was installed from a "
        "checkout carries none: run 'cargo build --release -p qwen' there and set QWEN_BIN to its target/release/qwen"
    )
    return BinaryNotFoundError(f"{problem} (searched: {places}). {advice}.", searched=searched)
