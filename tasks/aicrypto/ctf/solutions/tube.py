"""A conversation with a server, line by line: over a socket, or with a program of one's own."""

from __future__ import annotations

import contextlib
import socket
from typing import IO


class Tube:
    """Two ends of a conversation.

    Parameters
    ----------
    read, write : file
        Binary; `write` is flushed after every line.
    """

    def __init__(self, read: IO[bytes], write: IO[bytes]) -> None:
        self._read = read
        self._write = write

    def send(self, line: bytes | str) -> None:
        """Send one line."""
        self._write.write((line.encode() if isinstance(line, str) else line) + b"\n")
        self._write.flush()

    def send_all(self, lines: list[bytes] | list[str]) -> None:
        """Send many lines at once, for answers that are read afterwards; keep it to a few thousand."""
        for line in lines:
            self._write.write((line.encode() if isinstance(line, str) else line) + b"\n")
        self._write.flush()

    def line(self) -> str:
        """Read one line without its end.

        Raises
        ------
        EOFError
            The server has ended.
        """
        line = self._read.readline()
        if not line:
            raise EOFError("the server has ended")
        return line.decode("utf-8", "replace").rstrip("\r\n")

    def ask(self, line: bytes | str) -> str:
        """Send a line and read the next."""
        self.send(line)
        return self.line()

    def close(self) -> None:
        """End the conversation."""
        for end in (self._write, self._read):
            with contextlib.suppress(OSError):
                end.close()


def connect(port: int = 1337) -> Tube:
    """Open a conversation with the server of a challenge on this machine."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    # A line of its own must not wait for the answer to the one before.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Tube(sock.makefile("rb"), sock.makefile("wb"))
