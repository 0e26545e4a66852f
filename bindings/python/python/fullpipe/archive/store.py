"""The archive on the disk: Parquet files by day, site and limiter, and the manifest that says which of them count.

    DIR/day=2026-11-24/site=lon/limiter=receive_window/0000000c.parquet
    DIR/_manifest.sqlite    which captures were read, what was wrong with them, which files hold their rows
    DIR/.staging            files that are being written

Files are written and synced in ``.staging``; one transaction of the manifest then says that they count; then they are renamed
into their places. Whatever stops a run, the next one renames what counts and removes what doesn't: a row is never
doubled, never lost, and no file is ever half-written where a reader looks.

Day, site and limiter stand in the names of folders and not in the files, as readers of partitioned data sets want it; these pass over
names that begin with ``_`` or a dot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .._errors import Error, made
from . import inputs
from .worker import Result

VERSION = "2"
"""Of the manifest and of the folders."""

MANIFEST = "_manifest.sqlite"

FORMER = "manifest.sqlite"
"""Where an archive of version 1 has it."""

PARTITIONS = ("day", "site", "limiter")
"""Columns that stand in the names of folders."""

T = TypeVar("T")

LOOKS = 5
"""How often files that count are looked for: each time that one is missing, a commit has to have come in between."""

AT_ONCE = 4
"""Files that are written at a time."""

SMALL = 100_000
"""Rows: a file with fewer is written anew together with what comes, so that there are few files, and those large."""

CUT = "the capture ends in the middle of a packet"
"""What the reader says of a file that is still being written: no news once the rest was read."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE series (
    key TEXT PRIMARY KEY, site TEXT NOT NULL, fingerprint TEXT NOT NULL, status TEXT NOT NULL, connections INTEGER NOT NULL,
    bytes INTEGER NOT NULL, seconds REAL NOT NULL, last_us INTEGER NOT NULL, read_at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE capture (
    name TEXT NOT NULL, series TEXT NOT NULL, size INTEGER NOT NULL, stamp TEXT NOT NULL, first_ns INTEGER,
    is_gone INTEGER NOT NULL DEFAULT 0, skip INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (name, series)) WITHOUT ROWID;
CREATE INDEX capture_series ON capture (series);
CREATE TABLE problem (series TEXT NOT NULL, file TEXT NOT NULL, packet INTEGER, message TEXT NOT NULL);
CREATE INDEX problem_series ON problem (series);
CREATE TABLE part (path TEXT PRIMARY KEY, folder TEXT NOT NULL, connections INTEGER NOT NULL, staged TEXT) WITHOUT ROWID;
CREATE INDEX part_folder ON part (folder);
CREATE TABLE doomed (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE holds (part TEXT NOT NULL, series TEXT NOT NULL, PRIMARY KEY (part, series)) WITHOUT ROWID;
CREATE INDEX holds_series ON holds (series);
"""


class Fact(NamedTuple):
    """A capture as it was when it was read. ``is_gone``: another recording has its name since, or another series the rest of it;
    ``skip``: so much of its start was not read with it.
    """

    size: int
    stamp: str
    first_ns: Optional[int]
    is_gone: bool
    skip: int


class Known(NamedTuple):
    """A series that was read: ``last_us`` is when its last packet was captured."""

    fingerprint: str
    status: str
    site: str
    last_us: int
    captures: Dict[str, Fact]


class Store:
    """An archive. Whoever writes holds its lock; whoever reads needs none."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.staging = os.path.join(self.folder, ".staging")
        self.lock: Optional[sqlite3.Connection] = None
        self.opened: Optional[sqlite3.Connection] = None
        self.next = 0

    @property
    def manifest(self) -> sqlite3.Connection:
        """While it is open."""
        if self.opened is None:
            raise ValueError("the archive is closed")
        return self.opened

    @classmethod
    def can_be(cls, folder: str) -> "Store":
        """An archive that is not opened yet, in a place where one can be; nothing is made there."""
        if "://" in folder:
            hint = "give a folder; of a cluster, only the machine where the command runs writes into it"
            raise made("usage", f"an archive is written into a folder, and {folder.split('://')[0]}:// is an object store", hint, 2)
        store = cls(folder)
        if inputs.readable(store.folder) != store.folder:
            raise made("usage", f"the name of the archive, {inputs.readable(store.folder)}, is not UTF-8", "give another --out", 2)
        at = store.folder
        while not os.path.lexists(at) and os.path.dirname(at) != at:
            at = os.path.dirname(at)
        if os.path.exists(at) and not os.path.isdir(at):
            raise made("usage", f"{at} is a file, and an archive is a folder", "give a folder with --out", 2)
        with writing(store.folder):
            _is_ours(store.folder)
        return store

    @classmethod
    def to_write(cls, folder: str, options: Dict[str, str]) -> "Store":
        """Opens or makes an archive, alone, and finishes what a run before left."""
        store = cls.can_be(folder)
        with writing(store.folder):
            os.makedirs(store.staging, exist_ok=True)
            store._take_lock()
            store.opened = _connect(os.path.join(store.folder, MANIFEST))
            try:
                store._prepare(options)
                store._settle()
                _sweep(store)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def to_read(cls, folder: str) -> "Store":
        """Opens an archive that is there; a run may be writing into it."""
        store = cls(folder)
        file = os.path.join(store.folder, MANIFEST)
        if not os.path.isfile(file):
            _is_of_this_version(store.folder)
            hint = "python -m fullpipe.archive INPUT... --out DIR makes one"
            raise made("input_invalid", f"{folder} is no archive: it has no {MANIFEST}", hint, 24)
        try:
            store.opened = _connect(file)
            store._check_version()
        except sqlite3.DatabaseError as error:
            raise made("input_invalid", f"reading {file}: {error}", None, 24)
        return store

    def close(self) -> None:
        for connection in (self.opened, self.lock):
            if connection is not None:
                connection.close()
        self.opened = self.lock = None

    def _take_lock(self) -> None:
        """Held by an open transaction, so that it ends with the process, on every system."""
        path = os.path.join(self.staging, "lock.sqlite")
        self.lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self.lock.execute("PRAGMA locking_mode = EXCLUSIVE")
            self.lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self.lock.close()
            if "locked" not in str(error):
                raise
            text = f"another run writes into {self.folder}{_holder(self.staging)}"
            raise made("journal_locked", text, "wait for it, or give another --out", 14)
        with open(os.path.join(self.staging, "holder"), "w", encoding="utf-8") as file:
            file.write(f"process {os.getpid()} on {socket.gethostname()}")

    def _prepare(self, options: Dict[str, str]) -> None:
        if not self.manifest.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            script = "".join(f"INSERT INTO meta VALUES ({_quoted(key)}, {_quoted(value)});" for key, value in
                             {"version": VERSION, "next": "1", **options}.items())
            self.manifest.executescript(f"BEGIN; {TABLES} {script} COMMIT;")
            return
        self._check_version()
        before = dict(self.manifest.execute("SELECT key, value FROM meta"))
        for key, value in options.items():
            if before.get(key) != value:
                text = f"{self.folder} was made with --{key} {before.get(key) or '(none)'}, and now it is {value or '(none)'}"
                raise made("usage", text, "give the same, or another --out", 2)

    def _check_version(self) -> None:
        row = self.manifest.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        if row is None or row[0] != VERSION:
            raise _other_version(self.folder, row and row[0])

    def known(self) -> Dict[str, Known]:
        """What was read, by the names of series."""
        rows = self.manifest.execute("SELECT key, fingerprint, status, site, last_us FROM series")
        series = {key: Known(fingerprint, status, site, last_us, {}) for key, fingerprint, status, site, last_us in rows}
        captures = self.manifest.execute("SELECT name, series, size, stamp, first_ns, is_gone, skip FROM capture")
        for name, key, size, stamp, first_ns, is_gone, skip in captures:
            series[key].captures[name] = Fact(size, stamp, first_ns, bool(is_gone), skip)
        return series

    def commit(self, results: List[Result], replaced: Set[str]) -> None:
        """Makes what came of some series count, all at once, in place of the ``replaced`` series."""
        # One that was stopped in the middle may be given again: what of it is here already gives way.
        replaced = replaced | {result.series.key for result in results}
        with writing(self.folder):
            self._settle()
            staged: List[str] = []
            try:
                plan = self._stage(results, replaced, staged)
                self._record(results, replaced, plan)
            except BaseException:
                for path in staged:
                    with contextlib.suppress(OSError):
                        os.unlink(path)
                raise
            self._settle()

    def _stage(self, results: List[Result], replaced: Set[str], staged: List[str]) -> List["Part"]:
        parts: Dict[str, Part] = {}
        for result in results:
            for folder, table in result.parts:
                part = parts.setdefault(folder, Part(folder))
                part.tables.append(table)
                part.series.add(result.series.key)
        small = "SELECT path FROM part WHERE folder = ? AND connections < ?"
        for folder, part in parts.items():
            part.before.update(path for (path,) in self.manifest.execute(small, (folder, SMALL)))
        for key in replaced:
            for path, folder in self.manifest.execute(
                "SELECT path, folder FROM part JOIN holds ON holds.part = part.path WHERE holds.series = ?", (key,)
            ):
                parts.setdefault(folder, Part(folder)).before.add(path)
        first = int(self.manifest.execute("SELECT value FROM meta WHERE key = 'next'").fetchone()[0])
        for number, part in enumerate(parts.values(), first):
            for path in part.before:
                part.series.update(key for (key,) in self.manifest.execute("SELECT series FROM holds WHERE part = ?", (path,)))
            part.series -= replaced - {result.series.key for result in results}
            part.path = min(part.before, default=f"{part.folder}/{number:08x}.parquet")
            # Below the same folders, so that it says the same where a reader finds it there.
            part.staged = f".staging/{part.folder}/{number:08x}.parquet"
            staged.append(os.path.join(self.folder, part.staged))
        self.next = first + len(parts)
        _at_once(lambda part: self._put(part, replaced), parts.values())
        return list(parts.values())

    def _put(self, part: "Part", replaced: Set[str]) -> None:
        """Writes a file where it is staged, unless nothing is left of it."""
        tables = [_without(pq.ParquetFile(os.path.join(self.folder, path)).read(), replaced) for path in sorted(part.before, reverse=True)]
        table = pa.concat_tables(tables + part.tables, promote_options="default").sort_by([("capture", "ascending"), ("number", "ascending")])
        part.tables, part.connections = [], table.num_rows
        if not table.num_rows:
            part.staged = None
            return
        staged = os.path.join(self.folder, str(part.staged))
        os.makedirs(os.path.dirname(staged), exist_ok=True)
        _write(table, staged)
        os.makedirs(os.path.join(self.folder, part.folder), exist_ok=True)

    def _record(self, results: List[Result], replaced: Set[str], parts: List["Part"]) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        run = self.manifest.execute
        many = self.manifest.executemany
        with transaction(self.manifest):
            keys = [(key,) for key in replaced]
            many("DELETE FROM series WHERE key = ?", keys)
            many("DELETE FROM capture WHERE series = ?", keys)
            many("DELETE FROM problem WHERE series = ?", keys)
            for part in parts:
                many("DELETE FROM part WHERE path = ?", [(path,) for path in part.before])
                many("DELETE FROM holds WHERE part = ?", [(path,) for path in part.before])
                kept = {part.path} if part.staged else set()
                many("INSERT OR REPLACE INTO doomed VALUES (?)", [(path,) for path in part.before - kept])
                if part.staged:
                    run("INSERT INTO part VALUES (?, ?, ?, ?)", (part.path, part.folder, part.connections, part.staged))
                    many("INSERT INTO holds VALUES (?, ?)", [(part.path, key) for key in sorted(part.series)])
            for result in results:
                one = result.series
                run("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (one.key, one.site, one.fingerprint, result.status, result.rows, one.size, result.seconds, result.last_us, now))
                # Of two series with a file of one name the later one has the file; what the former had of that name is gone.
                many("UPDATE capture SET is_gone = 1 WHERE name = ?", [(capture.name,) for capture in one.captures])
                many("INSERT INTO capture VALUES (?, ?, ?, ?, ?, 0, ?)",
                     [(capture.name, one.key, capture.size, capture.stamp, result.firsts.get(capture.name), capture.skip) for capture in one.captures])
                many("DELETE FROM problem WHERE file = ? AND message = ?", [(capture.name, CUT) for capture in one.captures if capture.skip])
                many("INSERT INTO problem VALUES (?, ?, ?, ?)",
                     [(one.key, told["file"], told["packet"], told["message"]) for told in result.problems])
            run("UPDATE meta SET value = ? WHERE key = 'next'", (str(self.next),))

    def note(self, problems: Dict[str, List[Dict[str, Any]]]) -> None:
        """Keeps problems with series that were read before, each once."""
        with writing(self.folder), transaction(self.manifest):
            for key, told in problems.items():
                values = [(key, one["file"], one["message"]) for one in told]
                self.manifest.executemany("DELETE FROM problem WHERE series = ? AND file = ? AND message = ?", values)
                self.manifest.executemany("INSERT INTO problem (series, file, message) VALUES (?, ?, ?)", values)

    def _settle(self) -> None:
        """Does to the files what the manifest says of them; what was done before is done already."""
        doomed = [path for (path,) in self.manifest.execute("SELECT path FROM doomed")]
        staged = list(self.manifest.execute("SELECT path, staged FROM part WHERE staged IS NOT NULL"))
        for path in doomed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, path))
        for path, waiting in staged:
            whole = os.path.join(self.folder, path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.replace(os.path.join(self.folder, waiting), whole)
        _at_once(_sync_folder, {os.path.dirname(os.path.join(self.folder, path)) for path in doomed + [path for path, _ in staged]})
        if doomed or staged:
            with transaction(self.manifest):
                self.manifest.execute("DELETE FROM doomed")
                self.manifest.execute("UPDATE part SET staged = NULL WHERE staged IS NOT NULL")

    def parts(self) -> List[str]:
        """The files that count, whole paths; one that a writer is about to rename is read where it is staged."""
        paths = []
        for path, staged in self.manifest.execute("SELECT path, staged FROM part ORDER BY path"):
            waiting = os.path.join(self.folder, staged) if staged else None
            paths.append(waiting if waiting and os.path.exists(waiting) else os.path.join(self.folder, path))
        return paths

    def asked(self, use: Callable[[List[str]], T]) -> T:
        """What ``use`` makes of the files that count; another look where a run changed them in the meantime."""
        missing: List[str] = []
        for _ in range(LOOKS):
            generation, paths, missing = self._generation(), self.parts(), []
            try:
                answer = use(paths)
            except Error:
                raise
            except Exception as error:
                missing = [path for path in paths if not os.path.exists(path)]
                if not missing and self._generation() == generation:
                    self._tell_damaged(paths)
                    raise error
                continue
            if self._generation() == generation:
                return answer
        hint = "restore it, or make the archive anew: give another --out"
        if missing:
            raise made("input_invalid", f"reading {self.folder}: {os.path.relpath(missing[0], self.folder)} is missing", hint, 24)
        raise made("journal_locked", f"a run changes {self.folder} faster than it can be asked", "ask again when the run is over", 14)

    def _generation(self) -> Tuple[Any, ...]:
        """Another one after each commit: what is staged has a number of its own, and what only goes is missing."""
        number = self.manifest.execute("SELECT value FROM meta WHERE key = 'next'").fetchone()
        return (number, *self.manifest.execute("SELECT path FROM part ORDER BY path"))

    def _tell_damaged(self, paths: List[str]) -> None:
        """Names the first file that can't be read, where there is one."""
        for path in paths:
            try:
                with pq.ParquetFile(path) as file:
                    for _ in file.iter_batches():
                        pass
            except (OSError, pa.ArrowException) as error:
                hint = "restore it, or make the archive anew: give another --out"
                text = f"reading {self.folder}: {os.path.relpath(path, self.folder)} can't be read: {' '.join(str(error).split())}"
                raise made("input_invalid", text, hint, 24) from error

    def counts(self) -> Dict[str, int]:
        """What the archive holds."""
        def one(query: str) -> int:
            return int(self.manifest.execute(query).fetchone()[0] or 0)

        of_series = "capture JOIN series ON series.key = capture.series"
        is_told = "EXISTS (SELECT 1 FROM problem WHERE problem.series = capture.series AND problem.file = capture.name)"
        return {
            "captures": one("SELECT count(*) FROM capture"),
            "capture_bytes": one("SELECT sum(size) FROM capture"),
            "series": one("SELECT count(*) FROM series"),
            "bad_series": one("SELECT count(*) FROM series WHERE status = 'bad'"),
            "failed_series": one("SELECT count(*) FROM series WHERE status = 'failed'"),
            "unreadable_captures": one(f"SELECT count(*) FROM {of_series} WHERE status != 'failed' AND {is_told} AND first_ns IS NULL"),
            "partial_captures": one(f"SELECT count(*) FROM {of_series} WHERE status != 'failed' AND {is_told} AND first_ns IS NOT NULL"),
            # Where all of a series failed, the problem may name the series alone.
            "failed_captures": one(f"SELECT count(*) FROM {of_series} WHERE status = 'failed' AND ({is_told} OR connections = 0)"),
            "connections": one("SELECT sum(connections) FROM series"),
            "problems": one("SELECT count(*) FROM problem"),
            "parquet_files": one("SELECT count(*) FROM part"),
        }

    def problems(self) -> List[Dict[str, Any]]:
        """What could not be read."""
        rows = self.manifest.execute(
            "SELECT series, status, file, packet, message FROM problem JOIN series ON series.key = problem.series ORDER BY file, packet"
        )
        return [dict(zip(("series", "status", "file", "packet", "message"), row)) for row in rows]


class Part:
    """A file to be: the rows of one folder, with those of the files ``before`` that it takes the place of."""

    def __init__(self, folder: str) -> None:
        self.folder, self.path = folder, ""
        self.before: Set[str] = set()
        self.series: Set[str] = set()
        self.tables: List[pa.Table] = []
        self.connections = 0
        self.staged: Optional[str] = None


def partition(path: str) -> Dict[str, str]:
    """Day, site and limiter of all rows of a file, as the names of its folders say."""
    named = (folder.partition("=") for folder in os.path.normpath(path).split(os.sep))
    return {name: unquote(value) for name, _, value in named if name in PARTITIONS}


def _without(table: pa.Table, replaced: Set[str]) -> pa.Table:
    if not replaced:
        return table
    return table.filter(pc.invert(pc.is_in(table["capture"], pa.array(sorted(replaced), pa.string()))))


def _write(table: pa.Table, path: str) -> None:
    with open(path, "wb") as file:
        pq.write_table(table, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())


def _at_once(do: Callable[[T], None], all_of: Iterable[T]) -> None:
    """Some at a time: most of it is waiting for the disk, or Arrow's own work, which other threads need not wait for."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in threads.map(do, all_of):
            pass


def _sync_folder(path: str) -> None:
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _connect(file: str) -> sqlite3.Connection:
    # A run commits on another thread than the one that opens it, one thing at a time.
    connection = sqlite3.connect(file, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def writing(folder: str) -> Iterator[None]:
    """What goes wrong with the disk, as the product says it."""
    try:
        yield
    except Error:
        raise
    except (OSError, pa.ArrowException, sqlite3.Error) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if full or "disk is full" in str(error) or "No space left" in str(error):
            hint = "make room and run the same command again: it goes on from what is whole"
            raise made("disk_full", f"writing {folder}: no space is left", hint, 16) from error
        if isinstance(error, PermissionError):
            raise made("no_permission", f"writing {folder}: {error.strerror}", None, 3) from error
        raise made("system", f"writing {folder}: {error}", None, 70) from error


def _sweep(store: Store) -> None:
    """What a run that was stopped had not finished."""
    for name in os.listdir(store.staging):
        if name.startswith("day="):
            shutil.rmtree(os.path.join(store.staging, name))


def _is_ours(folder: str) -> None:
    if os.path.isdir(folder) and os.listdir(folder) and not os.path.exists(os.path.join(folder, MANIFEST)):
        _is_of_this_version(folder)
        if os.listdir(folder) == [".staging"]:
            return  # A run that was stopped before it had begun.
        text = f"{folder} has files in it that no archive put there"
        raise made("output_exists", text, "give a folder that is empty or not there", 25)


def _is_of_this_version(folder: str) -> None:
    if os.path.isfile(os.path.join(folder, FORMER)):
        raise _other_version(folder, "1")


def _other_version(folder: str, version: Optional[str]) -> Error:
    text = f"{folder} is an archive of version {version}; this fullpipe reads version {VERSION}"
    hint = "run it on the same captures with another --out; the rows of version 1 stay readable as Parquet: 'DIR/day=*/*/*/*.parquet'"
    return made("input_invalid", text, hint, 24)


def _holder(staging: str) -> str:
    try:
        with open(os.path.join(staging, "holder"), encoding="utf-8") as file:
            return f" ({file.read(200)})"
    except OSError:
        return ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


