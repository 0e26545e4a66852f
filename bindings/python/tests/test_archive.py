"""Archives: the same rows and one hash for any number of workers, whatever is stopped, cut, missing or forbidden on the way."""

import contextlib
import csv
import datetime
import errno
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from urllib.parse import quote

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

import pyarrow as pa
import pyarrow.parquet as pq

import fullpipe
from fullpipe.archive import inputs, main, run, store, worker

POOL = run.pools.pool
"""As it is, without what these tests put in its place."""

ROOT = pathlib.Path(__file__).parents[3]
DATA = ROOT / "crates/capture/tests/data"
WINDOW = DATA / "wan-80ms-cubic-window-a.pcap"
POLICED = DATA / "2m-230ms-cubic-policed-a.pcap"


class Here:
    """An engine without workers, for tests that are about something else."""

    name, most = "here", 1

    def __init__(self, how, dies=None, times=0):
        self.how, self.dies, self.times, self.tasks = how, dies, times, []

    @property
    def free(self):
        return 1 - len(self.tasks)

    def submit(self, task):
        self.tasks.append(task)

    def wait(self, seconds):
        task = self.tasks.pop()
        if self.times and any(self.dies in one.key for one in task):
            self.times -= 1
            return [(task, run.pools.DIED)]
        return [(task, run.pools._work(task, self.how))]

    def close(self):
        pass


@pytest.fixture(autouse=True)
def here(monkeypatch):
    real = run.pools.pool
    monkeypatch.setattr(run.pools, "pool", lambda engine, workers, how, address: Here(how) if engine == "auto" else real(engine, workers, how, address))
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def archive(*words, code=0):
    """Runs the command line, and gives its document."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        ended = main([*map(str, words), "--json"])
    assert ended == code, said.getvalue()
    return json.loads(said.getvalue())


def made(source, out, *words, code=0):
    return archive(source, "--out", out, "--quiet", "--hash", *words, code=code)


def rows(out):
    files = sorted(pathlib.Path(out).glob("day=*/**/*.parquet"))
    found = [{**row, **store.partition(str(file))} for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(found, key=lambda row: (row["capture"], row["number"]))


def packets(path):
    data, at, found = path.read_bytes(), 24, []
    while at < len(data):
        length = 16 + struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at : at + length])
        at += length
    return data[:24], found


def cut_in(path, count, names):
    """A capture as a recorder that rotates would have written it."""
    head, found = packets(path)
    step = -(-len(found) // count)
    for place, name in enumerate(names):
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_bytes(head + b"".join(found[place * step : (place + 1) * step]))


@pytest.fixture
def captures(tmp_path):
    source = tmp_path / "in"
    for site in ("lon", "nyc"):
        (source / site).mkdir(parents=True)
        for file in (WINDOW, POLICED, DATA / "50m-40ms-cubic-delayed-ack-a.pcap", DATA / "20m-150ms-cubic-idle-b.pcap"):
            shutil.copy(file, source / site)
    cut_in(POLICED, 4, [source / "sin" / ("r.pcap" + (str(n) if n else "")) for n in range(4)])
    (source / "lon" / "notes.txt").write_text("no capture")
    return source


def test_workers_go_on_while_what_they_found_is_written(captures, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(run, "TASK_SERIES", 1)
    began, went_on = threading.Event(), threading.Event()
    commit = store.Store.commit

    def slow(self, results, replaced):
        began.set()
        assert all(result.table is None and result.rows == sum(map(len, dict(result.parts).values())) for result in results)
        went_on.wait(60)
        commit(self, results, replaced)

    class Progress(run.Progress):
        def done(self, result):
            super().done(result)
            if began.is_set():
                went_on.set()

    monkeypatch.setattr(store.Store, "commit", slow)
    done = run.run(run.Options((str(captures),), str(tmp_path / "out"), workers=1, engine="processes"), Progress("none"))
    assert went_on.is_set(), "every series was read before anything was written"
    assert done["archive"]["connections"] == 9


def test_a_disk_that_fills_while_workers_go_on_ends_the_run(captures, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(run, "TASK_SERIES", 1)
    monkeypatch.setattr(store, "_write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    options = run.Options((str(captures),), str(tmp_path / "out"), workers=1, engine="processes")
    with pytest.raises(fullpipe.DiskFullError, match="no space is left"):
        run.run(options, run.Progress("none"))
    assert [file for file in (tmp_path / "out").rglob("*.parquet")] == []


def test_any_number_of_workers_gives_the_same_rows_and_the_hash_of_the_single_readings(captures, tmp_path):
    one = made(captures, tmp_path / "one")
    three = made(captures, tmp_path / "three", "--workers", 3, "--engine", "processes")
    assert one["hash"] == three["hash"] == archive("hash", tmp_path / "one")["hash"]
    assert rows(tmp_path / "one") == rows(tmp_path / "three")
    assert (one["captures_read"], one["other_files"], one["archive"]["connections"]) == (12, 1, 9)
    # The rows are those of the package, so that they are those of `read --parquet`.
    pa = pytest.importorskip("pyarrow")
    table = pa.table(fullpipe.read(WINDOW).connections)
    row = next(row for row in rows(tmp_path / "one") if row["capture"].endswith("lon/" + WINDOW.name))
    (alone,) = table.to_pylist()
    assert {name: row[name] for name in alone} == alone
    assert row["site"] == "lon" and re.fullmatch(r"\d{4}-\d\d-\d\d", row["day"])
    file = next((tmp_path / "one").glob(f"day={row['day']}/site=lon/limiter={row['limiter']}/*.parquet"))
    written = pq.read_schema(file)
    assert written.names == [name for name in table.schema.names if name != "limiter"] + ["capture"]
    for field in table.schema:
        if field.name != "limiter":
            assert written.field(field.name).equals(field, check_metadata=True)
    assert written.metadata[b"schema"] == table.schema.metadata[b"schema"]


def test_a_rotated_series_is_the_capture_that_it_was_cut_from(tmp_path):
    whole = made(POLICED, tmp_path / "whole")
    for kind, names in {
        "size": ["x.pcap", "x.pcap1", "x.pcap2", "x.pcap3"],
        "time": [f"x-20261124{hour:02}0000.pcap" for hour in (8, 9, 10, 11)],
        "ring": [f"x_{n:05}_2026112408{n:02}00.pcap" for n in (7, 8, 9, 10)],
        # The oldest of a ring of `tcpdump -W` isn't the first by name.
        "over": ["x.pcap2", "x.pcap3", "x.pcap0", "x.pcap1"],
    }.items():
        source = tmp_path / kind
        cut_in(POLICED, 4, [source / name for name in names])
        joined = made(source, tmp_path / f"{kind}-out")
        assert (joined["hash"], joined["archive"]["series"]) == (whole["hash"], 1), kind
    apart = made(tmp_path / "size", tmp_path / "apart", "--join", "none")
    assert apart["archive"]["connections"] == 4


def test_a_second_run_reads_what_is_new_or_changed_and_nothing_else(captures, tmp_path):
    out = tmp_path / "out"
    first = made(captures, out)
    again = made(captures, out)
    assert (again["captures_read"], again["hash"]) == (0, first["hash"])
    # A file of a series that grew, and a new one: its rows take the place of those that were there.
    shutil.copy(WINDOW, captures / "nyc" / "late.pcap")
    last = captures / "sin" / "r.pcap3"
    whole, last_bytes = last.read_bytes(), last.read_bytes()
    last.write_bytes(last_bytes[:-200])
    shorter = made(captures, out, code=24)
    assert (shorter["captures_read"], shorter["archive"]["connections"]) == (5, 10)
    last.write_bytes(whole)
    grown = made(captures, out)
    assert (grown["captures_read"], grown["archive"]["connections"]) == (4, 10)
    assert grown["hash"] == made(captures, tmp_path / "anew")["hash"]


def test_what_a_ring_has_written_over_stays_in_the_archive(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    cut_in(POLICED, 4, [source / f"r.pcap{n}" for n in range(4)])
    before = made(source, out)
    (source / "r.pcap0").unlink()
    shutil.copy(WINDOW, source / "r.pcap4")
    after = made(source, out)
    assert after["captures_read"] == 1
    assert after["archive"]["connections"] == before["archive"]["connections"] + 1


def test_a_file_that_a_ring_has_written_over_is_read_and_what_it_held_stays(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    ring = [source / f"r.pcap{n}" for n in range(4)]
    for file, of in zip(ring, (WINDOW, POLICED, DATA / "50m-40ms-cubic-delayed-ack-a.pcap", DATA / "20m-150ms-cubic-idle-b.pcap")):
        shutil.copy(of, file)
    before = made(source, out)
    assert before["archive"]["connections"] == 4
    whole = (DATA / "adsl2-cubic-window-a.pcap").read_bytes()
    ring[0].write_bytes(whole[:-2000])
    after = made(source, out, code=24)
    assert (after["captures_read"], after["archive"]["connections"]) == (1, 5)
    # The recorder is still at it: the file is the same recording, and is read anew.
    ring[0].write_bytes(whole)
    grown = made(source, out)
    assert (grown["captures_read"], grown["archive"]["connections"], grown["problems"]) == (1, 5, [])
    assert made(source, out)["captures_read"] == 0
    # Round again, and the next file, too: three generations of one name, and both new files are read as one series.
    shutil.copy(DATA / "strangers" / "paced-socket-a.pcap", ring[0])
    shutil.copy(DATA / "strangers" / "request-response-a.pcap", ring[1])
    round_again = made(source, out)
    assert round_again["captures_read"] == 2 and len(rows(out)) == round_again["archive"]["connections"] > 6
    assert len({row["capture"] for row in rows(out)}) == 3
    assert made(source, out)["captures_read"] == 0


@pytest.mark.parametrize("as_blocks", [False, True])
def test_a_file_that_was_still_being_written_is_read_on_when_its_ring_has_lost_another(tmp_path, as_blocks):
    source, out, scratch = tmp_path / "in", tmp_path / "out", tmp_path / "scratch"
    source.mkdir()

    def write(number, packets_more=None):
        """A file of the ring with two connections, or with the first, so many packets of the second, and a piece of the next."""
        (head, first), (_, second) = (
            packets(moved(of, scratch, 1_764_000_000 + 1000 * number + at)) for at, of in ((0, POLICED), (400, WINDOW)))
        first, second = ([another(packet, 2 * number + place) for packet in some] for place, some in enumerate((first, second)))
        texts = []
        for some in (first + second, first + second[:packets_more]):
            scratch.write_bytes(head + b"".join(some))
            texts.append(as_pcapng(scratch) if as_blocks else scratch.read_bytes())
        (source / f"r.pcap{number % 4}").write_bytes(texts[0] if packets_more is None else texts[0][: len(texts[1]) + 7])

    for number in range(4):
        write(number, 0 if number == 3 else None)
    assert made(source, out, code=24)["archive"]["connections"] == 7
    # Whole at the next run, when the oldest has been written over; and so on, round again.
    for number in range(3, 8):
        write(number)
        write(number + 1, 0)
        told = made(source, out, code=24)["problems"]
        assert [pathlib.Path(one["file"]).name for one in told] == [f"r.pcap{(number + 1) % 4}"]
    write(8, 200)
    made(source, out, code=24)
    write(8)
    assert made(source, out)["archive"]["connections"] == len(rows(out)) == 18
    assert made(source, out)["captures_read"] == 0
    assert archive("query", "problems", out)["rows"] == []
    each = [pa.table(fullpipe.read(of).connections)["packets"].to_pylist() for of in (POLICED, WINDOW)]
    assert sum(row["packets"] for row in rows(out)) == 9 * sum(sum(one) for one in each)


def test_what_of_a_ring_cannot_be_read_on_stays_listed(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    cut_in(POLICED, 4, [source / f"r.pcap{n}" for n in range(4)])
    (source / "r.pcap0").write_bytes(moved(WINDOW, tmp_path / "scratch", 1_000).read_bytes())
    made(source, out)
    (source / "r.pcap0").unlink()
    (source / "r.pcap3").write_bytes((source / "r.pcap3").read_bytes()[:-400])
    (told,) = made(source, out, code=24)["problems"]
    assert "r.pcap0 of its series is gone" in told["message"]
    (source / "r.pcap3").unlink()
    for _ in range(2):
        assert [one["message"] for one in made(source, out, code=24)["problems"]] == [told["message"]]
    assert [one["message"] for one in archive("query", "problems", out)["rows"]] == [told["message"]]


def test_a_file_that_grows_while_it_is_read_counts_as_far_as_it_was_when_it_was_listed(tmp_path, monkeypatch):
    source = tmp_path / "in"
    source.mkdir()
    head, found = packets(WINDOW)
    (source / "x.pcap").write_bytes(head + b"".join(found[:100]))
    read, reads = fullpipe.read, []

    def grows(given, *words, **more):
        reads.append(given)
        if len(reads) == 1:
            (source / "x.pcap").write_bytes(WINDOW.read_bytes())
        return read(given, *words, **more)

    monkeypatch.setattr(worker.fullpipe, "read", grows)
    (result,) = results(source)
    assert (sum(result.table["packets"].to_pylist()), len(reads)) == (100, 2)


def test_a_capture_that_was_edited_is_read_anew_and_one_that_was_recorded_over_stays(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    file = source / "x.pcap"
    head, found = packets(POLICED)
    file.write_bytes(head + b"".join(found))
    made(source, out)
    file.write_bytes(head + b"".join(found[40:]))
    edited = made(source, out)
    assert (edited["captures_read"], edited["archive"]["connections"]) == (1, 1)
    a_day_later(POLICED, file)
    assert made(source, out)["archive"]["connections"] == 2
    assert made(source, out)["captures_read"] == 0


def a_day_later(source, target):
    """The same capture, made on the next day."""
    moved(source, target, struct.unpack_from("<I", source.read_bytes(), 24)[0] + 86_400)


def moved(source, target, start):
    """The same capture, begun at another second since 1970."""
    head, found = packets(source)
    later = start - struct.unpack_from("<I", found[0])[0]
    target.write_bytes(head + b"".join(struct.pack("<I", struct.unpack_from("<I", one)[0] + later) + one[4:] for one in found))
    return target


@pytest.mark.parametrize("name, packed", [("pcap", False), ("pcap", True), ("pcapng", False)])
def test_when_a_recording_begins_is_told_by_the_start_of_its_file(name, packed):
    first = struct.unpack_from("<II", POLICED.read_bytes(), 24)
    moment = first[0] * 1_000_000_000 + first[1] * 1000
    whole = POLICED.read_bytes() if name == "pcap" else as_pcapng(POLICED)
    assert worker._first_packet((gzip.compress(whole) if packed else whole)[:4096]) == moment
    assert worker._first_packet(b"this is no capture") is None


def as_pcapng(path):
    """The same packets in pcapng (draft-ietf-opsawg-pcapng): a section, an interface, enhanced packet blocks."""
    head, found = packets(path)
    block = lambda kind, body: struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)  # noqa: E731
    link = struct.unpack_from("<I", head, 20)[0]
    blocks = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)), block(1, struct.pack("<HHI", link, 0, 65535))]
    for packet in found:
        seconds, fraction, kept, length = struct.unpack_from("<IIII", packet)
        moment = seconds * 1_000_000 + fraction
        body = struct.pack("<IIIII", 0, moment >> 32, moment & 0xFFFFFFFF, kept, length) + packet[16:]
        blocks.append(block(6, body + bytes(-len(body) % 4)))
    return b"".join(blocks)


def test_names_that_are_not_utf_8_are_read_and_told_as_they_can_be(captures, tmp_path):
    folder = os.fsencode(captures) + b"/caf\xe9"
    os.mkdir(folder)
    shutil.copy(WINDOW, folder + b"/b\xff.pcap")
    with open(folder + b"/bad\xff.pcap", "wb") as file:
        file.write(b"this is no capture")
    with open(folder + b"/cut\xff.pcap", "wb") as file:
        file.write(POLICED.read_bytes()[:-5])
    done = made(captures, tmp_path / "out", code=24)
    assert done["archive"]["connections"] == 9 + 2
    assert {pathlib.Path(one["file"]).name for one in done["problems"]} == {"bad\\xff.pcap", "cut\\xff.pcap"}
    assert made(captures, tmp_path / "out", code=24)["captures_read"] == 0
    assert "caf\\xe9" in {row["site"] for row in rows(tmp_path / "out")}
    assert archive("query", "limiters", tmp_path / "out", "--site", "caf\\xe9")["rows"]
    only = made(folder.decode("utf-8", "surrogateescape"), tmp_path / "only", code=24)
    assert only["archive"]["connections"] == 2
    error = made(captures, tmp_path / "out\udcff", code=2)["error"]
    assert "not UTF-8" in error["message"]


def test_folders_behind_links_are_read_once(captures, tmp_path):
    aside = tmp_path / "aside"
    aside.mkdir()
    shutil.copy(WINDOW, aside / "far.pcap")
    (captures / "par").symlink_to(aside)
    (captures / "again").symlink_to(captures / "lon")
    (captures / "lon" / "up").symlink_to(captures)
    (aside / "back").symlink_to(captures)
    done = made(captures, tmp_path / "out")
    assert (done["captures_found"], done["archive"]["connections"]) == (13, 10)
    assert {row["site"] for row in rows(tmp_path / "out")} == {"lon", "nyc", "sin", "par"}


def test_a_site_or_a_number_that_cannot_be_is_refused_before_anything_is_read(captures, tmp_path, capsys):
    long = captures / ("\N{CYRILLIC SMALL LETTER ZHE}" * 60)
    long.mkdir()
    shutil.copy(WINDOW, long)
    for words in (("--site", "x" * 300), ()):
        error = made(captures, tmp_path / "out", *words, code=2)["error"]
        assert "too long" in error["message"] and "--site" in error["hint"]
    with pytest.raises(SystemExit):
        made(captures, tmp_path / "out", "--threads", 2**70)
    assert "no number from 1 to 999999" in capsys.readouterr().err
    assert made(captures, tmp_path / "out", "--site", "y" * 250)["archive"]["connections"] == 10


def test_a_capture_that_several_names_or_inputs_lead_to_is_read_once(tmp_path):
    real, link, out = tmp_path / "real", tmp_path / "link", tmp_path / "out"
    real.mkdir()
    shutil.copy(WINDOW, real / "m.pcap")
    (real / "a.pcap").symlink_to(real / "m.pcap")
    (real / "n.pcap").hardlink_to(real / "m.pcap")
    link.symlink_to(real)
    done = archive(real, link, real / "m.pcap", link / "a.pcap", "--out", out, "--quiet")
    assert (done["captures_found"], done["archive"]["connections"]) == (1, 1)
    (row,) = rows(out)
    assert row["capture"] == str(real / "m.pcap")
    shutil.copy(POLICED, real / "odd.bin")
    assert archive(real, real / "odd.bin", "--out", tmp_path / "odd", "--quiet")["captures_found"] == 2
    # The next run comes by the link: the same captures, and the site's name as it was given.
    again = made(link, out)
    assert again["archive"]["connections"] == 1 and [row["site"] for row in rows(out)] == ["link"]


def test_another_site_is_heeded_by_the_next_run(captures, tmp_path):
    out = tmp_path / "out"
    first = made(captures, out)
    moved = made(captures, out, "--site", "everywhere")
    assert (moved["captures_read"], moved["hash"]) == (12, first["hash"])
    assert {row["site"] for row in rows(out)} == {"everywhere"}
    assert made(captures, out, "--site", "everywhere")["captures_read"] == 0


def test_the_folder_is_a_data_set_for_everybodys_reader(captures, tmp_path):
    pl, pd, duckdb = pytest.importorskip("polars"), pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    import pyarrow.dataset

    out = tmp_path / "out"
    made(captures, out)
    kept = sorted((row["capture"], row["day"], row["site"], row["limiter"]) for row in rows(out))
    columns = ["capture", "day", "site", "limiter"]
    as_rows = lambda frame: sorted(map(tuple, frame))  # noqa: E731
    assert as_rows(pd.read_parquet(out)[columns].astype(str).itertuples(index=False)) == kept
    assert as_rows(pq.read_table(out).select(columns).to_pandas().astype(str).itertuples(index=False)) == kept
    found = pyarrow.dataset.dataset(out, partitioning="hive").to_table(columns=columns)
    assert as_rows(found.to_pandas().astype(str).itertuples(index=False)) == kept
    # The lines of docs/archive.md.
    text = (ROOT / "docs/archive.md").read_text()
    (line,) = re.findall(r"^    pl\.scan_parquet\(.*$", text, re.M)
    frame = eval(line.replace('"archive', f'"{out}'), {"pl": pl}).collect()
    assert sorted((one, str(day), site, limiter) for one, day, site, limiter in frame.select(columns).iter_rows()) == kept
    (question,) = re.findall(r'^    duckdb -c "(.*)"$', text, re.M)
    question = question.replace("'archive", f"'{out}").replace("send_buffer", "receive_window")
    assert {site for site, _ in duckdb.sql(question).fetchall()} == {"lon", "nyc"}


def test_an_archive_of_the_former_layout_is_refused_with_a_way_out(captures, tmp_path):
    out = tmp_path / "out"
    (out / ".staging").mkdir(parents=True)
    sqlite3.connect(out / "manifest.sqlite").close()
    for error in (made(captures, out, code=24)["error"], archive("query", "days", out, code=24)["error"]):
        assert "version 1" in error["message"] and "--out" in error["hint"]


def test_a_merge_in_the_middle_of_a_question_is_no_error_and_a_lost_file_is_one(captures, tmp_path, monkeypatch):
    out = tmp_path / "out"
    calm = made(captures, out)
    asked = archive("query", "limiters", out, "--all", "--top", 0)["rows"]
    parts = store.Store.parts
    looked = 0

    def stale(self):
        nonlocal looked
        looked += 1
        return [*parts(self), str(out / "day=2020-01-01/site=x/limiter=path/merged.parquet")] if looked == 1 else parts(self)

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "parts", stale)
        assert archive("query", "limiters", out, "--all", "--top", 0)["rows"] == asked
        looked = 0
        assert archive("hash", out)["hash"] == calm["hash"]
    gone = next(out.glob("day=*/**/*.parquet"))
    gone.unlink()
    for words in (("query", "prefixes", out), ("hash", out), ("report", out, "--html", tmp_path / "page.html")):
        error = archive(*words, code=24)["error"]
        assert error["kind"] == "input_invalid" and gone.name in error["message"]


def test_a_damaged_file_is_named_by_every_question(captures, tmp_path):
    out = tmp_path / "out"
    made(captures, out)
    file = next(out.glob("day=*/**/*.parquet"))
    whole = file.read_bytes()
    for damaged in (b"x\n", whole[:40] + bytes(len(whole) - 100) + whole[-60:]):
        file.write_bytes(damaged)
        for words in (("query", "prefixes", out), ("hash", out), ("report", out, "--html", tmp_path / "page.html")):
            error = archive(*words, code=24)["error"]
            assert error["kind"] == "input_invalid" and str(file.relative_to(out)) in error["message"]


def test_a_commit_between_two_files_of_a_question_is_looked_at_anew(captures, tmp_path):
    out = tmp_path / "out"
    made(captures, out)
    one, seen = store.Store.to_read(str(out)), []

    def use(paths):
        found = []
        for path in paths:
            found += pq.ParquetFile(path).read()["capture"].to_pylist()
            if not seen:
                seen.append(path)
                # Its verdict is another one now: its row goes to another file.
                shutil.copy(POLICED, captures / "lon" / WINDOW.name)
                made(captures, out)
        return found

    assert sorted(one.asked(use)) == sorted(row["capture"] for row in rows(out))
    assert len(seen) == 1
    one.manifest.execute("UPDATE meta SET value = 1000000 WHERE key = 'next'")
    with pytest.raises(fullpipe.Error, match="faster than it can be asked"):
        one.asked(lambda paths: one.manifest.execute("UPDATE meta SET value = value + 1 WHERE key = 'next'"))
    one.close()


def test_bad_files_are_listed_and_the_rest_is_read(captures, tmp_path):
    (captures / "lon" / "nothing.pcap").write_bytes(b"this is no capture")
    (captures / "lon" / "empty.pcap").write_bytes(b"")
    cut = captures / "sin" / "r.pcap1"
    cut.write_bytes(cut.read_bytes()[:-5])
    (captures / "sin" / "gone.pcap").symlink_to(captures / "absent")
    done = made(captures, tmp_path / "out", code=24)
    told = {pathlib.Path(one["file"]).name for one in done["problems"]}
    assert told == {"nothing.pcap", "empty.pcap", "r.pcap1", "gone.pcap"}
    assert (done["archive"]["connections"], done["archive"]["bad_series"]) == (9, 2)
    again = made(captures, tmp_path / "out", code=24)
    assert again["captures_read"] == 0
    listed = archive("query", "problems", tmp_path / "out")["rows"]
    assert {pathlib.Path(one["file"]).name for one in listed} == told - {"gone.pcap"}


def test_files_that_cannot_be_read_are_counted_each(captures, tmp_path, capsys):
    for number in ("", *range(1, 4)):
        (captures / "lon" / f"junk.pcap{number}").write_bytes(b"this is no capture")
    (captures / "lon" / "empty.pcap").write_bytes(b"")
    cut = captures / "sin" / "r.pcap1"
    cut.write_bytes(cut.read_bytes()[:-5])
    counts = made(captures, tmp_path / "out", code=24)["archive"]
    assert [counts[f"{what}_captures"] for what in ("unreadable", "partial", "failed")] == [5, 1, 0]
    capsys.readouterr()
    assert main([str(captures), "--out", str(tmp_path / "out"), "--quiet"]) == 24
    assert "captures: 5 unreadable; 1 read in part\n" in capsys.readouterr().out


def test_nothing_is_left_where_nothing_was_listed(captures, tmp_path):
    for source in (tmp_path / "absent", "nowhere://captures", "ftp://127.0.0.1:1/x"):
        assert made(source, tmp_path / "new", code=24)["error"]["kind"] == "input_invalid"
        assert not (tmp_path / "new").exists()
    file = tmp_path / "file"
    file.write_text("theirs")
    for out in (file, file / "below"):
        error = made(captures, out, code=2)["error"]
        assert error["kind"] == "usage" and f"{file} is a file" in error["message"]
    assert file.read_text() == "theirs"


def test_a_missing_file_of_a_series_is_told_and_nothing_is_joined_over_it(tmp_path):
    for kind, names, gone in [
        ("size", ["x.pcap", "x.pcap1", "x.pcap2", "x.pcap3"], "x.pcap1"),
        ("time", [f"x-202611240{hour}0000.pcap" for hour in (5, 6, 7, 8)], "x-20261124060000.pcap"),
    ]:
        source, out = tmp_path / kind, tmp_path / f"{kind}-out"
        cut_in(POLICED, 4, [source / name for name in names])
        whole = (source / gone).read_bytes()
        (source / gone).unlink()
        done = made(source, out, code=24)
        assert done["archive"]["series"] == 2
        (told,) = done["problems"]
        assert names[0] in told["message"] and told["file"].endswith(names[2])
        # Found again: one series, as if it had never been missing.
        (source / gone).write_bytes(whole)
        assert made(source, out)["hash"] == made(POLICED, tmp_path / f"{kind}-whole")["hash"]


def test_two_runs_on_one_output_are_refused_and_a_dead_one_is_no_hindrance(captures, tmp_path):
    out = tmp_path / "out"
    script = "import sys; from fullpipe.archive.store import Store; s = Store.to_write(sys.argv[1], {'join': 'whole', 'filter': ''}); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", script, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    try:
        error = made(captures, out, code=14)["error"]
        assert error["kind"] == "journal_locked" and f"process {holder.pid}" in error["message"]
    finally:
        holder.kill()
        holder.communicate()
    assert made(captures, out)["archive"]["connections"] == 9


def test_other_options_or_a_folder_of_others_are_refused(captures, tmp_path):
    out = tmp_path / "out"
    made(captures, out)
    assert made(captures, out, "--join", "none", code=2)["error"]["kind"] == "usage"
    assert made(captures, captures, code=25)["error"]["kind"] == "output_exists"
    assert made(captures, "s3://bucket/out", code=2)["error"]["kind"] == "usage"
    assert made(tmp_path / "absent", tmp_path / "new", code=24)["error"]["kind"] == "input_invalid"
    assert made(captures, tmp_path / "new", "--filter", "port x", code=2)["error"]["kind"] == "usage"
    assert archive("query", "limiters", captures, code=24)["error"]["kind"] == "input_invalid"


def results(captures, how=worker.How((None,))):
    found, _, _ = inputs.listed([inputs.place(str(captures))], None, None)
    return [worker.read_series(one, how) for one in inputs.series(found, "whole")]


OPTIONS = {"join": "whole", "filter": ""}


def test_a_commit_that_is_stopped_anywhere_leaves_all_of_it_or_nothing(captures, tmp_path, monkeypatch):
    """Every call that touches the disk fails once, and what is then there is opened as the next run opens it."""
    found = [worker.split(result) for result in results(captures)]
    whole = store.Store.to_write(str(tmp_path / "whole"), OPTIONS)
    whole.commit(found[:4], set())
    half = len(rows(tmp_path / "whole"))
    whole.commit(found[4:], set())
    # Given again, as by a run that was stopped while it committed, they are there once.
    whole.commit(found[2:], set())
    assert len(rows(tmp_path / "whole")) == whole.counts()["connections"] == 9
    whole.close()
    failed = 0
    for call in ("_write", "_sync_folder", "os.replace", "os.unlink", "_record"):
        for time_of_call in range(1, 40):
            out = tmp_path / f"{call}-{time_of_call}"
            one = store.Store.to_write(str(out), OPTIONS)
            one.commit(found[:4], set())
            calls = 0

            def failing(real):
                def fail(*args, **words):
                    nonlocal calls
                    calls += 1
                    if calls == time_of_call:
                        raise OSError(errno.ENOSPC, "No space left on device")
                    return real(*args, **words)

                return fail

            with monkeypatch.context() as patch:
                if call == "_record":
                    patch.setattr(store.Store, call, failing(store.Store._record))
                elif call.startswith("os."):
                    patch.setattr(store.os, call[3:], failing(getattr(os, call[3:])))
                else:
                    patch.setattr(store, call, failing(getattr(store, call)))
                try:
                    one.commit(found[4:], set())
                    is_whole = True
                except fullpipe.Error as error:
                    assert error.kind == "disk_full"
                    is_whole = False
            one.close()
            for file in out.glob("day=*/**/*.parquet"):
                pq.ParquetFile(file).read()
            again = store.Store.to_write(str(out), OPTIONS)
            counted = again.counts()["connections"]
            again.close()
            there = rows(out)
            assert len(there) == counted in (half, 9), (call, time_of_call)
            assert len({(row["capture"], row["number"]) for row in there}) == counted
            shutil.rmtree(out)
            if is_whole and calls < time_of_call:
                break
            failed += 1
    assert failed > 8


NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]


def can_mount():
    words = [*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_a_full_disk_ends_a_run_clearly_and_the_next_one_goes_on(captures, tmp_path):
    if not can_mount():
        pytest.skip("neither root nor user namespaces: no disk can be made that fills")
    disk = tmp_path / "disk"
    disk.mkdir()
    out = disk / "out"
    run = f"{sys.executable} -m fullpipe.archive {captures} --out {out} --workers 1 --engine processes --json --quiet --hash"
    script = f"""mount -t tmpfs -o size=140k none {disk}; {run}; echo $?; find {out} -name '*.parquet' | wc -l
        mount -o remount,size=64m {disk}; {run}; echo $?; cp -r {out} {tmp_path}"""
    said = subprocess.run([*NAMESPACE, "sh", "-c", script], stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout
    first, code, files, second, code_after = re.fullmatch(r"(\{.*?\n\})\n(\d+)\n(\d+)\n(\{.*\n\})\n(\d+)\n", said, re.S).groups()
    assert (json.loads(first)["error"]["kind"], code, files, code_after) == ("disk_full", "16", "0", "0")
    assert json.loads(second)["hash"] == made(captures, tmp_path / "other")["hash"]
    assert len(rows(tmp_path / "out")) == 9


@pytest.mark.parametrize("times", [1, 2, 100])
def test_a_series_whose_worker_died_is_read_anew_once_and_one_that_kills_them_all_is_listed(captures, tmp_path, monkeypatch, times):
    monkeypatch.setattr(run.pools, "pool", lambda *_: Here(worker.How((None,)), "nyc/" + WINDOW.name, times))
    options = run.Options((str(captures),), str(tmp_path / "out"), workers=1)
    done = run.run(options, run.Progress("none"))
    assert done["workers_died"] == min(times, run.TRIES)
    gives_up = times > run.TRIES
    assert done["archive"]["connections"] == 9 - gives_up
    assert [one["status"] for one in done["problems"]] == ["failed"] * gives_up


def big(path, copies):
    """A capture of many connections, so that reading it takes a while."""
    head, found = packets(WINDOW)
    with path.open("wb") as file:
        file.write(head)
        for copy in range(copies):
            for packet in found:
                file.write(another(packet, copy))


def another(packet, number):
    """The packet as of another connection: ports tell them apart; whichever direction, one of the two."""
    fields = bytearray(packet)
    at = 16 + (packet[16] & 15) * 4
    place = at if fields[28:32] < fields[32:36] else at + 2
    fields[place : place + 2] = struct.pack(">H", 1024 + number)
    return bytes(fields)


def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing(captures, tmp_path):
    for name in ("a", "b"):
        big(captures / "lon" / f"large-{name}.pcap", 400)
    calm = made(captures, tmp_path / "calm")
    process = subprocess.Popen(
        [sys.executable, "-m", "fullpipe.archive", captures, "--out", tmp_path / "out", "--workers", "2", "--engine", "processes",
         "--json", "--quiet", "--hash"], stdout=subprocess.PIPE, text=True,
    )
    killed = None
    deadline = time.monotonic() + 60
    while killed is None and process.poll() is None and time.monotonic() < deadline:
        for pid in children(process.pid):
            # One that has a large capture open.
            if killed is None and any("large-" in name for name in files_of(pid)):
                os.kill(pid, signal.SIGKILL)
                killed = pid
    out, _ = process.communicate(timeout=120)
    assert killed is not None and process.returncode == 0, out
    done = json.loads(out)
    assert (done["workers_died"], done["hash"]) == (1, calm["hash"])
    assert done["archive"]["connections"] == calm["archive"]["connections"] == 809


def children(pid):
    try:
        return [int(one) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()]
    except OSError:
        return []


def files_of(pid):
    try:
        return [os.readlink(one) for one in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []


def test_control_c_stops_a_run_and_the_next_one_goes_on(captures, tmp_path):
    for name in ("a", "b"):
        big(captures / "lon" / f"large-{name}.pcap", 400)
    out = tmp_path / "out"
    words = [sys.executable, "-m", "fullpipe.archive", captures, "--out", out, "--workers", "1", "--engine", "processes", "--json", "--quiet"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    while process.poll() is None and not any("large-" in name for pid in children(process.pid) for name in files_of(pid)):
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(said)["error"]["kind"]) == (130, "interrupted")
    assert made(captures, out)["hash"] == made(captures, tmp_path / "calm")["hash"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems bound no process")
def test_a_worker_takes_no_more_memory_than_it_may(captures, tmp_path):
    big(captures / "lon" / "large.pcap", 600)
    done = made(captures, tmp_path / "out", "--memory", "1M", "--workers", 1, "--engine", "processes", code=24)
    assert done["archive"]["failed_series"] >= 1
    assert all("--memory" in one["message"] for one in done["problems"])
    assert made(captures, tmp_path / "out")["archive"]["connections"] == 9 + 600


def test_queries_answer_what_the_rows_say(captures, tmp_path):
    cut_in(DATA / "strangers" / "gvisor-window-a.pcap", 1, [captures / "nyc" / "g.pcap"])
    out = tmp_path / "out"
    made(captures, out)
    there = rows(out)
    lost = sum(row["share"] * row["sending_seconds"] for row in there if row["limiter"] == "receive_window")
    answer = archive("query", "limiters", out, "--top", 0)["rows"]
    assert sum(row["lost_s"] for row in answer if row["limiter"] == "receive_window") == pytest.approx(lost)
    assert [row["lost_s"] for row in answer] == sorted((row["lost_s"] for row in answer), reverse=True)
    assert not {row["limiter"] for row in answer} & {"path", "application", "insufficient_evidence"}
    everything = archive("query", "limiters", out, "--top", 0, "--all")["rows"]
    assert sum(row["connections"] for row in everything) == len(there)
    prefixes = archive("query", "prefixes", out)["rows"]
    assert sum(row["lost_s"] for row in prefixes) == pytest.approx(sum(row["lost_s"] for row in answer))
    day = max(row["day"] for row in there)
    change = archive("query", "change", out, "--at", day, "--all")["rows"]
    assert sum(row["connections_after"] for row in change) == sum(row["day"] >= day for row in there)
    assert sum(row["connections_before"] for row in change) == sum(row["day"] < day for row in there)
    assert archive("query", "change", out, code=2)["error"]["kind"] == "usage"
    only = archive("query", "limiters", out, "--site", "sin", "--all")["rows"]
    assert sum(row["connections"] for row in only) == 1
    unscaled = archive("query", "unscaled", out)["rows"]
    expected = {row["a"].rpartition(":")[0] for row in there if row["syn_seen_a"] and row["window_scale_a"] is None}
    assert {row["host"] for row in unscaled} == expected


def test_queries_answer_what_tcptrace_counts(captures, tmp_path):
    """tcptrace is a reader of others: SYNs without the option, and bytes by destination, counted by it."""
    if not shutil.which("tcptrace"):
        pytest.skip("tcptrace is not installed")
    shutil.rmtree(captures / "sin")
    for name in ("request-response", "slow-reader-freebsd", "paced-socket", "reordering-without-sack"):
        for file in (DATA / "strangers").glob(f"{name}-a.pcap"):
            shutil.copy(file, captures / "nyc")
    unscaled(captures / "lon" / "no-scale.pcap", 0)
    unscaled(captures / "lon" / "no-answer.pcap", 1)
    out = tmp_path / "out"
    made(captures, out)
    without, seen, sent, connections = {}, {}, {}, 0
    for file in sorted(captures.glob("*/*.pcap")):
        said = subprocess.run(["tcptrace", "--csv", "-l", "-n", file], capture_output=True, text=True, check=True).stdout
        table = [line for line in said.splitlines() if line and not line.startswith("#")]
        for row in csv.DictReader(table, skipinitialspace=True):
            row = {name: value.strip() for name, value in row.items() if name}
            connections += 1
            a, b = (int(row[f"unique_bytes_sent_{way}"]) for way in ("a2b", "b2a"))
            receiver = row["host_b" if a >= b else "host_a"]
            sent[receiver] = sent.get(receiver, 0) + a + b
            for end, way in (("a", "a2b"), ("b", "b2a")):
                if row[f"SYN/FIN_pkts_sent_{way}"].startswith("0"):
                    continue
                if end == "b" and row["req_1323_ws/ts_a2b"].startswith("N"):
                    continue  # An answer has the option only where the SYN had it.
                host = row[f"host_{end}"]
                seen[host] = seen.get(host, 0) + 1
                without[host] = without.get(host, 0) + row[f"req_1323_ws/ts_{way}"].startswith("N")
    everything = archive("query", "limiters", out, "--top", 0, "--all")["rows"]
    assert sum(row["connections"] for row in everything) == connections
    ours = {}
    for row in everything:
        ours[row["destination"]] = ours.get(row["destination"], 0) + row["bytes"]
    assert ours == sent
    scaled = {row["host"]: (row["syns_without_scale"], row["syns_seen"]) for row in archive("query", "unscaled", out, "--top", 0)["rows"]}
    assert scaled == {host: (count, seen[host]) for host, count in without.items() if count} and scaled


def unscaled(path, without):
    """A capture in which an end has no window scale: its option made three of no operation (RFC 9293, section 3.2). Where the SYN has
    none (0), its answer has none either (RFC 7323, section 2.2); or only the answer has none (1)."""
    head, found = packets(WINDOW)
    for number in range(without, 2):
        packet = bytearray(found[number])
        at = packet.index(b"\x03\x03", 16 + 40)
        packet[at : at + 3] = b"\x01\x01\x01"
        found[number] = bytes(packet)
    path.write_bytes(head + b"".join(found))


@pytest.mark.parametrize("without, host", [(0, "10.80.0.1"), (1, "10.80.0.2")])
def test_the_host_that_read_names_is_the_one_without_window_scale(tmp_path, without, host):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    unscaled(source / "x.pcap", without)
    made(source, out)
    (row,) = rows(out)
    (told,) = archive("query", "unscaled", out)["rows"]
    assert (told["host"], told["syns_without_scale"]) == (host, 1)
    assert told["lost_s"] == pytest.approx(row["share"] * row["sending_seconds"]) and told["lost_s"] > 1
    assert f"({host}), switch window scaling on" in row["action"]


def test_queries_answer_what_the_program_and_a_few_lines_count(captures, tmp_path):
    """The same figures from the program's CSV of each capture, added up here: neither Parquet nor SQL has a part in them."""
    unscaled(captures / "lon" / "no-scale.pcap", 0)
    a_day_later(POLICED, captures / "nyc" / "later.pcap")
    a_day_later(WINDOW, captures / "lon" / "later.pcap")
    out = tmp_path / "out"
    made(captures, out)
    series = [[file] for file in sorted(captures.glob("[ln]*/*.pcap"))] + [sorted(captures.glob("sin/*"))]
    found = []
    for files in series:
        said = subprocess.run([os.environ["FULLPIPE"], "read", "--csv", *files], capture_output=True, text=True, check=True).stdout
        found += csv.DictReader(io.StringIO(said))
    lost, networks, days = {}, {}, {}
    for row in found:
        if row["limiter"] in ("application", "path", "insufficient_evidence"):
            continue
        seconds = float(row["share"]) * float(row["sending_seconds"])
        host = row["b" if row["direction"] == "a->b" else "a"].rpartition(":")[0]
        day = datetime.datetime.fromtimestamp(int(row["started_us"]) / 1e6, datetime.timezone.utc).date().isoformat()
        for into, key in ((lost, (row["limiter"], host)), (networks, host.rpartition(".")[0] + ".0/24"), (days, (day, row["limiter"]))):
            count, before = into.get(key, (0, 0.0))
            into[key] = (count + 1, before + seconds)
    close = lambda there, here: there.keys() == here.keys() and all(  # noqa: E731
        there[key][0] == here[key][0] and there[key][1] == pytest.approx(here[key][1]) for key in there)
    answer = archive("query", "limiters", out, "--top", 0)["rows"]
    assert close({(row["limiter"], row["destination"]): (row["connections"], row["lost_s"]) for row in answer}, lost)
    answer = archive("query", "prefixes", out, "--top", 0)["rows"]
    assert close({row["prefix"]: (row["connections"], row["lost_s"]) for row in answer}, networks)
    answer = archive("query", "days", out, "--top", 0)["rows"]
    assert close({(row["day"], row["limiter"]): (row["connections"], row["lost_s"]) for row in answer}, days)
    all_days = sorted({datetime.datetime.fromtimestamp(int(row["started_us"]) / 1e6, datetime.timezone.utc).date().isoformat() for row in found})
    assert len(all_days) > 1
    at = all_days[-1]
    for row in archive("query", "change", out, "--at", at, "--top", 0)["rows"]:
        for side, of in (("before", [day for day in all_days if day < at]), ("after", [at])):
            counts = [days[day, row["limiter"]] for day in of if (day, row["limiter"]) in days]
            assert row[f"connections_{side}"] == sum(count for count, _ in counts)
            assert row[f"lost_s_per_day_{side}"] == pytest.approx(sum(seconds for _, seconds in counts) / len(of))


def test_nothing_listens_unless_a_cluster_is_asked_for(monkeypatch):
    monkeypatch.setattr(run.pools, "Processes", lambda workers, how: "processes")
    monkeypatch.setattr(run.pools, "Cluster", lambda workers, how, address: ("ray", address))
    monkeypatch.setattr(run.pools.importlib.util, "find_spec", lambda name: "here")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    asked = lambda engine, address=None: POOL(engine, 1, None, address)  # noqa: E731
    assert [asked("auto"), asked("processes"), asked("ray")] == ["processes", "processes", ("ray", None)]
    assert asked("auto", "auto") == asked("ray", "auto") == ("ray", "auto")
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")
    assert (asked("auto"), asked("processes")) == (("ray", None), "processes")
    monkeypatch.setattr(run.pools.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(fullpipe.Error) as told:
        asked("auto")
    assert told.value.exit_code == 21


class FakeRay:
    """What is asked of Ray before there is work: how many processors its nodes have."""

    exceptions = type("exceptions", (), {"RayError": OSError})

    def __init__(self, nodes, error=None):
        self.has, self.error = nodes, error

    def init(self, **_):
        if self.error:
            raise self.error

    def nodes(self):
        return [{"Alive": alive, "Resources": {"CPU": float(count)} if count else {}} for count, alive in self.has]

    def remote(self, **_):
        return lambda work: work

    def put(self, how):
        return how


def test_a_cluster_works_as_wide_as_its_nodes_and_says_what_they_lack(monkeypatch):
    def joined(nodes, workers=None, threads=1, error=None, address="auto"):
        monkeypatch.setitem(sys.modules, "ray", FakeRay(nodes, error))
        monkeypatch.setattr(run.pools.importlib.util, "find_spec", lambda name: "here")
        return POOL("ray", workers, worker.How((None,), threads=threads), address).most

    nodes = [(0, True), (8, True), (5, True), (64, False)]
    assert (joined(nodes), joined(nodes, threads=4), joined(nodes, workers=2)) == (13, 3, 2)
    with pytest.raises(fullpipe.UsageError, match="8 at the most"):
        joined(nodes, threads=9)
    with pytest.raises(fullpipe.Error, match="without its client") as told:
        joined(nodes, error=ValueError("Ray Client requires pip package `ray[client]`."))
    assert told.value.exit_code == 21 and "pip install 'ray[client]'" in told.value.hint
    # Nobody listens: told at once, where Ray would try on.
    for scheme in ("", "ray://"):
        with pytest.raises(fullpipe.InputInvalidError, match="joining the Ray cluster"):
            joined(nodes, address=f"{scheme}127.0.0.1:{free_port()}")
    monkeypatch.setattr(run.pools.Processes, "_start", lambda self: None)
    assert POOL("processes", None, None, None).most == run.pools.processors()


def test_a_page_is_one_file_and_its_text_is_escaped(captures, tmp_path):
    (captures / "<script>alert(1)").mkdir()
    (captures / "<script>alert(1)" / "x'\"&.pcap").write_bytes(b"nothing")
    shutil.copy(WINDOW, captures / "<script>alert(1)" / "y.pcap")
    out, file = tmp_path / "out", tmp_path / "page.html"
    made(captures, out, code=24)
    archive("report", out, "--html", file)
    text = file.read_text()
    assert "<script" not in text and "&lt;script&gt;" in text and "x&#x27;&quot;&amp;.pcap" in text
    assert "receive window" in text and "http" not in text.replace("http-equiv", "")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def bucket(captures):
    pytest.importorskip("moto.server", reason="pip install 'moto[server]'")
    from pyarrow import fs

    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        s3 = fs.S3FileSystem(access_key="user", secret_key="secret", endpoint_override=f"127.0.0.1:{port}", scheme="http",
                             region="us-east-1", allow_bucket_creation=True, connect_timeout=5, request_timeout=20)
        for _ in range(200):
            try:
                s3.create_dir("bucket")
                break
            except OSError:
                time.sleep(0.1)
        fs.copy_files(str(captures), "bucket/captures", source_filesystem=fs.LocalFileSystem(), destination_filesystem=s3)
        yield f"s3://user:secret@bucket/captures?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{port}", s3
    finally:
        server.terminate()
        server.wait()


def test_an_object_store_gives_what_the_folder_gives(captures, bucket, tmp_path):
    url, _ = bucket
    local = made(captures, tmp_path / "local")
    remote = made(url, tmp_path / "remote")
    assert remote["hash"] == local["hash"]
    assert {row["site"] for row in rows(tmp_path / "remote")} == {"lon", "nyc", "sin"}
    # No secret in what is kept.
    manifest = sqlite3.connect(tmp_path / "remote" / "_manifest.sqlite")
    names = [name for (name,) in manifest.execute("SELECT name FROM capture")]
    assert "s3://bucket/captures/sin/r.pcap1" in names and not any("secret" in name for name in names)
    absent = made(url.replace("captures?", "absent?"), tmp_path / "absent", code=24)
    assert "s3://bucket/absent" in absent["error"]["message"] and "secret" not in json.dumps(absent)


def test_other_stores_are_read_by_fsspec(captures, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").put(str(captures), "/captures", recursive=True)
    remote = made("memory://captures", tmp_path / "remote")
    assert (remote["hash"], remote["archive"]["connections"]) == (made(captures, tmp_path / "local")["hash"], 9)
    assert {row["site"] for row in rows(tmp_path / "remote")} == {"lon", "nyc", "sin"}
    error = made("nowhere://captures", tmp_path / "none", code=24)["error"]
    assert error["message"].startswith("opening nowhere://captures:")


@pytest.mark.parametrize("url", [
    "ftp://user:SECRET1@127.0.0.1:1/x", "sftp://user:SECRET1@127.0.0.1:1/x", "http://user:SECRET1@127.0.0.1:1/x?sign=SECRET1",
    "smb://user:SECRET1@127.0.0.1:1/x", "nowhere://user:SECRET1@host/x", "simplecache::ftp://user:SECRET1@127.0.0.1:1/x",
])
def test_a_store_that_does_not_answer_is_named_without_its_secrets(url, tmp_path):
    error = made(url, tmp_path / "out", code=24)["error"]
    assert "SECRET1" not in json.dumps(error) and "user" not in error["message"].replace("username", "")
    assert "127.0.0.1:1/x" in error["message"] or "host/x" in error["message"]


@pytest.mark.parametrize("url", ["s3://AK:SEC/RET9@bucket/x", "s3://AK:123/RET9@bucket/x", "ftp://user:SEC?RET9@host/x", "sftp://u:SEC#RET9@h/x"])
def test_a_secret_with_a_slash_is_refused_and_not_shown(url, tmp_path):
    error = made(url, tmp_path / "out", code=2)["error"]
    assert not re.search("SEC|RET9|123|AK|user", error["message"].replace("user name", "").replace("secret", "")) and "%2F" in error["hint"]


def test_what_a_filesystem_says_of_a_file_is_kept_without_secrets():
    said = inputs._line(OSError("reading 'https://user:SECRET1@host/a.pcap?sign=SECRET1' and s3://key:SECRET1@b/c#d is gone"))
    assert said == "reading 'https://host/a.pcap' and s3://b/c is gone"


class Rights:
    """Users of the object store, once it asks for credentials."""

    def __init__(self, url):
        import boto3

        self.url, self.at = url, re.search(r"127\.0\.0\.1:\d+", url).group()
        client = lambda key, secret: boto3.client(  # noqa: E731
            "iam", endpoint_url=f"http://{self.at}", aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1")
        self.iam = client("user", "secret")
        self.reader, admin = self.user("reader", "s3:*"), self.user("admin", "*")
        # From here on it checks them.
        asked = urllib.request.Request(f"http://{self.at}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"}, method="POST")
        urllib.request.urlopen(asked, timeout=20).close()
        self.iam = client(*admin)

    def user(self, name, action):
        self.iam.create_user(UserName=name)
        self.say(name, "may", {"Effect": "Allow", "Action": action, "Resource": "*"})
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        return key["AccessKeyId"], key["SecretAccessKey"]

    def say(self, name, policy, statement):
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.iam.put_user_policy(UserName=name, PolicyName=policy, PolicyDocument=document)

    def given(self, key, secret):
        return self.url.replace("user:secret@", f"{quote(key, safe='')}:{quote(secret, safe='')}@")


def test_wrong_credentials_end_a_run_and_a_forbidden_object_is_read_when_it_is_allowed(captures, bucket, tmp_path):
    rights = Rights(bucket[0])
    key, secret = rights.reader
    out = tmp_path / "out"
    for wrong in (rights.given("AKIAIOSFODNN7EXAMPLE", "not-it"), rights.given(key, "not-it")):
        # The prefix is asked for first, and the whole bucket at once: each has words of its own.
        for url in (wrong, wrong.replace("/captures?", "?")):
            error = made(url, out, code=3)["error"]
            assert error["kind"] == "no_permission" and "AWS_ACCESS_KEY_ID" in error["hint"]
            assert "s3://bucket" in error["message"] and "not-it" not in json.dumps(error)
    good = rights.given(key, secret)
    absent = made(good.replace("@bucket/", "@nowhere/"), out, code=24)["error"]
    assert "s3://nowhere/captures: there is nothing of that name" in absent["message"]
    assert rows(out) == []

    rights.say("reader", "may-not", {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/captures/sin/r.pcap2"})
    first = made(good, out, code=24)
    assert [one["file"] for one in first["problems"]] == ["s3://bucket/captures/sin/r.pcap2"]
    assert "ACCESS_DENIED" in first["problems"][0]["message"] and secret not in json.dumps(first)
    assert len({row["site"] for row in rows(out)}) == 3, "the others are read"
    rights.iam.delete_user_policy(UserName="reader", PolicyName="may-not")
    again = made(good, out)
    assert (again["captures_read"], again["hash"]) == (4, made(captures, tmp_path / "local")["hash"])


@pytest.mark.parametrize("text", [
    "When listing objects under key 'c/' in bucket 'b': AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: The AWS Access Key Id",
    "AWS Error SIGNATURE_DOES_NOT_MATCH during ListObjectsV2 operation: The request signature we calculated does not match",
    "AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
    "An error occurred (ExpiredToken) when calling the ListObjectsV2 operation: The provided token has expired.",
])
def test_what_stores_say_of_wrong_credentials_is_known_in_all_their_words(text):
    assert inputs._unlisted("s3://b/c", OSError(text)).exit_code == 3
    assert inputs._unlisted("s3://b/c", OSError("Could not resolve host")).exit_code == 24


class Forbidden:
    """A filesystem that gives all but one object, or that breaks off in the middle of it."""

    def __init__(self, name, after):
        self.name, self.after = name, after

    def open_input_stream(self, path, compression=None):
        stream = open(path, "rb")
        if self.name not in path:
            return stream
        if self.after is None:
            raise PermissionError(errno.EACCES, "Access Denied")
        return Broken(stream, self.after)


class Broken:
    def __init__(self, stream, after):
        self.stream, self.left = stream, after

    def read(self, size):
        if self.left <= 0:
            raise OSError("the connection was reset")
        piece = self.stream.read(min(size, self.left))
        self.left -= len(piece)
        return piece

    def close(self):
        self.stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.mark.parametrize("after", [None, 5000])
def test_an_object_that_cannot_be_read_is_listed_and_tried_again_and_its_series_is_read(captures, tmp_path, after):
    found = results(captures, worker.How((Forbidden("r.pcap2", after),)))
    series = next(one for one in found if "/sin/" in one.series.key)
    assert series.status == "failed" and series.table.num_rows == 1
    assert [pathlib.Path(one["file"]).name for one in series.problems] == ["r.pcap2"]
    assert all(one.status == "done" for one in found if one is not series)
    out = tmp_path / "out"
    one = store.Store.to_write(str(out), OPTIONS)
    one.commit([worker.split(result) for result in found], set())
    one.close()
    again = made(captures, out)
    assert (again["captures_read"], again["hash"]) == (4, made(captures, tmp_path / "calm")["hash"])


def test_ray_gives_the_same_and_a_killed_worker_is_replaced(captures, tmp_path):
    pytest.importorskip("ray")
    # Ray listens on every address of a machine: here it has none but its own loopback.
    alone = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("neither root nor user namespaces: Ray would listen to the network")
    for name in ("a", "b"):
        big(captures / "lon" / f"large-{name}.pcap", 600)
    calm = made(captures, tmp_path / "calm")
    words = [*alone, sys.executable, "-m", "fullpipe.archive", captures, "--out", tmp_path / "out", "--workers", "2",
             "--engine", "ray", "--json", "--quiet", "--hash"]
    env = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    env.pop("RAY_ADDRESS", None)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
    killed = None
    while killed is None and process.poll() is None:
        for pid in ours(captures):
            os.kill(pid, signal.SIGKILL)
            killed = pid
            break
    said, _ = process.communicate(timeout=180)
    assert killed is not None and process.returncode == 0, said
    done = json.loads(said)
    assert (done["workers_died"], done["hash"]) == (1, calm["hash"])


def ours(captures):
    """Processes that have a large capture of this test open."""
    pids = [int(one.name) for one in pathlib.Path("/proc").iterdir() if one.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and any(str(captures) in name and "large-" in name for name in files_of(pid))]
