"""The system calls that no program in a box may make, as a classic BPF filter.

The numbers are those of x86_64 (``arch/x86/entry/syscalls/syscall_64.tbl`` of the kernel).
"""

from __future__ import annotations

import errno
import platform
import struct

# From <linux/bpf_common.h>, <linux/seccomp.h>, <linux/audit.h>.
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_AT_NUMBER, _AT_ARCH, _AT_FIRST_ARGUMENT = 0, 4, 16
_X86_64 = 0xC000003E
_X32 = 0x40000000  # numbers from here on are the x32 interface, a second way to every call
_CLONE, _CLONE3 = 56, 435
_NEW_NAMESPACES = 0x7E020000  # the CLONE_NEW… bits

DENIED: dict[str, tuple[int, ...]] = {
    "namespaces": (272, 308),  # unshare, setns
    "mounts": (165, 166, 155, 161, 428, 429, 430, 431, 432, 442),
    "other processes": (101, 310, 311, 438),  # ptrace, process_vm_readv, …_writev, pidfd_getfd
    "keys": (250, 248, 249),  # keyctl, add_key, request_key
    "kernel surface": (321, 298, 323, 425, 426, 427),  # bpf, perf, userfaultfd, io_uring
    "handles": (304,),  # open_by_handle_at
    "kernel modules": (246, 175, 176, 313),  # kexec_load, init_, delete_, finit_module
    "machine": (167, 169, 103, 163, 179, 159, 164, 227),  # swapon, reboot, syslog, acct, clocks
}
"""Calls that fail with EPERM, by what they would reach."""


def filter_bytes() -> bytes | None:
    """Give the filter in the form that ``bwrap --seccomp`` reads.

    Returns
    -------
    bytes or None
        Eight bytes an instruction; None on a processor other than x86_64.
    """
    if platform.machine() != "x86_64":
        return None
    eperm = _ERRNO | errno.EPERM
    enosys = _ERRNO | errno.ENOSYS
    program = [
        _step(_LOAD, _AT_ARCH),
        _step(_JUMP_EQUAL, _X86_64, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _AT_NUMBER),
        *_when(_JUMP_AT_LEAST, _X32, enosys),
        # Its flags lie behind a pointer, where no filter can look; libc falls back to clone.
        *_when(_JUMP_EQUAL, _CLONE3, enosys),
    ]
    for numbers in DENIED.values():
        for number in numbers:
            program += _when(_JUMP_EQUAL, number, eperm)
    program += [
        _step(_JUMP_EQUAL, _CLONE, 0, 3),
        _step(_LOAD, _AT_FIRST_ARGUMENT),
        *_when(_JUMP_ANY_BIT, _NEW_NAMESPACES, eperm),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _when(jump: int, value: int, answer: int) -> list[bytes]:
    return [_step(jump, value, 0, 1), _step(_RETURN, answer)]
