"""Holds a network namespace: brings its loopback up, says so on descriptor 9, waits for its end.

It runs outside every box and runs nothing of a model's. Its input is a pipe that only the harness
holds, so it ends when the harness does, however that happens.
"""

import fcntl
import os
import socket
import struct

_SIOCSIFFLAGS, _UP = 0x8914, 1  # of netdevice(7)


def main() -> None:
    """Hold the namespace that the process was started in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _UP))
    os.write(9, b"r")
    os.close(9)
    os.read(0, 1)


if __name__ == "__main__":
    main()
