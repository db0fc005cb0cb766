# Takes memory in steps of 8 MiB.
#
# /// expect
# status = "memory"
# oom = true
# peak_mib = "250..257"
# at.uncounted = { status = "ok", oom = false, seen = { error = "MemoryError", mib = "64..256" } }
# ///
from probe import report

blocks = []
try:
    while True:
        blocks.append(bytearray(8 << 20))
except MemoryError:
    n = len(blocks)
    blocks.clear()
    report(error="MemoryError", mib=8 * n)
