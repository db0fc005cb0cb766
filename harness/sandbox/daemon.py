"""The client of a container daemon: which one, with what environment, and what it says."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from harness.core.errors import UsageError
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.run import last_line

IMAGE_VARIABLE = "HARNESS_SANDBOX_IMAGE"
IMAGE = "python:3.12-slim"
"""What programs run in by default; it must be on the machine and is never fetched by a run."""
_CLIENTS = {
    "docker": "start it with: sudo systemctl start docker",
    "podman": "see what is wrong with: podman info",
}
# The client needs these to find its daemon. It gets nothing else, so that it can hand nothing on:
# podman gives a container the proxies, with their passwords, of its own environment.
_CLIENT_ENV = (
    "PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
)  # fmt: skip
_ASK_S = 60.0  # for the daemon to answer


@functools.cache
def find_client() -> str:
    """Find the first client whose daemon answers; its full path.

    Raises
    ------
    SandboxUnavailable
        There is none; one line that says what to install or to start.
    """
    refusals = []
    for name, hint in _CLIENTS.items():
        if (client := shutil.which(name)) is None:
            continue
        code, _, said = ask(client, "ps", "--quiet")
        if code == 0:
            return client
        said = last_line(said).rstrip(".") or f"exit code {code}"
        refusals.append(f"{name} does not answer ({said}): {hint}")
    if not refusals:
        raise SandboxUnavailable(
            "sandbox level container needs docker or podman; install one with: "
            "sudo apt-get install podman"
        )
    raise SandboxUnavailable(f"sandbox level container: {'; '.join(refusals)}")


def image_name() -> str:
    """Give the image that programs run in.

    Raises
    ------
    UsageError
        It would be read as an option.
    """
    image = os.environ.get(IMAGE_VARIABLE) or IMAGE
    if image.startswith("-") or not image.isprintable() or " " in image:
        raise UsageError(f"{IMAGE_VARIABLE}={image!r} is no image: give a name such as {IMAGE}")
    return image


@functools.cache
def podman_only(client: str) -> list[str]:
    """Keep an ordinary user's number inside, without which podman shows it its own files as root's."""
    if os.geteuid() == 0 or "podman" not in ask(client, "--version")[1].lower():
        return []
    return ["--userns", "keep-id"]


def client_env() -> dict[str, str]:
    """Give the client's whole environment."""
    return {name: os.environ[name] for name in _CLIENT_ENV if name in os.environ}


def ask(client: str, *words: str) -> tuple[int, str, str]:
    """Run the client to its end; exit code, stdout, stderr.

    Raises
    ------
    SandboxUnavailable
        It cannot be run, or gives no answer.
    """
    try:
        done = subprocess.run(
            [client, *words], capture_output=True, text=True, errors="replace", check=False,
            env=client_env(), stdin=subprocess.DEVNULL, timeout=_ASK_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        name = Path(client).name
        raise SandboxUnavailable(
            f"sandbox level container: {name} {words[0]} gave no answer in {_ASK_S:g} s: "
            f"{_CLIENTS[name]}"
        ) from error
    return done.returncode, done.stdout, done.stderr
