"""One engine, many jobs: what a job does to it, and that the rest goes on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from harness.sandbox import Driver, Job

pytestmark = pytest.mark.usefixtures("nothing_left")

# An engine in another language's manner: plain lines on 3 and 4, and a state that jobs can spoil.
ENGINE = """
import json, os, sys
replies = open(4, 'w')
done = 0
for line in open(3):
    request = json.loads(line)
    job, reply = request['job'], {'n': request['n']}
    if job is not None:
        done += 1
        try:
            exec(job['do'])
            reply['value'] = {'done': done, **job.get('say', {})}
        except Exception as error:
            reply['error'] = {'name': type(error).__name__, 'message': str(error), 'trace': ''}
    print(json.dumps(reply), file=replies, flush=True)
"""
SHELL = """
while read -r line <&3; do
  id=$(printf '%s' "$line" | sed 's/.*"n": "\\([0-9a-f]*\\)".*/\\1/')
  printf '{"n": "%s", "value": "shell"}\\n' "$id" >&4
done
"""
BAD = {
    "hangs": ("while True: pass", "timeout", "wall"),
    "leaves": ("os._exit(0)", "error", "engine_died"),
    "is killed": ("os.kill(os.getpid(), 9)", "crash", "SIGKILL"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "crash", "SIGSEGV"),
    "writes junk": ("os.write(4, b'junk\\n')", "error", "protocol"),
    "writes another's line": ('os.write(4, b\'{"n": "1", "value": 1}\\n\')', "error", "protocol"),
    "writes without end": ("while True: os.write(4, b'x' * 65536)", "error", "protocol"),
    "closes the pipe": ("os.close(4)", "error", "engine_died"),
    "prints without end": ("while True: print('x' * 4096)", "output_limit", "output"),
}


@pytest.fixture
def new_driver(python, small):
    made = []

    def go(engine=ENGINE, command=None, **options):
        files = {"engine.py": engine.encode(), **options.pop("files", {})}
        changes = {k: options.pop(k) for k in list(options) if k in small.__struct_fields__}
        limits = msgspec.structs.replace(small, **changes)
        made.append(Driver(command or [python, "-u", "engine.py"], limits, files=files, **options))
        return made[-1]

    yield go
    for driver in made:
        driver.close()


def jobs(*programs):
    return [Job({"do": program}) for program in programs]


def test_one_process_does_them_all(new_driver, level):
    driver = new_driver(level=level)
    results = driver.run([Job({"do": f"print({n})", "say": {"n": n}}) for n in range(5)])
    assert [result.value for result in results] == [{"done": n + 1, "n": n} for n in range(5)]
    assert [result.stdout.text for result in results] == [f"{n}\n" for n in range(5)]
    assert driver.run(jobs("pass"))[0].value == {"done": 6}
    assert driver.starts == 1


def test_an_engine_in_another_language(new_driver):
    driver = new_driver(SHELL, ["sh", "engine.py"])
    assert [result.value for result in driver.run(jobs("a", "b"))] == ["shell", "shell"]


def test_a_job_that_fails_is_an_answer(new_driver):
    driver = new_driver()
    bad, good = driver.run(jobs("raise ValueError('wrong \\x1b')", "pass"))
    assert (bad.status, bad.reason, bad.value) == ("error", None, None)
    assert (bad.error.name, bad.error.message) == ("ValueError", r"wrong \x1b")
    assert (good.status, good.value) == ("ok", {"done": 2})


@pytest.mark.parametrize("name", BAD)
def test_the_running_job_is_marked_and_the_rest_goes_on(new_driver, name):
    code, status, reason = BAD[name]
    driver = new_driver()
    wall = 0.6 if status == "timeout" else 30
    results = driver.run(jobs("print('a')", "print('b')\n" + code, "print('c')"), wall_s=wall)
    assert [result.status for result in results] == ["ok", status, "ok"]
    assert results[1].reason == reason
    assert results[1].stdout.text.startswith("b\n")
    assert [result.value for result in (results[0], results[2])] == [{"done": 1}, {"done": 1}]
    assert driver.starts == 2


def test_every_job_hangs(new_driver):
    driver = new_driver()
    results = driver.run(jobs(*["os._exit(1)"] * 4, "pass"))
    assert [result.reason for result in results] == ["engine_died"] * 4 + [None]
    assert driver.starts == 5


def test_results_are_taken_after_each_job(new_driver, isolated):
    driver = new_driver(level=isolated)
    write = [Job({"do": f"open('{n}.txt', 'w').write('{n}')"}, (f"{n}.txt", "no")) for n in "ab"]
    late = Job({"do": "open('c.txt', 'w').write('c'); os._exit(0)"}, ("c.txt", "a.txt"))
    a, b, c, d = driver.run([*write, late, Job({"do": "pass"}, ("a.txt",))])
    assert (a.files, b.files) == ({"a.txt": b"a"}, {"b.txt": b"b"})
    assert a.refused == {"no": "missing"}
    assert c.files == {"c.txt": b"c", "a.txt": b"a"}
    # The new process has a new box: no report of an earlier one can be taken for its own.
    assert (d.files, d.refused) == ({}, {"a.txt": "missing"})


def test_the_budget_of_all(new_driver):
    driver = new_driver()
    driver.run(jobs("pass"))
    results = driver.run(jobs("pass", "while True: pass", "pass", "pass"), budget_s=0.8)
    assert [(result.status, result.reason) for result in results] == [
        ("ok", None), ("timeout", "wall"), ("timeout", "budget"), ("timeout", "budget"),
    ]  # fmt: skip


def test_an_engine_that_does_not_start_is_the_harness_s_fault(new_driver):
    driver = new_driver("import sys; print('no licence', file=sys.stderr); sys.exit(1)")
    results = driver.run(jobs("pass"))
    assert [(result.status, result.reason) for result in results] == [("harness", "no licence")]
    assert driver.starts == 2  # tried once more
    assert new_driver(command=["no-such-engine"]).run(jobs("pass"))[0].status == "harness"
    slow = new_driver("import time; time.sleep(1000)", start_s=0.3)
    assert slow.run(jobs("pass"))[0].status == "harness"


def test_memory(new_driver, counted):
    driver = new_driver(level=counted)
    results = driver.run(jobs("x = []\nwhile True: x.append(bytearray(8 << 20))", "pass"))
    assert [result.status for result in results] == ["memory", "ok"]


def test_many_threads_share_one_driver(new_driver):
    driver = new_driver()

    def some(number):
        found = driver.run([Job({"do": "pass", "say": {"n": number}})] * 5)
        return [result.value["n"] for result in found]

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(some, range(6))) == [[n] * 5 for n in range(6)]
    assert driver.run(jobs("pass"))[0].value == {"done": 31}


def test_closing_from_another_thread(new_driver):
    driver = new_driver()
    driver.run(jobs("pass"))
    running = threading.Event()
    with ThreadPoolExecutor(1) as threads:

        def go():
            running.set()
            return driver.run(jobs("while True: pass", "pass"), wall_s=60)

        job = threads.submit(go)
        running.wait()
        driver.close()
        results = job.result(timeout=20)
    assert [(result.status, result.reason) for result in results] == [("harness", "closed")] * 2
