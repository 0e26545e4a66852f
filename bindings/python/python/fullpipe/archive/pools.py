"""Who does the work: processes of this machine, or Ray, which listens on every address of a machine and works where somebody asked
for it. What is not here: what the work is (``worker``), and what becomes of it (``run``).

Both have the same three calls. A worker that dies is told as ``DIED``: nothing is tried again here.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
from typing import Any, Dict, List, Optional, Tuple

from .._errors import made
from .inputs import Series, _line
from .worker import How, Result, read_series, split

DIED = "died"
"""Instead of results: the worker is gone, whatever became of it."""

REACHED_WITHIN = 5.0
"""Seconds that the head of a cluster has to answer."""

Done = Tuple[List[Series], Any]


def _work(task: List[Series], how: How) -> List[Result]:
    return [split(read_series(series, how)) for series in task]


class Processes:
    """Processes of this machine, each with a pipe, so that it is known what a dead one had in hand."""

    name = "processes"

    def __init__(self, workers: Optional[int], how: How) -> None:
        self.how, self.most = how, workers or processors()
        self.context = multiprocessing.get_context("spawn")
        self.workers: Dict[Any, Tuple[Any, Optional[List[Series]]]] = {}
        for _ in range(self.most):
            self._start()

    def _start(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs, self.how), daemon=True)
        process.start()
        theirs.close()
        self.workers[ours] = (process, None)

    @property
    def free(self) -> int:
        return sum(task is None for _, task in self.workers.values())

    def submit(self, task: List[Series]) -> None:
        pipe, (process, _) = next((pipe, of) for pipe, of in self.workers.items() if of[1] is None)
        self.workers[pipe] = (process, task)
        try:
            pipe.send(task)
        except OSError:
            pass  # It died idle: `wait` reads the end of the pipe.

    def wait(self, seconds: float) -> List[Done]:
        done: List[Done] = []
        pipe: Any
        for pipe in multiprocessing.connection.wait(list(self.workers), seconds):
            process, task = self.workers[pipe]
            results: Any = DIED
            try:
                results = pipe.recv()
                self.workers[pipe] = (process, None)
            except (EOFError, OSError):
                pipe.close()
                del self.workers[pipe]
                process.join(5)
                self._start()
            if task is not None:
                done.append((task, results))
        return done

    def close(self) -> None:
        for pipe, (process, _) in self.workers.items():
            pipe.close()
            process.terminate()
        for process, _ in self.workers.values():
            process.join(5)
        self.workers = {}


def _serve(pipe: Any, how: How) -> None:
    """A worker's life. Ctrl-C reaches all of a terminal's processes, and is the first one's to act on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            pipe.send(_work(pipe.recv(), how))
    except (EOFError, OSError):
        pass


class Cluster:
    """Ray's workers."""

    name = "ray"

    def __init__(self, workers: Optional[int], how: How, address: Optional[str]) -> None:
        import ray as imported

        # Its annotations are of no use here: `nodes` and others have none.
        ray: Any = imported
        self.ray = ray
        stop = signal.getsignal(signal.SIGTERM)
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        address = address or os.environ.get("RAY_ADDRESS")
        hint = "is it up (`ray status`), and has this machine its token (RAY_AUTH_MODE)? Without --address one is made here"
        try:
            if address:
                _reach(address)
                ray.init(address=address, **quiet)
            else:
                ray.init(address="local", num_cpus=(workers or processors()) * how.threads, include_dashboard=False, **quiet)
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            if "ray[client]" in str(error):
                hint = "python -m pip install 'ray[client]', here and on the head"
                raise made("unsupported", f"joining the Ray cluster {address}: the package ray was installed without its client", hint, 21)
            raise made("input_invalid", f"joining the Ray cluster {address or 'of this machine'}: {_line(error)}", hint, 24)
        # Ray takes the signal that stops a service, and would end this process before what is finished counts.
        signal.signal(signal.SIGTERM, stop)
        here = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        if max(here, default=0) < how.threads:
            text = f"no node of the cluster has the {how.threads} processors that --threads {how.threads} takes: {max(here, default=0)} at the most"
            raise made("usage", text, "give fewer --threads", 2)
        self.most = workers or sum(count // how.threads for count in here)
        # A dead worker is told by `wait`; with Ray's own retries nobody would know that one died.
        self.work = ray.remote(num_cpus=how.threads, max_retries=0, scheduling_strategy="SPREAD")(_work)
        self.how = ray.put(how)
        self.tasks: Dict[Any, List[Series]] = {}

    @property
    def free(self) -> int:
        return self.most - len(self.tasks)

    def submit(self, task: List[Series]) -> None:
        self.tasks[self.work.remote(task, self.how)] = task

    def wait(self, seconds: float) -> List[Done]:
        if not self.tasks:
            return []
        ready, _ = self.ray.wait(list(self.tasks), num_returns=1, timeout=seconds)
        done: List[Done] = []
        for reference in ready:
            try:
                results = self.ray.get(reference)
            except self.ray.exceptions.RayTaskError as error:
                # What the nodes lack: the package, or another version of it.
                hint = "every node needs the same version of the package fullpipe, and pyarrow"
                raise made("unsupported", f"on a node of the cluster: {_line(error.cause or error)}", hint, 21)
            except self.ray.exceptions.RayError:
                results = DIED
            done.append((self.tasks.pop(reference), results))
        return done

    def close(self) -> None:
        self.ray.shutdown()


def processors() -> int:
    """Of this machine, as far as this process may use them."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _reach(address: str) -> None:
    """Ray tries for minutes where nobody listens."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), REACHED_WITHIN).close()


def pool(engine: str, workers: Optional[int], how: How, address: Optional[str]) -> Any:
    """The engine of that name; ``auto`` is Ray where a cluster is named (``RAY_ADDRESS`` does so, too), and processes elsewhere."""
    if engine == "processes" and address:
        raise made("usage", "--engine processes has no cluster to join", "leave --address or --engine out", 2)
    if engine == "processes" or not (engine == "ray" or address or os.environ.get("RAY_ADDRESS")):
        return Processes(workers, how)
    if importlib.util.find_spec("ray") is None:
        hint = "python -m pip install ray; processes of one machine do without: `--engine processes`, no --address"
        raise made("unsupported", "the package ray is not installed", hint, 21)
    return Cluster(workers, how, address)
