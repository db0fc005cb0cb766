"""Runs in a server's box: listens on a port and gives each connection a process of its own.

Command line: port, clients at most, bytes of output for one connection, then the program. It stands
alone: the box does not show the harness. It says on descriptor 4, a line of JSON each, that it
listens and which programs were killed by a signal.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys

BUFFER = 65536  # bytes held for a reader that is slow


class Flow:
    """One direction of a connection: what was read from `source` and not yet written to `sink`."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source, self.sink = source, sink
        self.buffer = bytearray()
        self.total = 0
        self.digest = hashlib.sha256()
        self.ended = False  # nothing more will come
        self.shut = False  # and the sink knows

    def wants(self) -> bool:
        """Tell whether there is room for more."""
        return not self.ended and len(self.buffer) < BUFFER

    def fill(self, *, last: bool = False) -> None:
        """Read what is there; with `last`, an empty source has ended."""
        while self.wants():
            try:
                data = self.source.recv(BUFFER)
            except BlockingIOError:
                self.ended = last
                return
            self.ended = not data
            self.total += len(data)
            self.digest.update(data)
            self.buffer += data

    def pour(self) -> None:
        """Write what can be written, and pass the end on."""
        while self.buffer:
            try:
                del self.buffer[: self.sink.send(self.buffer)]
            except BlockingIOError:
                return
        if self.ended and not self.shut:
            self.shut = True
            with contextlib.suppress(OSError):
                self.sink.shutdown(socket.SHUT_WR)


class Connection:
    """A client and the process that serves it.

    The program's output goes through the bridge, because no limit of the kernel counts the bytes
    that a program writes into a socket.
    """

    def __init__(self, client: socket.socket, command: list[str], cap: int) -> None:
        self.client = client
        self.ours, theirs = socket.socketpair()
        end = theirs.fileno()
        try:
            self.process = subprocess.Popen(
                command, stdin=end, stdout=end, stderr=end, start_new_session=True
            )
        except OSError:
            self.ours.close()
            raise
        finally:
            theirs.close()
        client.setblocking(False)
        # A second small answer must not wait until the client has acknowledged the first.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ours.setblocking(False)
        self.end = os.pidfd_open(self.process.pid)
        self.code: int | None = None
        self.died = False  # by a signal that was not ours
        self.waits = {client: 0, self.ours: 0}  # what the selector waits for at both ends
        self.up = Flow(client, self.ours)
        self.down = Flow(self.ours, client)
        self.cap = cap

    def move(self) -> bool:
        """Move what can be moved; tell whether the connection goes on."""
        try:
            self.up.fill()
            self._to_program()
            self._from_program()
            self.down.pour()
        except OSError:  # the client is gone
            return False
        if self.down.total > self.cap:
            return False
        return not (self.down.shut and (self.code is not None or self.up.ended))

    def ended(self) -> None:
        """Take note of the program's end, and end what it left running."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.code = self.process.wait()

    def interests(self) -> dict[socket.socket, int]:
        """Give what to wait for at both ends."""
        flows = {self.client: (self.up, self.down), self.ours: (self.down, self.up)}
        return {
            end: selectors.EVENT_READ * source.wants() | selectors.EVENT_WRITE * bool(sink.buffer)
            for end, (source, sink) in flows.items()
        }

    def close(self) -> None:
        """End the program and both ends."""
        if self.code is None and self.down.shut:
            # Its last descriptor closes a moment before it has ended, by a signal perhaps.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.code = self.process.wait(1)
        self.died = self.code is not None and self.code < 0
        self.ended()
        # Closing with bytes unread would reset the connection and take the last output along.
        with contextlib.suppress(OSError):
            self.client.recv(BUFFER)
        os.close(self.end)
        self.client.close()
        self.ours.close()

    def _to_program(self) -> None:
        try:
            self.up.pour()
        except OSError:  # it does not read on
            self.up.buffer.clear()

    def _from_program(self) -> None:
        try:
            self.down.fill(last=self.code is not None)
        except OSError:  # it ended with input unread
            self.down.ended = True


class Bridge:
    """The listening socket and its connections, in one thread."""

    def __init__(self, port: int, clients: int, cap: int, command: list[str]) -> None:
        self.clients, self.cap, self.command = clients, cap, command
        self.selector = selectors.DefaultSelector()
        self.connections: set[Connection] = set()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)

    def step(self) -> None:
        """Wait for something to happen, and deal with it."""
        touched: dict[Connection, bool] = {}  # and whether its program has ended
        for key, _ in self.selector.select():
            if key.fileobj is self.listener:
                self.accept()
            else:
                touched[key.data] = touched.get(key.data, False) or key.fileobj == key.data.end
        for connection, ended in touched.items():
            if ended and connection.code is None:
                connection.ended()
                self.selector.unregister(connection.end)
            self.go_on(connection)

    def accept(self) -> None:
        """Take a client, or turn it away when there are enough."""
        try:
            client, _ = self.listener.accept()
        except OSError:  # gone again, or no descriptor is left
            return
        try:
            if len(self.connections) >= self.clients:
                raise BlockingIOError
            connection = Connection(client, self.command, self.cap)
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # with a reset: refused, not served with nothing
            return
        self.connections.add(connection)
        self.selector.register(connection.end, selectors.EVENT_READ, connection)
        self.go_on(connection)

    def go_on(self, connection: Connection) -> None:
        """Move a connection's bytes and see what to wait for, or take it away."""
        alive = connection.move()
        for end, events in connection.interests().items():
            wanted = events if alive else 0
            # Changed only where need be: a call of the kernel each, in every round trip.
            if connection.waits[end] == wanted:
                continue
            if connection.waits[end]:
                self.selector.unregister(end)
            if wanted:
                self.selector.register(end, wanted, connection)
            connection.waits[end] = wanted
        if alive:
            return
        if connection.code is None:
            self.selector.unregister(connection.end)
        self.connections.discard(connection)
        connection.close()
        if connection.died:
            say({"signal": -(connection.code or 0), "input": connection.up.digest.hexdigest()})


def say(line: dict[str, object]) -> None:
    """Tell the parent; never wait for it."""
    with contextlib.suppress(BlockingIOError):
        os.write(4, json.dumps(line).encode() + b"\n")


def main() -> None:
    """Serve until the box ends."""
    port, clients, cap = map(int, sys.argv[1:4])
    command = sys.argv[4:]
    if shutil.which(command[0]) is None:
        sys.exit(f"no such program: {command[0]}")
    os.set_blocking(4, False)
    bridge = Bridge(port, clients, cap, command)
    say({"ready": True})
    while True:
        bridge.step()


if __name__ == "__main__":
    main()
