"""The command line of ``python -m fullpipe.archive``. What is not here: what the commands do."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from datetime import date
from typing import Any, Dict, List, Optional

from .. import __version__
from .._errors import Error, made

INSTALL = "python -m pip install 'pyarrow>=14' duckdb ray"

RUN_EXAMPLES = """\
Examples:
  python -m fullpipe.archive /srv/captures --out archive
  python -m fullpipe.archive s3://bucket/captures --out archive --workers 8
  python -m fullpipe.archive /srv/captures --out archive --address auto     on the Ray cluster that runs here
  python -m fullpipe.archive query limiters archive
  python -m fullpipe.archive query change archive --at 2026-11-24
  python -m fullpipe.archive report archive --html archive.html
  python -m fullpipe.archive hash archive

The same command goes on where a run was stopped, and reads what is new. Exit codes: 0; 24: something could not be read, and is
listed; 14: another run writes there; 16: the disk is full; 130: stopped; others as in `fullpipe help exit-codes`."""


def main(words: Optional[List[str]] = None) -> int:
    """Runs the command line; answers the exit code."""
    words = sys.argv[1:] if words is None else words
    commands = {"query": _query, "report": _report, "hash": _hash}
    command = commands.get(words[0], _run) if words else _run
    wants_json = "--json" in words
    try:
        try:
            return command(words[1:] if command is not _run else words)
        except ImportError as error:
            raise made("unsupported", f"an archive needs the package {error.name or error}", INSTALL, 21)
    except Error as error:
        return _told(error, wants_json)
    except KeyboardInterrupt:
        stopped = made("interrupted", "stopped; what is finished counts", "the same command goes on from there", 130)
        return _told(stopped, wants_json)
    except BrokenPipeError:
        # Whoever read standard output wants no more.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
        return 0


def _told(error: Error, wants_json: bool) -> int:
    if wants_json:
        told = {"kind": error.kind, "message": error.message, "hint": error.hint}
        _print_json({"schema": "fullpipe/2", "command": "archive", "error": told})
    else:
        print(f"error: {_clean(error.message)}", file=sys.stderr)
        if error.hint:
            print(f"hint: {_clean(error.hint)}", file=sys.stderr)
    return error.exit_code


def _run(words: List[str]) -> int:
    parser = _parser("", "Read captures into an archive: a Parquet data set with a row for each connection.", RUN_EXAMPLES)
    parser.add_argument("inputs", metavar="INPUT", nargs="+", help="folder, capture, or URL of an object store (s3://bucket/prefix)")
    parser.add_argument("--out", metavar="DIR", required=True, help="the archive: a folder, made or brought up to date")
    parser.add_argument("--site", metavar="NAME", help="site of all captures [default: the first folder below INPUT]")
    parser.add_argument("--filter", help="only segments that match, as `fullpipe read --filter`")
    parser.add_argument("--join", choices=["whole", "day", "none"], default="whole",
                        help="read rotated files (tcpdump -C and -G, dumpcap -b) as one: all of a series, those of a day, or none")
    parser.add_argument("--match", metavar="REGEX", help="names of captures in folders [default: .pcap, .pcapng, .cap, .snoop ...]")
    parser.add_argument("--workers", metavar="N", type=_count, help="series that are read at once [default: one per processor, of the machine or the cluster]")
    parser.add_argument("--threads", metavar="N", type=_count, default=1, help="threads of a worker [default: 1]")
    parser.add_argument("--memory", metavar="SIZE", type=_size, default=2 << 30, help="most memory that a worker takes for a series; Linux [default: 2G]")
    parser.add_argument("--address", metavar="ADDRESS", help="Ray cluster to work on: auto, HOST:PORT, ray://HOST:PORT [default: processes of this machine]")
    parser.add_argument("--engine", choices=["auto", "ray", "processes"], default="auto", help="who works: Ray listens on every address of a machine [default: processes, Ray with --address]")
    parser.add_argument("--hash", action="store_true", help="also the hash of all verdicts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--progress", choices=["auto", "json"], default="auto", help="how to tell of progress, on standard error")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")
    args = parser.parse_args(words)
    if args.match:
        try:
            re.compile(args.match)
        except re.error as error:
            raise made("usage", f"--match {args.match!r}: {error}", "give a regular expression of Python", 2)
    import fullpipe

    from . import run

    _check_filter(fullpipe, args.filter)
    names = ("site", "filter", "join", "match", "workers", "threads", "memory", "engine", "address", "out")
    options = run.Options(inputs=tuple(args.inputs), **{name: getattr(args, name) for name in names})
    how = "none" if args.quiet else "json" if args.progress == "json" else "text"
    # What stops a service ends a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    # Ray prints what it thinks of its workers; standard output is the result's.
    with contextlib.redirect_stdout(sys.stderr):
        done = run.run(options, run.Progress(how))
    document: Dict[str, Any] = {"schema": "fullpipe/2", "command": "archive", **done}
    if args.hash:
        document["hash"] = _digest(args.out)
    if args.json:
        _print_json(document)
    else:
        _print_done(document, args.out)
    return 24 if done["problems"] else 0


def _print_done(document: Dict[str, Any], out: str) -> None:
    from .run import size

    counts = document["archive"]
    problems = document["problems"]
    for one in problems[:20]:
        packet = f", packet {one['packet']}" if one["packet"] else ""
        print(f"{_clean(one['file'])}{packet}: {_clean(one['message'])}")
    if len(problems) > 20:
        print(f"and {len(problems) - 20} more: python -m fullpipe.archive query problems {out}")
    read = document["captures_read"]
    print(f"{read} captures read in {document['seconds']:.1f} s, {document['captures_found'] - read} not read again; {document['other_files']} other files")
    print(f"{out}: {counts['connections']:,} connections of {counts['captures']:,} captures ({size(counts['capture_bytes'])}) "
          f"in {counts['parquet_files']:,} files")
    told = [(counts["unreadable_captures"], "unreadable"), (counts["partial_captures"], "read in part"),
            (counts["failed_captures"], "to be tried again by the next run"), (document["not_listed"], "that can't be listed")]
    if any(number for number, _ in told):
        print("captures: " + "; ".join(f"{number:,} {what}" for number, what in told if number))
    if "hash" in document:
        print(f"hash {document['hash']}")


def _query(words: List[str]) -> int:
    from .queries import QUERIES, Answer, Asking
    from .store import Store

    told = "\n".join(f"  {name:10} {query.help}" for name, query in QUERIES.items())
    parser = _parser(" query", "Ask an archive.", f"Queries:\n{told}\n  problems   what could not be read")
    parser.add_argument("name", metavar="NAME", choices=[*QUERIES, "problems"], help="one of the queries below")
    _asks(parser)
    args = parser.parse_args(words)
    store = Store.to_read(args.dir)
    try:
        if args.name == "problems":
            columns = ["file", "packet", "message", "status"]
            rows = [tuple(one[name] for name in columns) for one in store.problems()][: args.top or None]
            answer = Answer("problems", "What could not be read", columns, rows)
        else:
            answer = Asking(store, _ask(args)).answer(args.name)
    finally:
        store.close()
    if args.json:
        _print_json(answer.document())
    else:
        _print_table(answer)
    return 0


def _report(words: List[str]) -> int:
    from .page import page
    from .queries import Ask, Asking
    from .store import Store

    parser = _parser(" report", "Draw an archive: one HTML file, offline.", None)
    _asks(parser)
    parser.add_argument("--html", metavar="FILE", required=True, help="where the page goes")
    args = parser.parse_args(words)
    store = Store.to_read(args.dir)
    try:
        ask = _ask(args)
        asking = Asking(store, ask)
        names = ["limiters", "prefixes", "unscaled"] + (["change"] if ask.at else [])
        answers = [asking.answer(name) for name in names]
        days = Asking(store, Ask(**{**ask.__dict__, "top": None})).answer("days")
        counts, problems = store.counts(), store.problems()
    finally:
        store.close()
    title = f"Archive {os.path.basename(os.path.abspath(args.dir))}"
    text = page(title, counts, answers, days, problems[:100])
    from .store import writing

    with writing(args.html):
        folder = os.path.dirname(os.path.abspath(args.html))
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="backslashreplace", dir=folder, delete=False) as file:
            try:
                file.write(text)
                file.flush()
                os.chmod(file.name, 0o644)
                os.replace(file.name, args.html)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(file.name)
                raise
    if args.json:
        documents = [answer.document() for answer in [*answers, days]]
        _print_json({"schema": "fullpipe/2", "command": "archive report", "html": args.html, "archive": counts, "answers": documents})
    return 0


def _hash(words: List[str]) -> int:
    parser = _parser(" hash", "Print one hash of all verdicts: the same for any number of workers, files and orders.", None)
    parser.add_argument("dir", metavar="DIR", help="an archive")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(words)
    digest = _digest(args.dir)
    if args.json:
        _print_json({"schema": "fullpipe/2", "command": "archive hash", "hash": digest})
    else:
        print(digest)
    return 0


def _digest(folder: str) -> str:
    from .digest import digest
    from .store import Store

    store = Store.to_read(folder)
    try:
        return store.asked(digest)
    finally:
        store.close()


def _parser(word: str, told: str, epilog: Optional[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        f"python -m fullpipe.archive{word}", description=told, epilog=epilog, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fullpipe {__version__}")
    return parser


def _asks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="an archive")
    parser.add_argument("--since", metavar="DAY", type=_day, help="from this day on (UTC): 2026-11-24")
    parser.add_argument("--until", metavar="DAY", type=_day, help="before this day")
    parser.add_argument("--site", metavar="NAME", help="only this site")
    parser.add_argument("--at", metavar="DAY", type=_day, help="the day of a change, for `change`")
    parser.add_argument("--top", metavar="N", type=_count_or_all, default=20, help="rows of the answer; 0: all [default: 20]")
    parser.add_argument("--all", action="store_true", help="also what the application, the full path or nobody knows limited")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _ask(args: argparse.Namespace) -> Any:
    from .queries import Ask

    return Ask(args.since, args.until, args.site, args.top, args.all, args.at)


def _print_table(answer: Any) -> None:
    from .page import cell, heading

    print(answer.title)
    if not answer.rows:
        print("  nothing")
        return
    cells = [[cell(column, value) for column, value in zip(answer.columns, row)] for row in answer.rows]
    heads = [heading(column) for column in answer.columns]
    widths = [max(len(head), *(len(row[place][0]) for row in cells)) for place, head in enumerate(heads)]
    numbers = [any(row[place][1] for row in cells) for place in range(len(heads))]
    for row in [[(head, False) for head in heads], *cells]:
        line = [text.rjust(width) if number else text.ljust(width) for (text, _), width, number in zip(row, widths, numbers)]
        print("  " + "  ".join(line).rstrip())


def _check_filter(fullpipe: Any, text: Optional[str]) -> None:
    """Before anything is read: the reader's own word on a filter that is none."""
    if text is None:
        return
    try:
        fullpipe.read(os.devnull, text)
    except fullpipe.InputInvalidError:
        pass


def _print_json(document: Dict[str, Any]) -> None:
    print(json.dumps(document, indent=2, default=str))


def _clean(text: str) -> str:
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number from 1 to 999999")
    return int(text)


def _count_or_all(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; give one such as 2026-11-24")


def _size(text: str) -> int:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]?)(i?)B?", text)
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give one such as 500M or 2G")
    power = " kMGT".index(found[2] or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt

