"""Services: a program on a port of a network that only the boxes of one attempt are in."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from harness.core.errors import UsageError
from harness.sandbox import LIMITS, Death, Network, SandboxUnavailable, Service, run
from harness.sandbox.levels import AUTOMATIC

ROOT = Path(__file__).resolve().parents[2]
FLAG = "flag{taken-from-the-server}"
# Asks for a word; for the right one it gives the flag away.
CHALLENGE = b"""
word = input("word? ")
print(open("flag.txt").read() if word == "sesame" else f"no: {word}")
"""
# What a model would write: `talk(text)` gives all that the service says, `errno` how a try failed.
CLIENT = """
import contextlib, json, os, socket
def talk(text, port=1337, shut=False):
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.sendall(text.encode())
        if shut:
            s.shutdown(socket.SHUT_WR)
        return s.makefile("rb").read().decode()
def errno(host, port):
    try:
        socket.create_connection((host, port), 5).close()
    except OSError as error:
        return error.errno
"""


@pytest.fixture
def attempt(run_python):
    """Make a network with a service on it, and say how to run a client in a second box."""
    stack = ExitStack()

    def go(level, program=CHALLENGE, command=(sys.executable, "main.py"), **options):
        network = stack.enter_context(Network(level))
        files = {"main.py": program, "flag.txt": FLAG.encode()}
        service = stack.enter_context(Service(files, command, network=network, **options))
        service.wait_ready()

        def client(code):
            result = run_python(CLIENT + code, level=level, network=network, nofile=256)
            assert result.status == "ok", (result.reason, result.stderr.text)
            return result.stdout.text.strip()

        return service, client

    yield go
    stack.close()


@pytest.fixture
def listening():
    """A port of the host on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_client_in_a_second_box_gets_the_flag_and_sees_nothing_else(
    isolated, nothing_left, attempt, listening
):
    service, client = attempt(isolated)
    seen = json.loads(
        client(f"""
files, processes, names = os.walk("/"), [], []
for folder, folders, found in files:
    if folder in ("/proc", "/usr", "/sys") or folder.startswith("/opt"):
        folders.clear()
    names += found
for entry in os.listdir("/proc"):
    with contextlib.suppress(OSError):
        if entry.isdigit():
            processes.append(open(f"/proc/{{entry}}/cmdline").read())
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
except OSError as error:
    raw = error.errno
print(json.dumps(dict(
    right=talk("sesame\\n"), wrong=talk("x\\n"), own="main.py" in names, flag="flag.txt" in names, processes=processes, raw=raw,
    devices=[name for _, name in socket.if_nameindex()],
    internet=errno("1.1.1.1", 443), metadata=errno("169.254.169.254", 80),
    host=errno("127.0.0.1", {listening}), other=errno("127.0.0.1", 1338),
)))
""")
    )
    assert seen["right"] == f"word? {FLAG}\n"
    assert seen["wrong"] == "word? no: x\n"
    assert (seen["own"], seen["flag"]) == (True, False)  # each box has a main.py
    assert len(seen["processes"]) <= 3  # of the client's box alone
    assert not any("1337" in line for line in seen["processes"])
    # No internet, none of the host's ports, no sniffing: errno as measured in the specification.
    assert (seen["internet"], seen["metadata"], seen["host"], seen["other"]) == (101, 101, 111, 111)
    assert (seen["raw"], seen["devices"]) == (1, ["lo"])
    assert (service.alive, service.deaths) == (True, ())
    assert service.isolation.net == "private"


def test_without_the_network_there_is_no_service(isolated, attempt, run_python):
    attempt(isolated)
    assert run_python(CLIENT + "print(errno('127.0.0.1', 1337))", level=isolated).stdout.text == (
        "111\n"
    )


def test_two_attempts_with_the_same_port_do_not_meet(isolated, attempt):
    asked = {word: attempt(isolated, f"print({word!r})".encode())[1] for word in ("one", "two")}
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda client: client("print(talk(''))"), asked.values())
        said = dict(zip(asked, answers, strict=True))
    assert said == {"one": "one", "two": "two"}


def test_twenty_clients_are_served_and_others_refused(isolated, attempt):
    program = b'printf "word? "; read w; [ "$w" != sesame ] || cat flag.txt'
    service, client = attempt(isolated, program, ["bash", "main.py"])
    seen = json.loads(
        client("""
served, refused = [], []
for k in range(60):
    try:
        s = socket.create_connection(("127.0.0.1", 1337), 20)
        assert s.recv(100) == b"word? "
        served.append(s)
    except ConnectionResetError:
        refused.append(k)
counts = [len(served), len(refused)]
for s in served:
    s.sendall(b"sesame\\n")
right = sum(s.makefile().read().startswith("flag{") for s in served)
# The places are free again, and what hangs up at once changes nothing.
for _ in range(200):
    with contextlib.suppress(ConnectionResetError):
        socket.create_connection(("127.0.0.1", 1337), 20).close()
while True:
    try:
        after = talk("sesame\\n")
        break
    except ConnectionResetError:
        pass
print(json.dumps([*counts, right, after]))
""")
    )
    assert seen == [20, 40, 20, f"word? {FLAG}"]
    assert service.alive
    assert not [death for death in service.deaths if death.reason.startswith("service")]


def test_output_is_cut_for_one_connection_and_input_without_a_reader_ends(attempt, level_of_all):
    program = b"""
import sys
kind = input()
if kind == "endless":
    while True: sys.stdout.write("x" * 65536)
if kind == "large":
    sys.stdout.write("y" * 1_000_000)
"""
    service, client = attempt(level_of_all, program)
    seen = json.loads(
        client("""
def length(text, **options):
    try:
        return len(talk(text, **options))
    except ConnectionResetError:
        return "reset"
with socket.create_connection(("127.0.0.1", 1337), 20) as s:
    s.sendall(b"endless\\n")
    got = 0
    with contextlib.suppress(ConnectionResetError):
        while part := s.recv(1 << 20):
            got += len(part)
print(json.dumps([got, length("large\\n"), length("large\\n", shut=True), length("\\n" * 1_000)]))
""")
    )
    cap = LIMITS["server"].output_kib * 1024
    assert cap // 2 < seen[0] <= cap + 65536
    assert seen[1:] == [1_000_000, 1_000_000, 0]
    assert (service.alive, service.deaths) == (True, ())


def test_a_program_that_dies_takes_its_own_connection_along(attempt, level_of_all):
    program = b"""
import os, sys
kind = input()
if kind == "crash": os.kill(os.getpid(), 11)
if kind == "raise": raise ValueError
if kind == "child" and os.fork() == 0:
    os.setsid()
    import time; time.sleep(1000)
print("done")
"""
    service, client = attempt(level_of_all, program)
    said = client(
        "print([talk(k) for k in ('crash\\n', 'child\\n')], 'ValueError' in talk('raise\\n'))\n"
        "talk('crash\\n', shut=True); talk('crash\\n')\n"
    )
    assert said == "['', 'done\\n'] True"
    digest = hashlib.sha256(b"crash\n").hexdigest()
    assert (service.alive, service.deaths) == (True, (Death("SIGSEGV", digest),) * 3)


def test_a_service_that_dies_is_seen_and_can_be_restarted(isolated, nothing_left, attempt):
    program = b"""
import os
if input() == "kill": os.kill(os.getppid(), 9)
else: print("here")
"""
    service, client = attempt(isolated, program)
    client("talk('kill\\n')")
    wait_for(lambda: not service.alive)
    assert [death.reason for death in service.deaths] == ["service: SIGKILL"]
    assert client("print(errno('127.0.0.1', 1337))") == "111"
    service.restart()
    service.wait_ready()
    assert client("print(talk('x\\n'))") == "here"
    assert len(service.deaths) == 1
    service.close()
    service.close()
    assert not service.alive


def test_memory_of_the_server_is_its_own(counted, attempt):
    limits = msgspec.structs.replace(LIMITS["server"], memory_mib=64)
    program = b"if input() == 'eat': x = bytearray(200 << 20)\nprint('here')"
    service, client = attempt(counted, program, limits=limits)
    client("talk('eat\\n')")
    wait_for(lambda: service.deaths)
    assert service.counters().oom_kill == 1
    assert service.deaths[0].reason in ("SIGKILL", "service: memory")


def test_a_port_that_is_taken_is_a_fault_of_the_harness(isolated, nothing_left, attempt):
    first, _ = attempt(isolated)
    second = Service({}, ["true"], network=first.network)
    with pytest.raises(SandboxUnavailable, match=r"did not start.*Address already in use"):
        second.wait_ready()
    assert (second.alive, second.deaths, first.alive) == (False, (), True)
    second.close()
    with Service({}, ["true"], network=first.network, port=1338) as third:
        third.wait_ready()


def test_what_cannot_be_started_is_said(level_of_all, nothing_left):
    with Network(level_of_all) as network:
        with (
            Service({}, ["no-such-program"], network=network) as service,
            pytest.raises(SandboxUnavailable, match="no such program: no-such-program"),
        ):
            service.wait_ready()
        with pytest.raises(UsageError, match="port 0 of a service"):
            Service({}, ["true"], network=network, port=0)
    with pytest.raises(SandboxUnavailable, match="the network is closed"):
        network.enter  # noqa: B018  a property that raises
    network.close()


def test_levels_that_show_the_host_have_no_services(level):
    if level in AUTOMATIC:
        Network(level).close()
        return
    with pytest.raises(SandboxUnavailable, match=f"level {level} has no network for a service"):
        Network(level)


VICTIM = """
import os, sys, time
from pathlib import Path
from harness.sandbox import Network, Service, slots
slots._state = lambda: Path(sys.argv[2])
slots.FIRST_UID = int(sys.argv[3])
slots._CGROUP_PREFIX = sys.argv[4]
service = Service({}, ["cat"], network=Network(sys.argv[1]))
service.wait_ready()
print(service.network._holder.pid, service._process.pid, flush=True)
time.sleep(1000)
"""


def test_a_killed_harness_takes_network_and_service_along(isolated, own_place, count):
    from harness.sandbox import slots, sweep

    before = count()
    arguments = [isolated, str(own_place), str(slots.FIRST_UID), slots._CGROUP_PREFIX]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", VICTIM, *arguments], stdout=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as victim:  # fmt: skip
        pids = victim.stdout.readline().split()
        assert all(Path("/proc", pid.decode()).exists() for pid in pids)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    wait_for(lambda: not [pid for pid in pids if alive(pid.decode())])
    sweep()
    assert count() == before


def test_many_at_once_leave_nothing(isolated, nothing_left):
    def one(number):
        with Network(isolated) as network, Service(
            {"a.txt": str(number).encode()}, ["cat", "a.txt"], network=network
        ) as service:  # fmt: skip
            service.wait_ready()
            code = "exec 5<>/dev/tcp/127.0.0.1/1337; cat <&5"
            limits = LIMITS["function"]
            result = run(["bash", "-c", code], limits=limits, level=isolated, network=network)
            return result.stdout.text

    n = 24 if isolated == "full" else 6
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(n))) == [str(k) for k in range(n)]


@pytest.fixture
def level_of_all():
    """The best level, for what does not depend on it."""
    from harness.sandbox import reach

    return reach().level


def alive(pid):
    """Tell whether a process is there and no zombie."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(true):
    """Look again and again until something is so; fail when it is not after a while."""
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
