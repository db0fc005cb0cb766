# Prints environment and command line of every process that it can read.
#
# /// expect
# seen = { few = true }
# open = ["limits", "user:limits"]
# ///
import contextlib
import os
from pathlib import Path

from probe import report

numbers = [name for name in os.listdir("/proc") if name.isdigit()]
report(few=len(numbers) < 9)
for number in numbers:
    for name in ("environ", "cmdline"):
        with contextlib.suppress(OSError):
            os.write(1, Path("/proc", number, name).read_bytes() + b"\n")
