"""A run: what is there against what was read, the rest given to workers, what they found committed. What is not here: each of
these by itself (``inputs``, ``pools``, ``store``).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Callable, Deque, Dict, FrozenSet, List, NamedTuple, Optional, Set, TextIO, Tuple

from .._errors import made
from . import inputs, pools
from .inputs import Capture, Series, problem
from .store import MANIFEST, Known, Store
from .worker import How, Result, can_go_on, first_of

TRIES = 3
"""How many workers may die of one series."""

TASK_BYTES = 32 << 20
"""Small series go to a worker together, up to so much."""

TASK_SERIES = 16

COMMIT_SECONDS = 20.0
"""What is finished waits at most about so long before it counts; a run that is killed reads so much again."""

COMMIT_ROWS = 200_000


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    inputs: Tuple[str, ...]
    out: str
    site: Optional[str] = None
    filter: Optional[str] = None
    join: str = "whole"
    match: Optional[str] = None
    workers: Optional[int] = None
    threads: int = 1
    memory: int = 2 << 30
    engine: str = "auto"
    address: Optional[str] = None


@dataclass(frozen=True)
class ToDo:
    """A series to read, and the series that it takes the place of."""

    series: Series
    replaced: FrozenSet[str]


def run(options: Options, progress: "Progress") -> Dict[str, Any]:
    """Brings the archive up to date with its inputs; answers what was done."""
    places = [inputs.place(text) for text in options.inputs]
    kept = {"join": options.join, "filter": options.filter or ""}
    # Nothing is made before there is something to keep there.
    is_there = os.path.exists(os.path.join(Store.can_be(options.out).folder, MANIFEST))
    captures, unlisted, others = inputs.listed(places, options.match, options.site)
    if unlisted and not captures and not is_there:
        raise made("input_invalid", f"{unlisted[0]['file']}: {unlisted[0]['message']}", None, 24)
    store = Store.to_write(options.out, kept)
    try:
        series = inputs.series(captures, options.join)
        look = Look(
            lambda capture: first_of(capture, places[capture.place].filesystem),
            lambda capture: can_go_on(capture, places[capture.place].filesystem),
        )
        todo, lost = plan(series, store.known(), look)
        store.note(lost)
        how = How(tuple(one.filesystem for one in places), options.filter, options.threads, options.memory)
        progress.start(todo, len(captures))
        if todo:
            _work_off(todo, store, how, options, progress)
        return {
            "captures_found": len(captures),
            "captures_read": sum(len(one.series.captures) for one in todo),
            "other_files": others,
            "not_listed": len({one["file"] for one in unlisted}),
            "workers_died": progress.died,
            "seconds": round(progress.elapsed(), 3),
            "archive": store.counts(),
            "problems": unlisted + store.problems(),
        }
    finally:
        store.close()


class Look(NamedTuple):
    """What only a capture itself tells: when its first packet was captured, and whether it can be read from some byte on."""

    first: Callable[[Capture], Optional[int]]
    can_go_on: Callable[[Capture], bool]


def plan(series: List[Series], known: Dict[str, Known], look: Look) -> Tuple[List[ToDo], Dict[str, List[Dict[str, Any]]]]:
    """What is to be read, and by series that were read what of them can't be read on."""
    owner = {name: key for key, read in known.items() for name, fact in read.captures.items() if not fact.is_gone}
    there = {capture.name for one in series for capture in one.captures}
    todo: List[ToDo] = []
    lost: Dict[str, List[Dict[str, Any]]] = {}
    for one in series:
        before = {owner[capture.name] for capture in one.captures if capture.name in owner}
        if _is_read(one, before, known):
            continue
        others = {capture.name for capture in one.captures
                  if capture.name in owner and _is_another(capture, one, known[owner[capture.name]], look)}
        # What a series holds of files that are gone can't be read again: it stays, and only what is new is read.
        gone = {key: [name for name, fact in known[key].captures.items() if fact.is_gone or name in others or name not in there]
                for key in before}
        kept = {capture.name: gone[owner[capture.name]] for capture in one.captures
                if capture.name in owner and capture.name not in others and gone[owner[capture.name]]}
        captures = []
        for capture in one.captures:
            read = known[owner[capture.name]] if capture.name in owner and capture.name not in others else None
            if read is None:
                captures.append(capture)
            elif capture.name not in kept:
                captures.append(replace(capture, skip=read.captures[capture.name].skip))
            elif not _changed(capture, read):
                continue
            elif capture.size > read.captures[capture.name].size and read.status != "failed" and look.can_go_on(capture):
                # A file that was still being written: the rest of it goes with what is new.
                captures.append(replace(capture, skip=read.captures[capture.name].size))
            else:
                text = f"it changed after it was read, and is not read anew, because {min(kept[capture.name])} of its series is gone"
                lost.setdefault(owner[capture.name], []).append(problem(capture.name, text))
        one = replace(one, captures=tuple(captures))
        before = {key for key in before if not gone[key]}
        if not one.captures or _is_read(one, before, known):
            continue
        if one.key in known and one.key not in before:
            one = replace(one, label=_label(one.captures[0], look))
        todo.append(ToDo(one, frozenset(before)))
    return _whole(todo), lost


def _changed(capture: Capture, read: Known) -> bool:
    return read.captures[capture.name][:2] != (capture.size, capture.stamp)


def _is_another(capture: Capture, one: Series, read: Known, look: Look) -> bool:
    """Whether another recording has the name of one that was read. In a ring, whose files are written over, the first packet tells;
    a file by itself may have been edited, so that it is another only where it begins after all that was read.
    """
    before = read.captures[capture.name].first_ns
    if before is None or not _changed(capture, read):
        return False
    now = look.first(capture)
    if now is None or now == before:
        return False
    return len(one.captures) > 1 or len(read.captures) > 1 or now > read.last_us * 1000


def _label(capture: Capture, look: Look) -> str:
    """What a series is known by whose first capture has the name of one that is gone."""
    now, rest_of_it = look.first(capture), f", byte {capture.skip} on" if capture.skip else ""
    if now is None:
        return f"{capture.name} from {capture.stamp}{rest_of_it}"
    seconds, rest = divmod(now, 1_000_000_000)
    return f"{capture.name} from {datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{rest:09}Z{rest_of_it}"


def _is_read(one: Series, before: Set[str], known: Dict[str, Known]) -> bool:
    """Whether just these files were read, as they are now, and nothing is to be gained from another try."""
    if not before:
        return False
    read = [known[key] for key in before]
    if any(each.status == "failed" or each.site != one.site for each in read):
        return False
    facts = {name: fact[:2] for each in read for name, fact in each.captures.items() if not fact.is_gone}
    return all(facts.get(capture.name) == (capture.size, capture.stamp) for capture in one.captures) and (
        len(before) == 1 or one.fingerprint in {each.fingerprint for each in read}
    )


def _whole(todo: List[ToDo]) -> List[ToDo]:
    """Largest first, so that no worker is left with a large one at the end."""
    return sorted(todo, key=lambda one: (-one.series.size, one.series.key))


def _work_off(todo: List[ToDo], store: Store, how: How, options: Options, progress: "Progress") -> None:
    replaced = {one.series.key: one.replaced for one in todo}
    deaths: Dict[str, int] = {}
    waiting: List[Result] = []
    since, pause, rows, left = time.monotonic(), COMMIT_SECONDS, 0, len(todo)
    # Meanwhile workers are given what comes next.
    beside = ThreadPoolExecutor(1)
    going_on: Optional[Future[float]] = None

    def commit(results: List[Result]) -> float:
        started = time.monotonic()
        store.commit(results, {key for result in results for key in replaced[result.series.key]})
        return time.monotonic() - started

    pool = pools.pool(options.engine, options.workers, how, options.address)
    progress.engine = pool.name
    tasks: Deque[List[Series]] = deque(_tasks([one.series for one in todo], pool.most))
    try:
        while left:
            while tasks and pool.free > 0:
                pool.submit(tasks.popleft())
            for task, results in pool.wait(1.0):
                if results == pools.DIED:
                    progress.died += 1
                    results = _after_death(task, deaths, tasks)
                for result in results:
                    left -= 1
                    waiting.append(result)
                    rows += result.rows
                    progress.done(result)
            progress.show()
            if going_on and going_on.done():
                # Where a commit takes long, there are fewer.
                pause, going_on = max(COMMIT_SECONDS, 10 * going_on.result()), None
                since = time.monotonic()
            if waiting and not going_on and (time.monotonic() - since > pause or rows > COMMIT_ROWS):
                going_on = beside.submit(commit, waiting)
                waiting, rows = [], 0
    finally:
        # Ctrl-C, a full disk: what is finished counts where it can.
        pool.close()
        try:
            if going_on:
                going_on.result()
            if waiting and not _is_full(sys.exc_info()[1]):
                commit(waiting)
        finally:
            beside.shutdown()
            progress.end()


def _after_death(task: List[Series], deaths: Dict[str, int], tasks: Deque[List[Series]]) -> List[Result]:
    """A dead worker's series are given to others, each by itself; one of which many died is given up."""
    results = []
    for one in task:
        deaths[one.key] = deaths.get(one.key, 0) + 1
        if deaths[one.key] < TRIES:
            tasks.appendleft([one])
            continue
        text = f"{TRIES} workers died of it; perhaps it takes more than --memory allows: give more, or fewer --workers"
        results.append(Result(one, "failed", problems=[*one.notes, problem(one.key, text)]))
    return results


def _tasks(series: List[Series], workers: int) -> List[List[Series]]:
    """Series for a worker at a time: small ones together, as long as there is enough for all."""
    most = min(TASK_BYTES, sum(one.size for one in series) // (8 * workers))
    tasks: List[List[Series]] = []
    size = 0
    for one in series:
        if not tasks or len(tasks[-1]) >= TASK_SERIES or size + one.size > most:
            tasks.append([])
            size = 0
        tasks[-1].append(one)
        size += one.size
    return tasks


def _is_full(error: Optional[BaseException]) -> bool:
    return getattr(error, "kind", None) in ("disk_full", "no_permission", "system")


class Progress:
    """How far a run has come, on standard error: a line that is written over on a terminal, a line now and then elsewhere."""

    def __init__(self, how: str, stream: TextIO = sys.stderr) -> None:
        self.how, self.stream = how, stream
        self.is_terminal = stream.isatty()
        self.engine, self.died = "", 0
        self.captures = self.of_captures = self.bytes = self.of_bytes = self.bad = self.found = 0
        self.started = time.monotonic()
        self.shown = 0.0

    def start(self, todo: List[ToDo], found: int) -> None:
        self.of_captures = sum(len(one.series.captures) for one in todo)
        self.of_bytes = sum(one.series.size for one in todo)
        self.found, self.started = found, time.monotonic()
        if self.how == "text" and found > self.of_captures:
            self._line(f"{found - self.of_captures} of {found} captures were read before")

    def done(self, result: Result) -> None:
        self.captures += len(result.series.captures)
        self.bytes += result.series.size
        self.bad += result.status != "done"

    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def show(self, now: bool = False) -> None:
        every = 0.2 if self.is_terminal else 10.0
        if self.how == "none" or (time.monotonic() - self.shown < every and not now):
            return
        self.shown = time.monotonic()
        if self.how == "json":
            step = {"event": "progress", "captures": self.captures, "of": self.of_captures, "bytes": self.bytes,
                    "of_bytes": self.of_bytes, "bad": self.bad, "workers_died": self.died, "seconds": round(self.elapsed(), 1)}
            print(json.dumps(step), file=self.stream, flush=True)
            return
        rate = self.bytes / max(self.elapsed(), 0.001)
        text = f"{self.captures} of {self.of_captures} captures, {size(self.bytes)} of {size(self.of_bytes)}, {size(rate)}/s"
        text += f", {self.bad} not whole" if self.bad else ""
        text += f", {self.died} worker{'s' if self.died > 1 else ''} died" if self.died else ""
        if rate and self.bytes < self.of_bytes:
            text += f", {(self.of_bytes - self.bytes) / rate:.0f} s left"
        self._line(text)

    def end(self) -> None:
        if self.of_captures:
            self.show(now=True)
        if self.how == "text" and self.is_terminal:
            print(file=self.stream)

    def _line(self, text: str) -> None:
        start, end = ("\r\x1b[K", "") if self.is_terminal else ("", "\n")
        print(f"{start}{text}", end=end, file=self.stream, flush=True)


def size(count: float) -> str:
    """Bytes, with a unit."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 99.5 else f"{count:.1f} {unit}"


