# Opens files by number, past every folder.
#
# /// expect
# seen = { errno = 1 }
# ///
import ctypes

from probe import report, syscall

report(
    errno=syscall(304, 0, ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0" + bytes(8), 16), 0)
)
