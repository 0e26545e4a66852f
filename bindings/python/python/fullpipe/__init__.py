"""Why TCP connections were slow, from packet captures, and what to set about it.

Rates are in bit/s, times in microseconds (names ending in ``_us``) or seconds, sizes in bytes. Where a rate, time or size is
an argument it may also be text with a unit: ``"100M"``, ``"80ms"``, ``"64k"``. Nothing here changes a setting.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Optional, Protocol, Sequence, Union

from . import _fullpipe
from ._errors import (
    DiskFullError,
    Error,
    InputInvalidError,
    NoPermissionError,
    OutputExistsError,
    ScenarioInvalidError,
    SettingUnavailableError,
    SystemFailureError,
    UnsupportedError,
    UsageError,
)
from ._fullpipe import Captures, Table, __version__

__all__ = [
    "Captures",
    "DiskFullError",
    "Error",
    "InputInvalidError",
    "NoPermissionError",
    "OutputExistsError",
    "ScenarioInvalidError",
    "SettingUnavailableError",
    "SystemFailureError",
    "Table",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "bdp",
    "diagnose",
    "plan",
    "read",
    "what_if",
]


class Readable(Protocol):
    """A binary file object, as far as it is needed."""

    def read(self, size: int, /) -> bytes: ...


Path = Union[str, "os.PathLike[str]"]
Source = Union[Path, Readable]


def read(
    source: Union[Source, Sequence[Source]],
    filter: Optional[str] = None,
    threads: Optional[int] = None,
    *,
    timelines: bool = True,
) -> Captures:
    """Read packet captures: pcap, pcapng or snoop, plain or compressed with gzip or zstd.

    ``source`` is a path, a binary file object, or a sequence of such, oldest first. ``filter`` keeps only segments that
    match, as ``fullpipe read --filter``: ``"host 10.0.0.2 port 5201 time 3s..60s"``. ``threads`` changes the speed, never the
    result; by default one per processor, up to 6. ``timelines=False`` leaves out those of file objects, which take memory:
    a file object can't be read again when they are asked for, as a path is.

    The result has three tables that any library for Arrow takes (``pyarrow.table(t)``, ``polars.DataFrame(t)``):
    ``connections``, ``timelines`` and ``problems``. Each column's metadata has its unit. What of a file can't be read is in
    ``problems``; where nothing can be, ``InputInvalidError`` is raised.
    """
    return _fullpipe.read(source, filter, _threads(threads), timelines)


def diagnose(
    source: Union[Source, Sequence[Source]], filter: Optional[str] = None, threads: Optional[int] = None
) -> Dict[str, Any]:
    """The document that ``fullpipe read --json`` prints: connections with verdict, evidence and action, and problems.

    Arguments are those of :func:`read`. Rates are in bit/s (``*_bps``), times in microseconds (``*_us``) or ``seconds``,
    sizes in bytes.
    """
    return _fullpipe.diagnose(source, filter, _threads(threads))


def plan(
    rate: Union[int, str],
    rtt: Union[int, str],
    platform: Optional[str] = None,
    *,
    settings: Union[Path, Sequence[Path]] = (),
    peer: Optional[str] = None,
    connections: Optional[int] = None,
    goal: Optional[str] = None,
    memory: Union[int, str, None] = None,
    simulate: bool = False,
) -> Dict[str, Any]:
    """The document that ``fullpipe plan --json`` prints: what to set for a path, with reason, cost and undo.

    ``rate`` of the path in bit/s and its round-trip time ``rtt`` in microseconds, or text with units. ``platform`` such as
    ``"windows-2012"`` (default: that of the files in ``settings``, else this host). ``peer`` is the other end's address or
    prefix, ``connections`` how many may fill their buffers at once, ``goal`` ``"bulk"`` or ``"interactive"``, ``memory`` the
    most for buffers, in bytes. ``simulate`` predicts each change.
    """
    words = ["plan", *_flag("rate", rate), *_flag("rtt", _time(rtt, "us")), *_flag("platform", platform), *_flag("peer", peer)]
    words += [*_flag("connections", connections), *_flag("goal", goal), *_flag("memory", memory)]
    words += _files("settings", settings)
    words += ["--simulate"] if simulate else []
    return _fullpipe.document(words)


def what_if(
    seen: Optional[Path] = None,
    *,
    rate: Union[int, str, None] = None,
    rtt: Union[int, str, None] = None,
    loss: Union[float, str, None] = None,
    queue: Union[int, str, None] = None,
    sender: Optional[str] = None,
    receiver: Optional[str] = None,
    sender_settings: Union[Path, Sequence[Path]] = (),
    receiver_settings: Union[Path, Sequence[Path]] = (),
    settings: Iterable[Union[str, Dict[str, Any]]] = (),
    sweep: Optional[str] = None,
    points: Optional[int] = None,
    size: Union[int, str, None] = None,
    seconds: Union[float, str, None] = None,
    seed: Optional[int] = None,
    conn: Optional[int] = None,
    direction: Optional[str] = None,
) -> Dict[str, Any]:
    """The document that ``fullpipe what-if --json`` prints: rates and limiters, simulated.

    ``seen`` is a JSON document of ``check``, ``tune`` or ``read`` to start from (with ``conn`` or ``direction``); else the path
    is ``rate`` (bit/s), ``rtt`` (microseconds), ``loss`` (a fraction) and ``queue``. ``sender`` and ``receiver`` are
    platforms. Each of ``settings`` makes one prediction: ``{"receiver.window": 64512}`` or ``"receiver.window=64512"``.
    ``sweep`` tries a range: ``"receiver.window=16k..8M"``. ``size`` is the payload in bytes, ``seconds`` the longest virtual
    time.
    """
    words = ["what-if", *_flag("rate", rate), *_flag("rtt", _time(rtt, "us")), *_flag("loss", loss), *_flag("queue", queue)]
    words += [*_flag("from", sender), *_flag("to", receiver), *_flag("sweep", sweep), *_flag("points", points)]
    words += [*_flag("bytes", size), *_flag("seconds", _time(seconds, "s")), *_flag("seed", seed), *_flag("conn", conn)]
    words += _flag("direction", direction)
    words += _files("from-settings", sender_settings) + _files("to-settings", receiver_settings)
    for one in settings:
        text = ",".join(f"{key}={value}" for key, value in one.items()) if isinstance(one, dict) else one
        words += _flag("set", text)
    if seen is not None:
        words += ["--", os.fspath(seen)]
    return _fullpipe.document(words)


def bdp(rate: Union[int, str], rtt: Union[int, str]) -> int:
    """The bandwidth-delay product in bytes, of a rate in bit/s and a round-trip time in microseconds, or text with units.

    >>> bdp("100M", "80ms")
    1000000
    """
    return _fullpipe.bdp(str(rate), _time(rtt, "us"))


def _threads(threads: Optional[int]) -> Optional[int]:
    if threads is not None and threads < 1:
        raise UsageError("usage", f"threads is {threads}", "give 1 or more", 2)
    return threads


def _flag(name: str, value: Any) -> List[str]:
    return [] if value is None else [f"--{name}={value}"]


def _time(time: Any, unit: str) -> Any:
    return time if time is None or isinstance(time, str) else f"{time}{unit}"


def _files(name: str, files: Union[Path, Sequence[Path]]) -> List[str]:
    all_of_them = [files] if isinstance(files, (str, os.PathLike)) else files
    return [f"--{name}={os.fspath(file)}" for file in all_of_them]
