# Turns off what makes addresses unpredictable, for itself only.
#
# /// expect
# seen = { itself = 0, first = true }
# ///
from probe import attempt, read, report, syscall

report(itself=syscall(135, 0x0040000), first=attempt(read, "/proc/1/personality") in (0, 1, 13))
