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
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

import fullpipe

from .inputs import Capture, Series, _line, problem


ORDERS = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000), b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}
"""pcap: the order of bytes, and the unit of the fraction of a second in ns."""

SECTION = b"\x0a\x0d\x0d\x0a"
"""How pcapng begins."""

PACKETS = {2, 3, 6}
"""Blocks of pcapng that are packets (obsolete, simple, enhanced)."""


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
    parts: List[Tuple[str, pa.Table]] = field(default_factory=list)
    """Instead of ``table``, by folders of the archive: see ``split``."""
    rows: int = 0
    last_us: int = 0
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


def split(result: Result) -> Result:
    """The same with its rows by folders of the archive: a worker's work, because there are more workers than archives."""
    parts = list(_partitions(result))
    return replace(result, table=None, parts=parts, rows=sum(len(table) for _, table in parts), last_us=_last_us(result.table))


def _partitions(result: Result) -> Iterator[Tuple[str, pa.Table]]:
    """The rows of a series by day, site and limiter, with the columns that an archive adds."""
    if result.table is None or not result.table.num_rows:
        return
    table, one = result.table, result.series
    moments = table["started_us"].cast(pa.int64()).cast(pa.timestamp("us"))
    days = pc.strftime(moments, format="%Y-%m-%d")
    limiters = table["limiter"]
    table = table.drop_columns(["limiter"])
    table = table.append_column(pa.field("capture", pa.string(), nullable=False), pa.array([one.key] * len(table), pa.string()))
    keys = pa.table([days, limiters], ["day", "limiter"]).group_by(["day", "limiter"]).aggregate([]).to_pylist()
    for key in sorted(keys, key=lambda key: (key["day"], key["limiter"])):
        rows = table.filter(pc.and_(pc.equal(days, key["day"]), pc.equal(limiters, key["limiter"])))
        yield f"day={key['day']}/site={quote(one.site, safe='')}/limiter={key['limiter']}", rows.combine_chunks()


def _last_us(table: Optional[pa.Table]) -> int:
    """When the last packet of all connections was captured, in us since 1970; 0 where there are none."""
    if table is None or not table.num_rows:
        return 0
    ends = pc.add(pc.cast(table["started_us"], pa.float64()), pc.multiply(table["seconds"], 1e6))
    return int(pc.max(ends).as_py())


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
        if any(source.has_grown() and not source.is_bounded for source in sources):
            # What counts as read is what was there when it was listed, and no more.
            sources = [source.again(is_bounded=True) for source in sources]
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
    again = source.again(source.is_bounded)
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
        self.is_bounded = self.has_grown()

    def again(self, is_bounded: bool) -> "Source":
        """The same, to be read from its start."""
        other = Source(self.capture, self.filesystem)
        other.first, other.is_bounded = self.first, is_bounded
        return other

    def has_grown(self) -> bool:
        """Whether more of it is there than when it was listed; objects of a store don't grow."""
        try:
            return self.filesystem is None and os.stat(self.capture.path).st_size > self.capture.size
        except OSError:
            return False

    def given(self) -> Any:
        return self.capture.path if self.filesystem is None and not self.is_bounded and not self.capture.skip else self

    def shown(self) -> str:
        """As the reader names it, which is given bytes and says text."""
        return os.fsencode(self.capture.path).decode("utf-8", "replace") if self.given() is not self else self.name

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
                self.stream = Rest(self.open(), self.capture.skip, self.capture.size if self.is_bounded else None)
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


class Rest:
    """A stream from the first packet on that its first ``skip`` bytes don't hold whole, after what has to stand before packets; and
    no more than its first ``most`` bytes.
    """

    def __init__(self, stream: Any, skip: int, most: Optional[int]) -> None:
        self.stream, self.left = stream, most
        self.start = self._passed(skip) if skip else b""

    def read(self, size: int) -> bytes:
        if self.start:
            piece, self.start = self.start[:size], self.start[size:]
            return piece
        if self.left is not None:
            size = min(size, self.left)
        more: bytes = self.stream.read(size)
        if self.left is not None:
            self.left -= len(more)
        return more

    def close(self) -> None:
        self.stream.close()

    def _passed(self, skip: int) -> bytes:
        """What has to stand before the packets that are left, and the start of the first of them."""
        self.start = b""
        magic = self.read(4)
        kept, at, order = (b"", 0, "<") if magic == SECTION else (magic + self.read(20), 24, ORDERS[magic][0])
        begun = magic[:4] if magic == SECTION else b""
        while True:
            begun += self.read(16 - len(begun))
            if len(begun) < 16:
                return kept + begun
            if magic != SECTION:
                length = 16 + int(struct.unpack_from(order + "I", begun, 8)[0])
            else:
                if begun[:4] == SECTION:
                    order = "<" if begun[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
                length = int(struct.unpack_from(order + "I", begun, 4)[0])
            if length < 16 or at + length > skip:
                return kept + begun
            whole = begun + self.read(length - 16)
            if magic == SECTION and struct.unpack_from(order + "I", whole)[0] not in PACKETS:
                kept += whole
            at, begun = at + length, b""


def _oldest_first(sources: List[Source]) -> List[Source]:
    """By their first packets, where all of them tell: a ring of files is written over, and summer time ends."""
    firsts = [source.first for source in sources]
    return sources if None in firsts else sorted(sources, key=lambda source: source.first or 0)


def can_go_on(capture: Capture, filesystem: Optional[Any]) -> bool:
    """Whether a capture can be read from some byte on: pcap and pcapng, not compressed."""
    with contextlib.suppress(Exception), Source(capture, filesystem).open() as stream:
        start = stream.read(4)
        return start in ORDERS or start == SECTION
    return False


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
    if start[:4] not in ORDERS:
        with contextlib.suppress(fullpipe.Error):
            begun = pa.table(fullpipe.read(io.BytesIO(whole), None, 1, timelines=False).connections)["started_us"]
            moments: List[int] = begun.to_pylist()
            return min(moments, default=0) * 1000 or None
        return None
    if len(start) < 32:
        return None
    order, unit = ORDERS[start[:4]]
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
