"""The filter of system calls, walked through by an interpreter that knows nothing of how it was made."""

import platform
import struct

import pytest

from harness.sandbox.seccomp import filter_bytes

X86_64, I386 = 0xC000003E, 0x40000003
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050001, 0x00050026

# The specification's list, by the kernel's table of system calls.
DENIED = [
    272, 308, 165, 166, 155, 161, 428, 429, 430, 431, 432, 442, 101, 310, 311, 438, 250, 248, 249,
    321, 298, 323, 425, 426, 427, 304, 246, 175, 176, 313, 167, 169, 103, 163, 179, 159, 164, 227,
]  # fmt: skip
NAMESPACES = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]


def answer(program, number, arch=X86_64, first=0):
    """Run the classic BPF program on one system call (kernel: struct seccomp_data)."""
    data = struct.pack(
        "<iIQ6Q", number if number < 2**31 else number - 2**32, arch, 0, first, *[0] * 5
    )
    steps = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x06:
            return value
        else:
            test = {
                0x15: accumulator == value, 0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }  # fmt: skip
            at += if_true if test[code] else if_false


@pytest.fixture(scope="module")
def program():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "x86_64")
        return filter_bytes()


def test_it_is_whole_instructions(program):
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096  # BPF_MAXINSNS


@pytest.mark.parametrize("number", DENIED)
def test_what_is_denied(program, number):
    assert answer(program, number) == EPERM


def test_everything_else_is_allowed(program):
    for number in set(range(463)) - set(DENIED) - {435}:
        assert answer(program, number) == ALLOW, number


def test_clone3_and_the_x32_numbers_do_not_exist(program):
    assert answer(program, 435) == ENOSYS
    for number in (0x40000000, 0x40000000 + 56, 0x40000000 + 272, 0xFFFFFFFF):
        assert answer(program, number) == ENOSYS


@pytest.mark.parametrize("flag", NAMESPACES)
def test_clone_makes_no_namespace(program, flag):
    assert answer(program, 56, first=flag) == EPERM
    assert answer(program, 56, first=flag | 17) == EPERM


def test_clone_makes_processes_and_threads(program):
    assert answer(program, 56, first=0x01200011) == ALLOW  # fork of glibc
    assert answer(program, 56, first=0x003D0F00) == ALLOW  # thread of glibc


def test_the_other_architecture_kills(program):
    assert answer(program, 1, arch=I386) == KILL
    assert answer(program, 272, arch=I386) == KILL


def test_another_processor_has_no_filter(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert filter_bytes() is None
