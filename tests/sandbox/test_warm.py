"""Workers started ahead: given out once, bounded, and none left at the end."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.core.errors import HarnessError, UsageError
from harness.sandbox import SandboxUnavailable, WarmWorkers, warm

pytestmark = pytest.mark.usefixtures("nothing_left")


def settled(pool):
    """Wait until nothing more is on its way; give what waits."""
    assert pool.wait_full() == len(pool._waiting)
    return list(pool._waiting)


def test_each_is_given_once_and_replaced(small):
    with WarmWorkers(2, small) as pool:
        seen = []  # kept alive: the id of one that is gone may be given again
        for number in range(5):
            assert len(settled(pool)) == pool.n
            with pool.take() as worker:
                assert worker not in seen
                seen.append(worker)
                assert worker.execute("'state' in dir()").value == "False"
                worker.execute(f"state = {number}")
                assert worker not in settled(pool)
        assert len(settled(pool)) == pool.n


def test_the_number_is_bounded_by_the_cores(small, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with WarmWorkers(50, small) as pool:
        assert len(settled(pool)) == pool.n == 2
    with WarmWorkers(0, small) as pool:
        assert settled(pool) == []
        with pool.take() as worker:
            assert worker.execute("6 * 7").value == "42"


def test_more_are_taken_at_once_than_wait(small):
    gate = threading.Barrier(5)

    def use(number):
        gate.wait()
        with pool.take() as worker:
            worker.execute(f"x = {number}")
            return worker.execute("x").value, worker.isolation.uid, id(worker)

    with WarmWorkers(2, small) as pool, ThreadPoolExecutor(5) as threads:
        found = list(threads.map(use, range(5)))
    assert [value for value, _, _ in found] == list("01234")


def test_one_that_died_while_it_waited_is_not_given(small):
    with WarmWorkers(1, small) as pool:
        (dead,) = settled(pool)
        dead.close()
        with pool.take() as worker:
            assert worker is not dead
            assert worker.execute("6 * 7").value == "42"


def test_what_was_taken_outlives_the_pool(small):
    pool = WarmWorkers(1, small, preload=("decimal",))
    worker = pool.take()
    pool.close()
    pool.close()
    assert worker.execute("import sys; 'decimal' in sys.modules").value == "True"
    worker.close()
    with pytest.raises(HarnessError, match="closed"):
        pool.take()


def test_closing_while_one_is_started(small, monkeypatch):
    begun, go_on, real = threading.Event(), threading.Event(), warm.Worker

    def slow(*arguments, **options):
        begun.set()
        go_on.wait(30)
        return real(*arguments, **options)

    monkeypatch.setattr(warm, "Worker", slow)
    pool = WarmWorkers(1, small)
    assert begun.wait(30)
    with ThreadPoolExecutor(1) as threads:
        closing = threads.submit(pool.close)
        while not pool._closed:
            pass
        go_on.set()
        closing.result(timeout=30)
    assert not pool._waiting


def test_what_keeps_workers_from_starting_is_told_to_the_taker(small, monkeypatch):
    with pytest.raises(UsageError, match="unknown sandbox level"):
        WarmWorkers(1, small, level="none")

    def refuse(*arguments, **options):
        raise SandboxUnavailable("no room")

    monkeypatch.setattr(warm, "Worker", refuse)
    with WarmWorkers(1, small) as pool, pytest.raises(SandboxUnavailable, match="no room"):
        pool.take()
