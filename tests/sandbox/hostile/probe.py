"""What the hostile programs share; it lies beside each of them in its box."""

import ctypes
import json
import os
import time

hints = json.load(open("hints.json"))
libc = ctypes.CDLL(None, use_errno=True)


def report(**seen):
    """Print what was seen, as the one line that the host reads."""
    data = (json.dumps({"seen": seen}) + "\n").encode()
    os.write(1, data)


def attempt(call, *arguments, **options):
    """Give 0 when it worked, an errno, or the name of another exception."""
    try:
        call(*arguments, **options)
    except OSError as error:
        return error.errno
    except Exception as error:
        return type(error).__name__
    return 0


def syscall(number, *arguments):
    """Give 0 when the kernel did it, or an errno."""
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    done = libc.syscall(ctypes.c_long(number), *words)
    return ctypes.get_errno() if done == -1 else 0


def until_refused(step, most):
    """Do it until it fails; give how often it worked, and the errno (0: it never failed)."""
    for n in range(most):
        if error := attempt(step):
            return n, error
    return most, 0


def forks(most):
    """Start sleeping children until it fails; give their number and the errno."""
    children = []

    def one():
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
        children.append(pid)

    return until_refused(one, most)


def read(path):
    """Open for reading and read a little."""
    with open(path, "rb") as file:
        return file.read(4096)


def write(path):
    """Open for writing, make it if need be, and write."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(handle, b"0")
    finally:
        os.close(handle)
