"""What a worker does: one series of captures in, the rows of its connections out. What is not here: who starts workers.

Whatever goes wrong with a file is a line in the result and ends nothing; only a worker that dies says nothing, and its
series is given to another.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import time
import zlib
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pyarrow as pa

import fullpipe

from .inputs import Capture, Series, _line, problem


@dataclass(frozen=True)
class How:
    """How captures are read: filesystems by place (None: the machine's own), the filter, threads, and a bound in bytes."""

    filesystems: Tuple[Any, ...]
    filter: Optional[str] = None
    threads: int = 1
    memory: int = 0


@dataclass
class Result:
    """What came of a series. ``status`` is ``done``, ``bad`` (nothing in it is a capture) or ``failed`` (worth another run)."""

    series: Series
    status: str = "done"
    table: Optional[pa.Table] = None
    problems: List[Dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    firsts: Dict[str, Optional[int]] = field(default_factory=dict)
    """When the first packet of each capture was captured, in ns since 1970: by that a recording is known again."""


def read_series(series: Series, how: How) -> Result:
    """Reads a series; never raises for what is in its files."""
    started = time.monotonic()
    result = Result(series, problems=list(series.notes))
    try:
        with _bounded(how.memory):
            _read(series, how, result)
    except (MemoryError, pa.ArrowMemoryError):
        _fail(result, f"more memory is wanted than --memory allows a worker ({how.memory} B)")
    except fullpipe.Error as error:
        _fail(result, str(error))
    except Exception as error:  # Of filesystems, which raise what they like; one series must not end the run.
        _fail(result, f"{type(error).__name__}: {_line(error)}")
    result.seconds = time.monotonic() - started
    return result


def _fail(result: Result, message: str) -> None:
    result.status, result.table = "failed", None
    result.problems.append(problem(result.series.key, message))


def _read(series: Series, how: How, result: Result) -> None:
    sources: List[Source] = []
    for capture in series.captures:
        source = Source(capture, how.filesystems[capture.place])
        try:
            source.look()
        except Exception as error:
            result.status = "failed"
            result.problems.append(problem(capture.name, _line(error)))
            continue
        sources.append(source)
        result.firsts[capture.name] = source.first
    if not sources:
        return
    sources = _oldest_first(sources)
    try:
        seen = fullpipe.read([source.given() for source in sources], how.filter, how.threads, timelines=False)
    except fullpipe.InputInvalidError as error:
        # Nothing of them can be read. The reader names the first, and each is worth a line.
        for source in sources:
            reason = source.error or str(error) if len(sources) == 1 else _alone(source)
            result.status = "failed" if source.error or result.status == "failed" else "bad"
            result.problems.append(problem(source.capture.name, reason))
        return
    result.table = pa.table(seen.connections)
    told = {source.capture.name: source.error for source in sources if source.error}
    if told:
        result.status = "failed"
    result.problems += [problem(name, text) for name, text in told.items()]
    names = {source.shown(): source.capture.name for source in sources}
    for row in pa.table(seen.problems).to_pylist():
        row["file"] = names.get(row["file"], row["file"])
        # What the reader makes of a file that could not be read on is no news.
        if row["file"] not in told:
            result.problems.append(row)


def _alone(source: "Source") -> str:
    """Why one capture can't be read."""
    again = Source(source.capture, source.filesystem)
    try:
        fullpipe.read(again.given(), timelines=False)
    except fullpipe.Error as error:
        return source.error or again.error or str(error)
    return source.error or "it could be read when it was tried again"


class Source:
    """A capture to read: a path where this machine has it, else an object that is opened when its turn has come."""

    def __init__(self, capture: Capture, filesystem: Optional[Any]) -> None:
        self.capture, self.filesystem = capture, filesystem
        self.name = capture.name
        self.error: Optional[str] = None
        self.first: Optional[int] = None
        self.stream: Optional[Any] = None
        self.is_over = False

    def given(self) -> Any:
        return self.capture.path if self.filesystem is None else self

    def shown(self) -> str:
        """As the reader names it, which is given bytes and says text."""
        return os.fsencode(self.capture.path).decode("utf-8", "replace") if self.filesystem is None else self.name

    def open(self) -> Any:
        if self.filesystem is None:
            return open(self.capture.path, "rb")
        return self.filesystem.open_input_stream(self.capture.path, compression=None)

    def look(self) -> None:
        """Whether it can be read at all, and when its first packet was captured."""
        with self.open() as stream:
            start = stream.read(4096)
        self.first = _first_packet(start)

    def read(self, size: int) -> bytes:
        """As a file object; one that fails is at its end, and says why in ``error``, so that the others are still read."""
        if self.is_over:
            return b""
        try:
            if self.stream is None:
                self.stream = self.open()
            piece: bytes = self.stream.read(size)
        except Exception as error:
            self.error, piece = _line(error), b""
        if not piece:
            self.is_over = True
            with contextlib.suppress(Exception):
                if self.stream is not None:
                    self.stream.close()
            self.stream = None
        return piece


def _oldest_first(sources: List[Source]) -> List[Source]:
    """By their first packets, where all of them tell: a ring of files is written over, and summer time ends."""
    firsts = [source.first for source in sources]
    return sources if None in firsts else sorted(sources, key=lambda source: source.first or 0)


def first_of(capture: Capture, filesystem: Optional[Any]) -> Optional[int]:
    """When the first packet of a capture was captured, in ns since 1970, where it can be told."""
    source = Source(capture, filesystem)
    with contextlib.suppress(Exception):
        source.look()
    return source.first


def _first_packet(start: bytes) -> Optional[int]:
    """From the start of a file: its first packet in pcap, the first of a connection in other formats."""
    whole = start
    if start[:2] == b"\x1f\x8b":
        try:
            start = zlib.decompressobj(31).decompress(start, 64)
        except zlib.error:
            return None
    orders = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000), b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}
    if start[:4] not in orders:
        with contextlib.suppress(fullpipe.Error):
            begun = pa.table(fullpipe.read(io.BytesIO(whole), None, 1, timelines=False).connections)["started_us"]
            moments: List[int] = begun.to_pylist()
            return min(moments, default=0) * 1000 or None
        return None
    if len(start) < 32:
        return None
    order, unit = orders[start[:4]]
    seconds: int
    fraction: int
    seconds, fraction = struct.unpack_from(order + "II", start, 24)
    return seconds * 1_000_000_000 + fraction * unit


@contextlib.contextmanager
def _bounded(memory: int) -> Iterator[None]:
    """At most so many bytes more than now, where the system can bound a process; it dies of more, and others don't."""
    try:
        import resource

        with open("/proc/self/status", encoding="ascii") as file:
            now = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:"))
        before = resource.getrlimit(resource.RLIMIT_DATA)
    except (ImportError, OSError, StopIteration):
        memory = 0
    if not memory:
        yield
        return
    most = now + memory
    if before[1] != resource.RLIM_INFINITY:
        most = min(most, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
