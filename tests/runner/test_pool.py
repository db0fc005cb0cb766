"""More calls than threads: they wait their turn, and may be dropped."""

import threading

from harness.runner.pool import Calls

WAIT = 30  # seconds; a test that waits so long has failed


def test_calls_beyond_the_limit_wait_for_a_thread():
    lock, busy, most = threading.Lock(), 0, 0
    gate = threading.Barrier(2, timeout=WAIT)

    def call(k):
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        gate.wait()  # two are always here together
        with lock:
            busy -= 1
        return k

    calls = Calls(call, limit=2)
    for k in range(6):
        calls.start(k)
    assert calls.free == -4
    got = []
    while calls.n_under_way:
        got += [future.result() for _, future in calls.ended()]
    calls.stop()
    assert (sorted(got), most) == ([0, 1, 2, 3, 4, 5], 2)


def test_what_has_not_begun_is_dropped_and_what_runs_is_waited_for():
    begun, over, ran = threading.Event(), threading.Event(), []

    def call(k):
        ran.append(k)
        begun.set()
        assert over.wait(WAIT)
        return k

    calls = Calls(call, limit=1)
    for k in range(3):
        calls.start(k)
    assert begun.wait(WAIT)
    calls.drop(timeout=0.0)  # the one that runs is not done yet
    assert calls.arguments == [0]
    over.set()
    calls.drop(timeout=WAIT)
    assert [future.result() for _, future in calls.ended()] == [0]
    calls.stop()
    assert ran == [0]
