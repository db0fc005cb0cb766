# Asks for 4 GiB at once.
#
# /// expect
# seen = { error = "MemoryError" }
# ///
from probe import attempt, report

report(error=attempt(bytearray, 4 << 30))
