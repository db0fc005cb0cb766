"""A stand-in for docker: keeps what it was asked, and runs the command after the image here.

    fake_docker.py STATE WORDS...

STATE is a folder: `image` names the image that is there, `down` and `oom` are faults when they
exist, `calls` gets a line of JSON for each call, and NAME.json is a container.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

state, words = Path(sys.argv[1]), sys.argv[2:]
NEVER = "0001-01-01T00:00:00Z"


def fail(text, code=1):
    print(text, file=sys.stderr)
    sys.exit(code)


def record(name, **changes):
    file = state / f"{name}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    part = state / f"{name}.{os.getpid()}.part"
    part.write_text(json.dumps(known | changes))
    part.replace(file)


def end(name):
    with contextlib.suppress(OSError, KeyError):
        os.killpg(json.loads((state / f"{name}.json").read_text())["pid"], signal.SIGKILL)


def run_container():
    at = words.index((state / "image").read_text())
    options, command = words[:at], words[at + 1 :]
    value = lambda option: options[options.index(option) + 1]  # noqa: E731
    name = value("--name")
    if (state / f"{name}.json").exists():
        fail(f"docker: Conflict. The container name {name} is already in use.", 125)
    record(name, StartedAt=NEVER, Running=False, ExitCode=0, OOMKilled=False, Error="")
    if (state / "broken").exists():
        fail("docker: Error response from daemon: no space left on device", 125)
    job = next(word for word in options if word.endswith(",target=/box"))
    user, group = map(int, value("--user").split(":"))
    drop = {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 else {}
    program = subprocess.Popen(
        command, cwd=job.split("source=")[1].removesuffix(",target=/box"),
        env={"PATH": os.environ["PATH"], "OF_THE_IMAGE": "1"}, start_new_session=True, **drop,
    )  # fmt: skip
    record(name, StartedAt="2026-01-01T00:00:00Z", Running=True, pid=program.pid)
    code = program.wait()
    code = 128 - code if code < 0 else code
    with contextlib.suppress(OSError):
        os.killpg(program.pid, signal.SIGKILL)  # the first process of a container ends all others
    if (state / f"{name}.json").exists():
        record(name, Running=False, ExitCode=code, OOMKilled=(state / "oom").exists())
    sys.exit(code)


with (state / "calls").open("a") as calls:
    calls.write(json.dumps({"words": words, "env": dict(os.environ)}) + "\n")
if (state / "down").exists():
    fail("Cannot connect to the Docker daemon at unix:///none. Is the docker daemon running?")
match words:
    case ["ps", *_]:
        pass
    case ["image", "inspect", *_, image]:
        if image != (state / "image").read_text():
            fail(f"Error: No such image: {image}")
    case ["run", *_]:
        run_container()
    case ["kill", "--signal", "KILL", name]:
        end(name)
    case ["container", "inspect", "--format", "{{json .State}}", name]:
        if not (state / f"{name}.json").exists():
            fail(f"Error: No such container: {name}")
        print((state / f"{name}.json").read_text())
    case ["rm", "--force", "--volumes", name]:
        end(name)
        (state / f"{name}.json").unlink(missing_ok=True)
    case ["--version"]:
        print("Docker version 0, a stand-in")
    case _:
        fail(f"unknown: {words}")
