# Writes into the memory of the first process and of the harness through files.
#
# /// expect
# seen = { first = 13, harness = 2 }
# not_run = ["user:limits"]
# at.userns.seen.first = 30
# at."user:userns".seen.first = 30
# at.limits.seen = { harness = 13 }
# ///
import os

from probe import attempt, hints, report

report(
    first=attempt(os.open, "/proc/1/mem", os.O_RDWR),
    harness=attempt(os.open, f"/proc/{max(hints['harness'], 300)}/mem", os.O_RDWR),
)
