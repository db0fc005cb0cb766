# Fills the temporary folder and shared memory.
#
# /// expect
# seen = { tmp = [4, 28], shm = [4, 28] }
# not_run = ["weak"]
# ///
import os

from probe import report, until_refused


def fill(folder):
    names = iter(range(100))

    def one():
        handle = os.open(f"{folder}/{next(names)}", os.O_WRONLY | os.O_CREAT)
        try:
            for _ in range(8):
                if os.write(handle, b"x" * (1 << 20)) < 1 << 20:
                    os.write(handle, b"x")
        finally:
            os.close(handle)

    return until_refused(one, 20)


report(tmp=fill("/tmp"), shm=fill("/dev/shm"))
