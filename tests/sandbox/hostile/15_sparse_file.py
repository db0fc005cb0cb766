# Makes a file of 1 TiB without content.
#
# /// expect
# seen = { errno = 27 }
# ///
from probe import attempt, report

with open("sparse", "wb") as file:
    report(errno=attempt(file.truncate, 1 << 40))
