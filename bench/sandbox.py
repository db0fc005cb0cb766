"""What a box costs: start and end of isolated programs, against the budgets of the sandbox.

    .venv/bin/python -P bench/sandbox.py [--level auto] [--times 50] [--json]

Each figure is the median and the 95th percentile of so many repeats, milliseconds on the clock, from
the call to the end with everything removed (of a worker, to its readiness or reply). A figure over
its budget makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from harness.sandbox import LIMITS, Box, ForkPool, Network, Service, WarmWorkers, Worker, reach, run
from harness.sandbox.levels import AUTOMATIC

_LIMITS = LIMITS["function"]


def empty_program(level: str) -> None:
    """Run ``/bin/true`` in a box of its own."""
    result = run(["/bin/true"], limits=_LIMITS, level=level)
    assert result.status == "ok", result


def empty_python(level: str) -> None:
    """Run an empty Python program, isolated mode, in a box of its own."""
    # Levels without a root of their own show a dropped user the system's Python only.
    python = sys.executable if level in AUTOMATIC else "/usr/bin/python3"
    result = run([python, "-I", "-S", "m.py"], files={"m.py": b""}, limits=_LIMITS, level=level)
    assert result.status == "ok", result


def empty_box(level: str) -> None:
    """Make a box and take it away; nothing runs in it."""
    Box(_LIMITS, level=level).close()


def parallel(level: str) -> None:
    """Run 100 empty programs on as many threads as the machine has cores; time for one."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: empty_program(level), range(100)))


def worker_ready(level: str) -> float:
    """Start a worker; seconds until it can run a cell, without its end."""
    begin = time.perf_counter()
    with Worker(_LIMITS, level=level) as worker:
        assert worker.wait_ready() is None
        return time.perf_counter() - begin


def round_trips(level: str) -> float:
    """Run 1,000 cells on one ready worker; seconds for all."""
    with Worker(_LIMITS, level=level) as worker:
        worker.wait_ready()
        begin = time.perf_counter()
        for number in range(1000):
            assert worker.execute(f"{number}").value == str(number)
        return time.perf_counter() - begin


def warm_job(level: str) -> float:
    """Take a warm worker and run a cell that does nothing; its whole time is overhead."""
    with WarmWorkers(1, _LIMITS, level=level) as pool:
        pool.wait_full()
        begin = time.perf_counter()
        with pool.take() as worker:
            assert worker.execute("1").value == "1"
            return time.perf_counter() - begin


def forked_jobs(level: str) -> float:
    """Run 20 programs that do nothing in a fork pool; seconds for all."""
    with ForkPool((), _LIMITS, level=level) as pool:
        pool.run("1")
        begin = time.perf_counter()
        for number in range(20):
            assert pool.run("args", number).value == number
        return time.perf_counter() - begin


def network(level: str) -> float:
    """Make a network of an attempt; seconds until boxes can join it, without its end."""
    begin = time.perf_counter()
    with Network(level):
        return time.perf_counter() - begin


def service_ready(level: str) -> float:
    """Start an empty service in a network that is there; seconds until its port answers."""
    with Network(level) as own:
        begin = time.perf_counter()
        with Service({"main.py": b""}, ["python", "main.py"], network=own) as service:
            service.wait_ready()
            return time.perf_counter() - begin


def service_round_trips(level: str) -> float:
    """Send 6,000 lines to a service over one connection, each after the last one's echo; seconds."""
    server = b"import sys\nfor line in sys.stdin: print(line.strip())"
    client = (
        "import socket, time\ns = socket.create_connection(('127.0.0.1', 1337))\nf = s.makefile('rb')\n"
        "begin = time.perf_counter()\nfor number in range(6000):\n"
        "  s.sendall(b'%d\\n' % number)\n  assert int(f.readline()) == number\n"
        "print(time.perf_counter() - begin)"
    )
    limits = msgspec.structs.replace(_LIMITS, wall_s=120, cpu_s=120)
    with Network(level) as own:
        command = ["python", "main.py"]
        with Service({"main.py": server}, command, network=own, limits=limits) as service:
            service.wait_ready()
            result = run(["python", "-c", client], limits=limits, level=level, network=own)
    assert result.status == "ok", result
    return float(result.stdout.text)


# name: what is measured (by its own clock where part of it does not count), how many are done in one
# call, budget in milliseconds
FIGURES: dict[str, tuple[Callable[[str], float | None], int, float]] = {
    "empty program": (empty_program, 1, 150),
    "empty Python program": (empty_python, 1, 150),
    "box without a program": (empty_box, 1, 50),
    "empty program, 100 on two threads": (parallel, 100, 150),
    "worker ready": (worker_ready, 1, 150),
    "1,000 round trips": (round_trips, 1, 500),
    "job on a warm worker": (warm_job, 1, 10),
    "job in a fork pool": (forked_jobs, 20, 50),
    "network of an attempt": (network, 1, 150),
    "service ready": (service_ready, 1, 300),
    "6,000 round trips to a service": (service_round_trips, 1, 3000),
}
# Not to be had at the weaker levels.
_NETWORKED = ("network of an attempt", "service ready", "6,000 round trips to a service")


def measure(name: str, level: str, times: int) -> dict[str, float]:
    """Measure one figure; milliseconds for one."""
    work, many, budget = FIGURES[name]
    work(level)
    took = []
    for _ in range(max(2, times // many)):
        begin = time.perf_counter()
        own = work(level)
        seconds = time.perf_counter() - begin if own is None else own
        took.append(seconds * 1000 / many)
    return {
        "median": statistics.median(took),
        "p95": statistics.quantiles(took, n=20, method="inclusive")[-1],
        "budget": budget,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--level", default="auto")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    level = reach(options.level).level
    names = [name for name in FIGURES if level in AUTOMATIC or name not in _NETWORKED]
    rows = {name: measure(name, level, options.times) for name in names}
    if options.json:
        print(json.dumps({"level": level, "figures": rows}))
    else:
        print(f"{'level ' + level:36}{'median':>10}{'p95':>10}{'budget':>10}   ms")
        for name, row in rows.items():
            print(f"{name:36}{row['median']:10.1f}{row['p95']:10.1f}{row['budget']:10.0f}")
    return int(any(row["median"] > row["budget"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
