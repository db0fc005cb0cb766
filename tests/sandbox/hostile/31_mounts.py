# Mounts, moves the root, changes the root.
#
# /// expect
# seen = { errnos = [1, 1, 1, 1, 1, 1] }
# ///
from probe import report, syscall

report(
    errnos=[
        syscall(165, b"none", b".", b"tmpfs", 0, None),
        syscall(166, b"/", 2),
        syscall(155, b".", b"."),
        syscall(161, b"."),
        syscall(430, b"tmpfs", 0),
        syscall(428, -100, b".", 1),
    ]
)
