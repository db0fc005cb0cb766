# Takes back that it gains no privileges, raises capabilities, moves its memory map.
#
# /// expect
# seen = { privileges = 22, ambient = 1, map = 1, capabilities = "0000000000000000" }
# ///
import ctypes
import re
from pathlib import Path

from probe import libc, report


def prctl(*arguments):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.prctl(*map(ctypes.c_long, arguments)) == -1 else 0


status = Path("/proc/self/status").read_text()
report(
    privileges=prctl(38, 0, 0, 0, 0),
    ambient=prctl(47, 2, 21, 0, 0),
    map=prctl(35, 1, 0x400000, 0, 0),
    capabilities=re.search(r"CapEff:\s*(\w+)", status)[1],
)
