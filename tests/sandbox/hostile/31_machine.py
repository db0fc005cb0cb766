# Restarts the machine, sets its clock, loads modules, turns swap on.
#
# /// expect
# seen = { refused = 6, errnos = [1, 1, 1, 1, 1, 1] }
# at.weak.seen.errnos = "any"
# ///
from probe import report, syscall

errnos = [
    syscall(169, 0xFEE1DEAD, 672274793, 0, 0),  # a command without effect
    syscall(164, None, None),
    syscall(227, 0, None),
    syscall(175, None, 0, b""),
    syscall(167, b"none", 0),
    syscall(163, None),
]
report(refused=6 - errnos.count(0), errnos=errnos)
