# Recurses until the stack is gone.
#
# /// expect
# status = ["crash", "memory"]
# at.uncounted.status = ["crash", "memory", "error"]
# ///
import sys

sys.setrecursionlimit(10**9)


def deeper(_):
    return list(map(deeper, [0]))


deeper(0)
