"""Job folder of an ordinary user: a process whose user and mount namespaces hold the tmpfs.

An ordinary user cannot mount on the host, but can in a user namespace of their own. The process
waits on a pipe from the harness, so it ends when the harness does, however that happens.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.sandbox import warden
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.levels import program
from harness.sandbox.spawn import close_all, pipe, spawn


class Holder:
    """The process that holds the job folder's mount.

    Parameters
    ----------
    job : Path
        An empty folder; in the holder's mount namespace it becomes a tmpfs.
    options : str
        Of the tmpfs, as of mount(8).
    network : sequence of str or None
        Command line that enters a shared network; its user namespace is then the holder's.
    """

    def __init__(self, job: Path, options: str, network: Sequence[str] | None) -> None:
        mount, cat = program("mount"), program("cat")
        script = (
            f"{mount} -t tmpfs -o {options},nosuid,nodev none {shlex.quote(str(job))} || exit 1; "
            f"printf r >&9; exec 9>&-; exec {cat} >/dev/null"
        )
        self._network = ["--net"] if network else []
        own = [] if network else ["--user", "--map-root-user"]
        ready, ready_in = pipe()
        wait, self._alive = pipe()
        try:
            self._process = spawn(
                [
                    *(network or ()),
                    program("unshare"),
                    *own,
                    "--mount",
                    "--",
                    "/bin/sh",
                    "-c",
                    script,
                ],
                descriptors={9: ready_in},
                stdin=wait,
            )
        except BaseException:
            close_all(self._alive)
            raise
        finally:
            close_all(ready_in, wait)
            if not hasattr(self, "_process"):
                close_all(ready)
        try:
            if os.read(ready, 1) != b"r":
                assert self._process.stderr is not None
                said = self._process.stderr.read(500).decode(errors="replace").strip()
                raise SandboxUnavailable(f"no user namespace with a folder of its own: {said}")
        except BaseException:
            self.close()
            raise
        finally:
            close_all(ready)

    def enter(self) -> list[str]:
        """Give the command line that runs what follows in its namespaces."""
        return [
            program("nsenter"), "--target", str(self._process.pid), "--user", "--mount",
            *self._network, "--preserve-credentials", "--",
        ]  # fmt: skip

    def seen(self, path: Path) -> Path:
        """Give the path under which the harness sees a folder of the holder."""
        return Path(f"/proc/{self._process.pid}/root", *path.parts[1:])

    def close(self) -> None:
        """End the process; the folder goes with it."""
        self._process.kill()
        self._process.wait()
        warden.forget(self._process.pid)
        # Taken out first: closing a number twice would close somebody else's.
        alive, self._alive = self._alive, -1
        close_all(alive, self._process.stdout, self._process.stderr)
