# Uses the kernel's store of keys.
#
# /// expect
# seen = { add = 1, join = 1, request = 1 }
# open = ["weak"]
# ///
from probe import report, syscall

report(
    join=syscall(250, 1, None, 0, 0, 0),
    add=syscall(248, b"user", b"trial", b"x", 1, -3),
    request=syscall(249, b"user", b"none", None, -3),
)
