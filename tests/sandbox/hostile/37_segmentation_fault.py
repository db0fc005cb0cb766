# Reads where there is no memory.
#
# /// expect
# status = "crash"
# reason = "SIGSEGV"
# ///
import ctypes

ctypes.string_at(0)
