"""The package as its users have it: installed from its wheel. FULLPIPE names the binary to compare with."""

import base64
import gzip
import io
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

import fullpipe

ROOT = pathlib.Path(__file__).parents[3]
DATA = ROOT / "crates/capture/tests/data"
CAPTURE = DATA / "wan-80ms-cubic-window-a.pcap"
BOTH = [CAPTURE, DATA / "2m-230ms-cubic-policed-a.pcap"]


def binary(*words):
    done = subprocess.run([os.environ["FULLPIPE"], *map(str, words)], capture_output=True, check=False)
    return json.loads(done.stdout)


def test_diagnose_gives_the_document_of_the_binary():
    assert fullpipe.diagnose(CAPTURE) == binary("read", "--json", CAPTURE)
    filtered = fullpipe.diagnose(BOTH, filter="port 1", threads=2)
    assert filtered == binary("read", "--json", "--filter", "port 1", *BOTH)


def test_plan_and_what_if_give_the_documents_of_the_binary():
    assert fullpipe.plan("100M", 80_000, "windows-2012") == binary(
        "plan", "--json", "--rate", "100M", "--rtt", "80ms", "--platform", "windows-2012"
    )
    made = fullpipe.what_if(rate=100_000_000, rtt="80ms", settings=[{"receiver.window": 64512}], seconds=2)
    words = ["--rate", "100M", "--rtt", "80ms", "--set", "receiver.window=64512", "--seconds", "2"]
    assert made == binary("what-if", "--json", *words)


def test_the_table_of_connections_is_the_parquet_file(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    file = tmp_path / "it.parquet"
    binary("read", "--json", "--parquet", file, *BOTH)
    written = pyarrow.parquet.read_table(file)
    read = pa.table(fullpipe.read(BOTH).connections)
    assert read.to_pylist() == written.to_pylist()
    # What Arrow's readers find in the file is a constant of the program: this is how it is made.
    fresh = base64.b64encode(read.schema.serialize().to_pybytes()).decode()
    kept = ROOT / "crates/report/src/parquet/arrow-schema.txt"
    kept_schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(kept.read_text())))
    assert kept_schema.equals(read.schema, check_metadata=True), f"{kept} is stale; it shall be\n{fresh}"
    for field in read.schema:
        assert written.schema.field(field.name).equals(field, check_metadata=True)
    assert written.schema.names == read.schema.names
    metadata = pyarrow.parquet.read_metadata(file).metadata
    units = {name.decode()[5:]: unit.decode() for name, unit in metadata.items() if name[:5] == b"unit."}
    assert {field.name: field.metadata[b"unit"].decode() for field in read.schema if field.metadata} == units
    assert read.schema.metadata[b"schema"] == metadata[b"schema"]


def test_the_columns_are_those_that_the_page_describes():
    pa = pytest.importorskip("pyarrow")
    schema = pa.table(fullpipe.read(CAPTURE).connections).schema
    rows = re.findall(r"^\| `(\w+)` \| (\w+\??) \| ([^|]*)\| ", (ROOT / "docs/python.md").read_text(), re.M)
    told = [(name, kind, unit.strip()) for name, kind, unit in rows]
    unit = lambda field: (field.metadata or {}).get(b"unit", b"").decode()
    assert told == [(field.name, f"{field.type}{'?' if field.nullable else ''}", unit(field)) for field in schema]


def test_everybodys_arrow_reads_the_tables():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    captures = fullpipe.read(BOTH)
    connections, timelines, problems = captures.connections, captures.timelines, captures.problems
    limiters = pa.table(connections)["limiter"].to_pylist()
    assert "receive_window" in limiters
    assert pl.DataFrame(connections)["limiter"].to_list() == limiters
    assert [row[0] for row in duckdb.sql("select limiter from connections").fetchall()] == limiters
    assert pd.DataFrame.from_arrow(connections)["limiter"].tolist() == limiters
    assert pa.table(timelines).num_rows == len(timelines) > 0
    assert pa.table(problems).num_rows == len(problems)


def test_whoever_takes_a_table_reads_the_memory_that_it_is_in():
    pa = pytest.importorskip("pyarrow")
    connections = fullpipe.read(BOTH).connections

    def addresses():
        chunks = [chunk for column in pa.table(connections).columns for chunk in column.chunks]
        return [buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer is not None and buffer.size]

    assert addresses() == addresses() != []


@pytest.mark.parametrize("page, least", [("README.md", 5), ("docs/python.md", 9)])
def test_the_lines_of_the_pages_run_as_they_stand(page, least, tmp_path, monkeypatch):
    pytest.importorskip("polars")
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert len(lines.split("\n")) > least
    (tmp_path / "slow.pcap").write_bytes(CAPTURE.read_bytes())
    code = f"import sys; exec({lines!r})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "receive_window" in ran.stdout or "1000000 bytes fill that path" in ran.stdout


def test_types_tell_what_can_be_read_and_the_package_keeps_to_its_own(tmp_path):
    pytest.importorskip("mypy")
    package = ROOT / "bindings/python"
    options = ["--config-file", str(package / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]

    def checked(*words):
        done = subprocess.run([sys.executable, "-m", "mypy", *options, *map(str, words)], capture_output=True, text=True, check=False,
                              cwd=package, env={**os.environ, "MYPYPATH": str(package / "python")})
        return done.returncode, done.stdout

    code, said = checked("-p", "fullpipe")
    assert code == 0, said
    user = tmp_path / "user.py"
    user.write_text("""\
import io
import pathlib
import sys
import fullpipe

fullpipe.read("a.pcap")
fullpipe.read(pathlib.Path("a.pcap"))
fullpipe.read([io.BytesIO(), open("a.pcap", "rb"), sys.stdin.buffer, "a.pcap"])
fullpipe.read(7)
fullpipe.diagnose(open("a.pcap"))
fullpipe.plan(1e9, "80ms", settings=7)
""")
    code, said = checked(user)
    wrong = sorted({int(line) for line in re.findall(r"user\.py:(\d+): error", said)})
    assert (code, wrong) == (1, [9, 10, 11]), said


def test_a_file_object_gives_what_its_path_gives():
    pa = pytest.importorskip("pyarrow")
    by_path = fullpipe.read(CAPTURE)
    packed = io.BytesIO(gzip.compress(CAPTURE.read_bytes()))
    with CAPTURE.open("rb") as file:
        for source in (file, packed):
            by_object = fullpipe.read(source, threads=3)
            assert pa.table(by_object.connections) == pa.table(by_path.connections)
            assert pa.table(by_object.timelines) == pa.table(by_path.timelines)


def test_paths_and_file_objects_are_read_one_after_another():
    pa = pytest.importorskip("pyarrow")
    whole = CAPTURE.read_bytes()
    length = 16 + struct.unpack_from("<I", whole, 24 + 8)[0]
    pieces = [io.BytesIO(whole[: 24 + length]), io.BytesIO(whole[:24] + whole[24 + length :]), BOTH[1]]
    seen = fullpipe.read(pieces, timelines=False)
    assert pa.table(seen.connections) == pa.table(fullpipe.read(BOTH).connections)
    with pytest.raises(fullpipe.UsageError):
        seen.timelines
    assert len(fullpipe.read(BOTH, timelines=False).timelines) > 0


@pytest.mark.parametrize("same_look", [False, True])
def test_timelines_of_a_file_that_was_replaced_are_refused(tmp_path, same_look):
    file = tmp_path / "it.pcap"
    file.write_bytes(CAPTURE.read_bytes())
    kept = fullpipe.read(file)
    assert len(kept.timelines) > 0
    seen = fullpipe.read([CAPTURE, file])
    was = file.stat()
    if same_look:
        # Written over: of the same size, at the same time, under the same number.
        data = bytearray(file.read_bytes())
        for at in range(40, 48):
            data[at + len(data) // 2] ^= 0x55
        data[24:32] = struct.pack("<II", 12345, 6)
        file.write_bytes(data)
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert file.stat().st_size == was.st_size
    else:
        other = tmp_path / "other.pcap"
        other.write_bytes(BOTH[1].read_bytes())
        other.rename(file)
    with pytest.raises(fullpipe.InputInvalidError, match="has changed since it was read") as refused:
        seen.timelines
    if not same_look:
        assert str(file) in refused.value.message
    assert len(fullpipe.read(file).connections) > 0
    assert len(kept.timelines) > 0, "what was read already stays"


def test_a_pipe_by_its_path_is_read_once(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no pipes with names")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(CAPTURE.read_bytes()))
    writer.start()
    seen = fullpipe.read(pipe)
    writer.join()
    assert len(seen.timelines) == len(fullpipe.read(CAPTURE).timelines) > 0


def test_a_table_outlives_what_it_came_from_and_can_be_taken_twice():
    pa = pytest.importorskip("pyarrow")
    table = fullpipe.read(CAPTURE).connections
    first = pa.table(table)
    assert pa.table(table) == first
    # A capsule that nobody takes frees what it holds.
    table.__arrow_c_stream__()
    del table
    assert first.num_rows == 1


def test_what_is_wrong_is_an_exception_with_the_kind_of_the_program(tmp_path):
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(b"this is no capture at all")
    for call, words, kind in [
        (lambda: fullpipe.read(nothing), ["read", nothing], fullpipe.InputInvalidError),
        (lambda: fullpipe.read(tmp_path / "absent"), ["read", tmp_path / "absent"], fullpipe.InputInvalidError),
        (lambda: fullpipe.plan("fast", "80ms"), ["plan", "--rate=fast", "--rtt=80ms"], fullpipe.UsageError),
        (
            lambda: fullpipe.what_if(settings=["nonsense=1"]),
            ["what-if", "--set=nonsense=1"],
            fullpipe.Error,
        ),
    ]:
        with pytest.raises(kind) as raised:
            call()
        error = binary(*words, "--json")["error"]
        assert (raised.value.kind, raised.value.message, raised.value.hint) == (
            error["kind"], error["message"], error["hint"],
        )
    for call in (lambda: fullpipe.bdp("100M", "soon"), lambda: fullpipe.read(CAPTURE, filter="port x"),
                 lambda: fullpipe.read(CAPTURE, threads=0)):
        with pytest.raises(fullpipe.UsageError):
            call()


def test_kinds_are_those_that_the_exit_codes_list():
    from fullpipe import _errors

    listed = set(re.findall(r"^\| \d+ \| `(\w+)`", (ROOT / "docs/exit-codes.md").read_text(), re.M))
    assert listed > set(_errors.KINDS)


def test_file_objects_that_misbehave_are_told_apart_from_bad_captures():
    class Odd:
        def __init__(self, result):
            self.result = result

        def read(self, size):
            if isinstance(self.result, Exception):
                raise self.result
            return self.result

    with pytest.raises(ZeroDivisionError):
        fullpipe.read(Odd(ZeroDivisionError()))
    for result in ("text", None, b"x" * 10_000_000):
        with pytest.raises(TypeError):
            fullpipe.read(Odd(result))
    with pytest.raises(TypeError):
        fullpipe.read(7)
    for wrong in ([], [CAPTURE, 7], [[CAPTURE]]):
        with pytest.raises(TypeError):
            fullpipe.read(wrong)
    # The first exception ends it all: the next object is not asked.
    second = Odd(AssertionError())
    with pytest.raises(ZeroDivisionError):
        fullpipe.read([Odd(ZeroDivisionError()), second])


def test_a_cut_capture_gives_what_is_whole_and_says_so(tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(CAPTURE.read_bytes()[:-7])
    captures = fullpipe.read(cut)
    assert (len(captures.connections), len(captures.problems)) == (1, 1)


class Endless:
    """A capture that goes on for as long as anybody could wait for Ctrl-C."""

    MOST_PIECES = 1_000_000

    def __init__(self):
        whole = CAPTURE.read_bytes()
        self.start, self.packets = whole[:24], whole[24:]
        self.pieces = 0

    def read(self, size):
        self.pieces += 1
        if self.pieces > self.MOST_PIECES:
            raise TimeoutError("nobody interrupted it")
        if self.start:
            start, self.start = self.start[:size], self.start[size:]
            return start
        self.at = getattr(self, "at", 0) % len(self.packets)
        piece = self.packets[self.at : self.at + size]
        self.at += len(piece)
        return piece


HOURS = {"rate": "1G", "rtt": "200ms", "points": 10_000, "seconds": 15}
"""A sweep that nobody waits for."""


def test_control_c_ends_a_simulation():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    presser = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fullpipe.what_if(sweep="receiver.window=64k..32M", **HOURS)
    finally:
        presser.join()
        signal.signal(signal.SIGINT, before)


def test_a_sweep_with_a_value_that_cannot_be_is_refused_before_it_begins():
    with pytest.raises(fullpipe.UsageError, match="from 536 B to 32 MiB"):
        fullpipe.what_if(sweep="receiver.window=64k..64M", **HOURS)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_control_c_ends_a_read_that_would_go_on_forever(threads):
    # What a shell starts in the background ignores it, and Python then leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    endless = Endless()

    ended = threading.Event()

    def press():
        while endless.pieces < 20:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        # Python drops one that falls into a destructor: as anybody would, press again.
        while not ended.wait(20):
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fullpipe.read(endless, threads=threads)
    finally:
        ended.set()
        presser.join()
        signal.signal(signal.SIGINT, before)


def test_bdp_is_in_bytes():
    assert fullpipe.bdp("100M", "80ms") == fullpipe.bdp(100_000_000, 80_000) == 1_000_000
