"""Which captures there are, and which of them belong together. What is not here: reading one.

A place is a folder, a file, or a URL of an object store. Captures that a recorder wrote one after another (``tcpdump -C``,
``tcpdump -G``, ``dumpcap -b``) are a series: they are read as one, so that connections go on over the ends of files.
"""

from __future__ import annotations

import hashlib
import os
import re
import statistics
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from .._errors import Error, made

CAPTURE = re.compile(r"\.(pcap|pcapng|cap|dmp|snoop)\d*(\.(gz|zst|xz|bz2|lz4))?$", re.IGNORECASE)
"""What the name of a capture looks like, in a folder."""

NUMBERED = re.compile(r"^(?P<stem>.+\.(?:pcap|pcapng|cap|dmp|snoop))(?P<number>\d*)(?P<packed>\.(?:gz|zst))?$", re.IGNORECASE)
"""``tcpdump -C``: ``x.pcap``, ``x.pcap1``, ``x.pcap2``; with ``-W`` zeros stand before the number."""

STAMPED = re.compile(
    r"(?P<date>(?:19|20)\d\d-?[01]\d-?[0-3]\d)(?:[-_T. ]?(?P<time>[0-2]\d[-:.]?[0-5]\d(?:[-:.]?[0-6]\d)?))?(?!\d)"
    r"|(?<!\d)(?P<epoch>1\d{9})(?!\d)"
)
"""``tcpdump -G`` with a date and a time, or the seconds since 1970, in the name."""

USER = re.compile(r"(?<=://)[^/?#\s]*@")
"""Before the host of a URL, wherever it stands in a text."""

OPTIONS = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?#'\"]*)[?#][^\s'\"]*", re.IGNORECASE)
"""A URL, and what comes after its path."""

DENIED = re.compile(
    r"access.?denied|invalid.?access.?key.?id|signature.?does.?not.?match|(expired|invalid).?token|forbidden|\b40[13]\b", re.IGNORECASE
)
"""How object stores say that credentials don't do, in S3's words or those of its C++ library (``INVALID_ACCESS_KEY_ID``)."""

SITE_BYTES = 250
"""What is left of 255 bytes, which filesystems give a name, after ``site=``."""

RING = re.compile(r"_(?P<number>\d{5})_$")
"""``dumpcap -b``: ``x_00001_20261124120000.pcapng``."""


@dataclass(frozen=True)
class Capture:
    """One file: how it is shown, where its filesystem has it, and by what it is known again."""

    name: str
    path: str
    size: int
    stamp: str
    place: int
    site: str
    skip: int = 0
    """Bytes of its start whose packets were read as of another series, which stays."""


@dataclass(frozen=True)
class Series:
    """Captures that are read as one, oldest first. ``notes`` are problems that show before anything is read."""

    captures: Tuple[Capture, ...]
    notes: Tuple[Dict[str, Any], ...] = ()
    label: str = ""
    """What it is known by, where another series has the name of its first capture."""

    @property
    def key(self) -> str:
        return self.label or self.captures[0].name

    @property
    def site(self) -> str:
        return self.captures[0].site

    @property
    def size(self) -> int:
        return sum(capture.size for capture in self.captures)

    @property
    def fingerprint(self) -> str:
        told = "\n".join(f"{one.name}\t{one.size}\t{one.stamp}" for one in self.captures)
        return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


Found = Tuple[str, str, int, str, bool, Optional[os.stat_result]]
"""A file: its path below the place, its whole path, size, time of change, whether it was named itself, what this machine says of it."""


@dataclass
class Place:
    """Where captures are: a filesystem (None: this machine's own) and a path in it."""

    shown: str
    path: str
    filesystem: Optional[Any] = None
    given: str = ""
    """As it was given, before links were followed: that is what a site is called by."""


def place(text: str) -> Place:
    """The place that a path or a URL names; a secret in it goes to the filesystem and is shown nowhere."""
    if "://" not in text:
        return _here(text)
    url = urlsplit(text)
    if _has_open_secret(text):
        hint = "write what a URL has a meaning for by its number: / as %2F, ? as %3F, # as %23, @ as %40"
        raise made("usage", f"the user name or the secret in a {url.scheme}:// URL ends before its @, or a port is no number", hint, 2)
    shown = public(f"{url.scheme}://{url.netloc}{url.path}").rstrip("/")
    if url.scheme == "file":
        return _here(url2pathname(url.path))
    from pyarrow import fs

    try:
        filesystem, path = fs.FileSystem.from_uri(text)
    except (OSError, ValueError) as error:
        filesystem, path = _by_fsspec(text, shown, error)
    return Place(shown, path.rstrip("/"), filesystem)


def _here(path: str) -> Place:
    """A place of this machine; by its real name, so that another run, which comes by a link, knows what is there."""
    real = os.path.realpath(path)
    return Place(readable(real), real, None, os.path.abspath(path))


def _has_open_secret(text: str) -> bool:
    """Whether a slash or the like stands in a secret, so that the URL doesn't say where the secret ends."""
    url = urlsplit(text)
    try:
        port = url.port
    except ValueError:
        return True
    # Object stores have no ports: what looks like one is a secret's start.
    return port is not None and url.scheme in ("s3", "gs", "gcs", "abfs", "abfss")


def public(text: str) -> str:
    """What may be shown of a text: URLs in it without user names, secrets and options."""
    return OPTIONS.sub(r"\1", USER.sub("", text))


def _by_fsspec(text: str, shown: str, error: Exception) -> Tuple[Any, str]:
    from pyarrow import fs

    scheme = text.split("://", 1)[0]
    try:
        import fsspec
    except ImportError:
        reason = f"opening {shown}: {_line(error)}"
        raise made("input_invalid", reason, f"if pyarrow doesn't know {scheme}://, install fsspec and its package for it", 24)
    try:
        filesystem, path = fsspec.core.url_to_fs(text)
    except Exception as second:
        # Some log in here, and raise what they like.
        raise made("input_invalid", f"opening {shown}: {_line(error)}; {_line(second)}", None, 24)
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path


def listed(places: List[Place], match: Optional[str], site: Optional[str]) -> Tuple[List[Capture], List[Dict[str, Any]], int]:
    """All captures of the places, each once; folders that can't be listed; how many other files there are."""
    wanted = re.compile(match) if match else CAPTURE
    found: Dict[str, Capture] = {}
    problems: List[Dict[str, Any]] = []
    others = 0
    seen: Set[Tuple[int, int]] = set()
    for number, one in enumerate(places):
        walk = _local(one, problems, seen) if one.filesystem is None else _remote(one)
        for below, path, size, stamp, named, facts in walk:
            if not named and not wanted.search(os.path.basename(path)):
                others += 1
                continue
            if facts is not None and not _is_new(facts, seen):
                continue
            shown = readable(path) if one.filesystem is None else one.shown + path[len(one.path):]
            first = found.setdefault(shown, Capture(shown, path, size, stamp, number, _folder_for(readable(site or _site(one, below)))))
            if first.path != path:
                problems.append(problem(shown, "another file has a name that reads the same; it is not read"))
    return sorted(found.values(), key=lambda capture: capture.name), problems, others


def readable(name: str) -> str:
    """A name as text, whatever its bytes are: a file's name need not be UTF-8, and ``b\\xff.pcap`` is then what it reads as."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _folder_for(site: str) -> str:
    """The site, where the archive can have a folder of that name: in one, other than ASCII letters takes three bytes for each of its own."""
    if len(quote(site, safe="")) > SITE_BYTES:
        hint = f"give a shorter one with --site: {SITE_BYTES} bytes at the most, after %-encoding"
        raise made("usage", f"the site {site[:40]}... is too long for the name of a folder", hint, 2)
    return site


def _site(one: Place, below: str) -> str:
    """The first folder below the place; for what lies right in it, the place's own name."""
    first, _, rest = below.partition("/")
    if rest:
        return first
    own = one.given or one.path
    own = own if below else os.path.dirname(own)
    return os.path.basename(own) or "all"


def _local(one: Place, problems: List[Dict[str, Any]], seen: Set[Tuple[int, int]]) -> Iterator[Found]:
    try:
        facts = os.stat(one.path)
    except OSError as error:
        raise _unlisted(one.shown, error)
    if not os.path.isdir(one.path):
        yield "", one.path, facts.st_size, str(facts.st_mtime_ns), True, facts
        return
    failed: List[OSError] = []
    paths = [os.path.join(folder, file) for folder, files in _folders(one.path, failed, seen) for file in sorted(files)]
    # What only links lead to comes last.
    for is_link in (False, True):
        for path in paths:
            if os.path.islink(path) != is_link:
                continue
            below = os.path.relpath(path, one.path).replace(os.sep, "/")
            try:
                facts = os.stat(path)
            except OSError as error:
                problems.append(problem(readable(path), _line(error)))
                continue
            if not os.path.isfile(path):
                continue
            yield below, path, facts.st_size, str(facts.st_mtime_ns), False, facts
    for each in failed:
        if each.filename == one.path:
            raise _unlisted(one.shown, each)
        problems.append(problem(readable(str(each.filename)), _line(each)))


def _is_new(facts: os.stat_result, seen: Set[Tuple[int, int]]) -> bool:
    """Whether a file or folder was not seen by another name; some filesystems number none."""
    one = (facts.st_dev, facts.st_ino)
    is_new = one not in seen or not facts.st_ino
    seen.add(one)
    return is_new


def _folders(top: str, failed: List[OSError], seen: Set[Tuple[int, int]]) -> Iterator[Tuple[str, List[str]]]:
    """All folders below one, with their files, each once: what only links lead to comes last."""
    starts = [top]
    for start in starts:
        for folder, folders, files in os.walk(start, onerror=failed.append):
            try:
                facts = os.stat(folder)
            except OSError as error:
                failed.append(error)
                folders.clear()
                continue
            if not _is_new(facts, seen):
                folders.clear()
                continue
            folders.sort()
            paths = [os.path.join(folder, name) for name in folders]
            starts += [path for path in paths if os.path.islink(path)]
            yield folder, files


def _remote(one: Place) -> Iterator[Found]:
    from pyarrow import fs

    filesystem: Any = one.filesystem
    try:
        itself = filesystem.get_file_info(one.path)
        if itself.type == fs.FileType.File:
            yield "", itself.path, itself.size, str(itself.mtime_ns), True, None
            return
        if itself.type == fs.FileType.NotFound:
            raise FileNotFoundError("there is nothing of that name")
        infos = filesystem.get_file_info(fs.FileSelector(one.path, recursive=True))
    except Exception as error:
        # fsspec's filesystems raise what they like.
        raise _unlisted(one.shown, error)
    for info in sorted(infos, key=lambda info: info.path):
        if info.type == fs.FileType.File:
            yield info.path[len(one.path):].lstrip("/"), info.path, info.size or 0, str(info.mtime_ns), False, None


def _unlisted(shown: str, error: BaseException) -> Error:
    hint = None
    text = _line(error)
    if DENIED.search(text):
        hint = "check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, the profile or the role) and what they may read"
        return made("no_permission", f"listing {shown}: {text}", hint, 3)
    return made("input_invalid", f"listing {shown}: {text}", hint, 24)


def series(captures: List[Capture], join: str) -> List[Series]:
    """Captures sorted into series. ``join`` is ``whole``, ``day`` (a series ends with the day in its names) or ``none``."""
    if join == "none":
        return [Series((capture,)) for capture in captures]
    groups: Dict[Tuple[Any, ...], List[Tuple[Tuple[Any, ...], Capture]]] = {}
    for capture in captures:
        key, order = _place_in_series(capture, join == "day")
        groups.setdefault(key, []).append((order, capture))
    made_of: List[Series] = []
    for members in groups.values():
        members.sort(key=lambda member: (member[0], member[1].name))
        made_of.extend(_without_gaps(members))
    return sorted(made_of, key=lambda one: one.key)


def _place_in_series(capture: Capture, by_day: bool) -> Tuple[Tuple[Any, ...], Tuple[Any, ...]]:
    """What all of a series have in common, and (seconds, number) that order it; without either, it is one by itself."""
    folder, file = os.path.split(capture.name)
    numbered = NUMBERED.match(file)
    if not numbered:
        return (capture.place, folder, file), (0, 0)
    stem, number = numbered["stem"], int(numbered["number"] or 0)
    stamp = _stamp(stem)
    if stamp is None:
        return (capture.place, folder, stem), (0, number)
    seconds, start, end = stamp
    before = stem[:start]
    ring = RING.search(before)
    if ring:
        before, number = before[: ring.start()], int(ring["number"])
    day = datetime.fromtimestamp(seconds, timezone.utc).date() if by_day else None
    return (capture.place, folder, before, stem[end:], bool(ring), day), (seconds, number)


def _stamp(stem: str) -> Optional[Tuple[int, int, int]]:
    for found in STAMPED.finditer(stem):
        if found["epoch"]:
            return int(found["epoch"]), found.start(), found.end()
        digits = re.sub(r"\D", "", found["date"] + (found["time"] or ""))
        try:
            at = datetime.strptime(digits, "%Y%m%d%H%M%S"[: {8: 6, 12: 10, 14: 12}[len(digits)]])
        except (ValueError, KeyError):
            continue
        return int(at.replace(tzinfo=timezone.utc).timestamp()), found.start(), found.end()
    return None


def _without_gaps(members: List[Tuple[Tuple[Any, ...], Capture]]) -> Iterator[Series]:
    """Whole series; where a file of one is missing, what comes after is a series of its own, and says so."""
    steps = [later[0][0] - earlier[0][0] for earlier, later in zip(members, members[1:])]
    steps = [step for step in steps if step > 0]
    usual = statistics.median_low(steps) if steps else 0
    # A recorder that rotates by size has no step from which a file could be told to be missing.
    if 2 * sum(abs(step - usual) <= max(2, usual / 50) for step in steps) < len(steps):
        usual = 0
    part: List[Capture] = []
    notes: Tuple[Dict[str, Any], ...] = ()
    last: Optional[Tuple[Any, ...]] = None
    for order, capture in members:
        gap = None if last is None else _gap(last, order, usual)
        if gap:
            yield Series(tuple(part), notes)
            text = f"{gap} between {os.path.basename(part[-1].name)} and this: connections don't go on over it"
            part, notes = [], (problem(capture.name, text),)
        part.append(capture)
        last = order
    yield Series(tuple(part), notes)


def _gap(last: Tuple[Any, ...], order: Tuple[Any, ...], usual: float) -> Optional[str]:
    missing = order[1] - last[1] - 1
    if order[0] == last[0] or (order[1] and last[1] and missing >= 0):
        return f"{missing} numbered file{'s are' if missing > 1 else ' is'} missing" if missing > 0 else None
    waited = order[0] - last[0]
    return f"no file for {waited:.0f} s (usually every {usual:.0f} s)" if usual and waited > 1.5 * usual else None


def problem(file: str, message: str, packet: Optional[int] = None) -> Dict[str, Any]:
    """Something that could not be read, as in the table of problems."""
    return {"file": file, "packet": packet, "message": message}


def _line(error: BaseException) -> str:
    """What an exception says, in one line."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return public(" ".join(str(said).split()))
