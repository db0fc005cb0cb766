# Looks for descriptors that it was not meant to have.
#
# /// expect
# seen = { open = [0, 1, 2], kinds = 3 }
# ///
import os

from probe import attempt, report

numbers = [n for n in range(1024) if attempt(os.fstat, n) == 0]
report(open=numbers, kinds=len({os.readlink(f"/proc/self/fd/{n}") for n in numbers}))
