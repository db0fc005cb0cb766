"""The place where a challenge is attacked: what is in view, how a flag is handed in, how servers end."""

from __future__ import annotations

import json
import threading
import time

import pytest

import harness.sandbox
from harness.core.errors import HarnessError
from harness.core.types import ToolCall
from harness.sandbox import LIMITS, Network, SandboxUnavailable, Service, reach
from harness.solvers.tools import Workbench, checked
from tasks.aicrypto.ctf.environment import LONGEST_FLAG, PORT, SUBMIT_FLAG, Challenge, Hunt

FLAG = "flag{of-this-attempt}"
PUBLIC = {"output.txt": b"n = 15\n", "more/notes.txt": b"see output\n"}
# Gives the flag for a word; takes itself or the whole service down on demand.
SERVER = b"""
import os, signal
flag = open("secret.txt").read()
while True:
    try:
        word = input()
    except EOFError:
        break
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "fell":
        os.kill(os.getppid(), signal.SIGKILL)
    print(flag if word == "sesame" else "no", flush=True)
"""
STATIC = Challenge(flag=FLAG, public=PUBLIC)
DYNAMIC = Challenge(
    flag=FLAG, public={"main.py": SERVER}, server={"main.py": SERVER, "secret.txt": FLAG.encode()}
)
TALK = """
import socket
def talk(*words):
    with socket.create_connection(("127.0.0.1", 1337), 20) as s:
        s.sendall("".join(w + "\\n" for w in words).encode())
        s.shutdown(socket.SHUT_WR)
        return s.makefile().read()
"""


@pytest.fixture(scope="module", autouse=True)
def _isolated():
    try:
        reach("auto")
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def hunt(challenge=STATIC, most_wrong=10, find=None):
    return Hunt(
        find or (lambda: challenge), level="auto", limits=LIMITS["cell"],
        server_limits=LIMITS["server"], most_wrong=most_wrong,
    )  # fmt: skip


def say(place, name, **arguments):
    return place.call(ToolCall("c", name, arguments), 60.0)


def told_of_the_end(place, code):
    """Bring the server down, and call on until its end is told: it shows a moment after the client's."""
    result = say(place, "python", code=code)
    until = time.monotonic() + 30
    while "server" not in result.text and time.monotonic() < until:
        result = say(place, "python", code="0")
    return result


def test_only_the_public_files_are_in_view():
    with hunt() as place:
        seen = say(place, "bash", command="find . -type f | sort; cat public/more/notes.txt")
    assert seen.text == "./public/more/notes.txt\n./public/output.txt\nsee output\n[exit code 0]\n"
    assert [tool.name for tool in place.tools] == [
        "python", "bash", "create_file", "submit", "give_up",
    ]  # fmt: skip


def test_the_right_flag_ends_the_attempt():
    with hunt() as place:
        right = say(place, "submit", flag=f"  {FLAG}\n")
        assert right.submitted == FLAG
        assert right.isolation["level"] == reach("auto").level
        assert place.finish(right.submitted) == FLAG
        assert place.facts == {"wrong_submissions": 0, "gave_up": False}


@pytest.mark.parametrize("wrong", [FLAG[:-1], FLAG.upper(), f"The flag is {FLAG}", FLAG[5:-1]])
def test_nothing_but_the_whole_flag_is_right(wrong):
    with hunt() as place:
        result = say(place, "submit", flag=wrong)
        assert (result.submitted, FLAG in result.text) == (None, False)


def test_ten_wrong_flags_end_the_attempt():
    with hunt() as place:
        for number in range(1, 10):
            result = say(place, "submit", flag=f"flag{{{number}}}")
            assert (result.submitted, result.status) == (None, "ok")
            assert f"Tries left: {10 - number}." in result.text
        last = say(place, "submit", flag="flag{10}")
        assert (last.submitted, last.facts) == ("flag{10}", {"wrong_submissions": 10})
        assert place.facts["wrong_submissions"] == 10


def test_without_a_cap_wrong_flags_end_nothing():
    with hunt(most_wrong=None) as place:
        results = [say(place, "submit", flag=f"{k}") for k in range(25)]
        assert {result.submitted for result in results} == {None}
        assert place.facts["wrong_submissions"] == 25
        # What was handed in last is what the attempt came to.
        assert place.finish(None) == "24"
        assert say(place, "submit", flag=FLAG).submitted == FLAG


def test_without_an_argument_the_file_is_handed_in():
    with hunt() as place:
        say(place, "bash", command="echo flag{wrong} > flag.txt")
        assert say(place, "submit").text.startswith("That is not the flag.")
        say(place, "create_file", path="flag.txt", content=f"{FLAG}\n\n")
        assert say(place, "submit", flag="  ").submitted == FLAG
        assert place.facts["wrong_submissions"] == 1


def as_the_loop_does(place, **arguments):
    """Hand in a flag by way of the check that a call of a model goes through."""
    made = checked(ToolCall("c", "submit", arguments), SUBMIT_FLAG, {"submit": SUBMIT_FLAG})
    return place.call(made, 60.0)


def test_null_for_the_flag_is_no_argument():
    with hunt() as place:
        absent = as_the_loop_does(place, flag=None)
        assert (absent.status, "missing" in absent.text) == ("denied", True)
        say(place, "create_file", path="flag.txt", content=FLAG)
        assert as_the_loop_does(place, flag=None).submitted == FLAG
        assert place.facts["wrong_submissions"] == 0


@pytest.mark.parametrize("given", [[FLAG], {"flag": FLAG}, 7, 0, True, False])
def test_what_is_no_text_is_no_wrong_try(given):
    with hunt() as place:
        result = as_the_loop_does(place, flag=given)
        assert (result.status, result.submitted) == ("denied", None)
        assert "must be a text" in result.text
        assert place.facts["wrong_submissions"] == 0


def test_a_flag_of_digits_is_a_flag_where_it_is_text():
    with hunt(Challenge(flag="0123", public=PUBLIC)) as place:
        assert as_the_loop_does(place, flag="0123").submitted == "0123"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("true", "missing"),
        ("touch flag.txt", "is empty"),
        ("ln -s public/output.txt flag.txt", "a symlink"),
        ("mkfifo flag.txt", "a FIFO"),
        ("mkdir flag.txt", "a folder"),
        (f"head -c {LONGEST_FLAG + 1} /dev/zero | tr '\\0' a > flag.txt", "no flag has more than"),
    ],
)
def test_a_file_that_holds_no_flag_is_no_wrong_try(line, why):
    with hunt() as place:
        say(place, "bash", command=line)
        result = say(place, "submit")
        assert (result.status, result.submitted, why in result.text) == ("denied", None, True)
        assert place.facts["wrong_submissions"] == 0
        assert place.finish(None) is None


def test_nothing_is_handed_in_before_the_first_call():
    with hunt() as place:
        assert "missing" in say(place, "submit").text


def test_giving_up_ends_the_attempt():
    with hunt() as place:
        assert say(place, "give_up").submitted == ""
        assert place.facts["gave_up"] is True
    with hunt() as place:
        say(place, "submit", flag="flag{wrong}")
        assert say(place, "give_up").submitted == "flag{wrong}"


def test_a_server_is_up_before_the_first_call_and_shows_nothing_but_its_port():
    with hunt(DYNAMIC) as place:
        look = "import os; [n for _, _, names in os.walk('/box') for n in names]"
        assert (
            say(place, "python", code=TALK + "print(talk('x', 'sesame'))").text == f"no\n{FLAG}\n\n"
        )
        assert say(place, "python", code=look).text == "['main.py']\n"
        other = (
            "ss=socket.socket(); ss.connect_ex(('127.0.0.1', 1338)), ss.connect_ex(('1.1.1.1', 53))"
        )
        assert say(place, "python", code=other).text == "(111, 101)\n"
        assert place.facts == {
            "wrong_submissions": 0, "gave_up": False, "server_restarts": 0, "connections_killed": 0,
        }  # fmt: skip


def test_a_connection_that_dies_is_the_models_business():
    with hunt(DYNAMIC) as place:
        result = say(place, "python", code=TALK + "talk('die')")
        assert (result.status, result.text) == ("ok", "''\n")
        assert say(place, "python", code="talk('sesame')").text == f"'{FLAG}\\n'\n"
        # The bridge tells of it when it has ended the connection.
        until = time.monotonic() + 30
        while not place.facts["connections_killed"] and time.monotonic() < until:
            pass
        assert (place.facts["connections_killed"], place.facts["server_restarts"]) == (1, 0)


def test_a_server_that_falls_is_started_again_once():
    with hunt(DYNAMIC) as place:
        fell = told_of_the_end(place, TALK + "talk('fell')")
        assert "[The server had ended and was started again.]" in fell.text
        assert (fell.fatal, fell.facts["server"]) == (False, "SIGKILL")
        assert say(place, "python", code="talk('sesame')").text == f"'{FLAG}\\n'\n"
        again = told_of_the_end(place, "talk('fell')")
        assert (again.fatal, again.status, again.reason) == (True, "crash", "server_killed")


def test_a_server_that_does_not_come_back_is_the_harnesss_fault(monkeypatch):
    def refuse(service):
        raise SandboxUnavailable("no room")

    monkeypatch.setattr(Service, "restart", refuse)
    with hunt(DYNAMIC) as place:
        result = told_of_the_end(place, TALK + "talk('fell')")
        assert result.status == "harness"
        assert "server ended (SIGKILL) and does not come back: no room" in result.reason


@pytest.fixture
def taken(monkeypatch):
    """A network where somebody listens on the challenge's port already."""
    opened = []

    def network(level):
        made = Network(level)
        squatter = Service({"main.py": b""}, ["python", "main.py"], network=made, port=PORT)
        squatter.wait_ready()
        opened.append(squatter)
        return made

    monkeypatch.setattr(harness.sandbox, "Network", network)
    yield
    for service in opened:
        service.close()


def test_a_port_that_is_taken_is_named(taken):
    with pytest.raises(RuntimeError, match=r"server on port 1337: .*[Aa]ddress already in use"):
        hunt(DYNAMIC).__enter__()


def test_what_goes_wrong_on_entering_leaves_nothing(monkeypatch):
    closed = []
    for kind in (Network, Service):
        close = kind.close
        monkeypatch.setattr(
            kind, "close", lambda self, close=close: (closed.append(type(self)), close(self))
        )

    def enter(bench):
        raise OSError("no space")

    monkeypatch.setattr(Workbench, "__enter__", enter)
    with pytest.raises(OSError, match="no space"):
        hunt(DYNAMIC).__enter__()
    assert {Network, Service} <= set(closed)


def test_a_challenge_that_cannot_be_had_is_told_as_it_is():
    def find():
        raise HarnessError("config.yaml: no flag")

    with pytest.raises(HarnessError, match=r"config\.yaml: no flag"):
        hunt(find=find).__enter__()


def test_kill_ends_a_call_and_also_an_attempt_that_only_begins():
    with hunt() as place:
        say(place, "python", code="1")
        threading.Timer(0.2, place.kill).start()
        began = time.monotonic()
        assert say(place, "bash", command="sleep 50").status == "harness"
        assert time.monotonic() - began < 30
    early = hunt()
    early.kill()
    with early as place:
        assert say(place, "python", code="1").status == "harness"


def test_many_connections_at_once_are_served():
    code = TALK + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import json\n"
        "with ThreadPoolExecutor(10) as pool:\n"
        "    print(json.dumps(list(pool.map(lambda k: talk('x', 'sesame'), range(20)))))\n"
    )
    with hunt(DYNAMIC) as place:
        assert json.loads(say(place, "python", code=code).text) == [f"no\n{FLAG}\n"] * 20
