# Becomes a program with 10 MB of arguments.
#
# /// expect
# seen = { long = 7, many = 7 }
# ///
import os

from probe import attempt, report

report(
    long=attempt(os.execv, "/bin/true", ["true", "x" * 200_000]),
    many=attempt(os.execv, "/bin/true", ["true"] + ["x" * 100_000] * 100),
)
