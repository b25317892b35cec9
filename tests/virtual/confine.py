"""Runs a program under a seccomp filter: python confine.py container|no-ptrace PROGRAM [ARGUMENT...]

`container` forbids what container engines forbid a container without privileges: mounting, namespaces, keys, BPF,
modules, the clock, and changes of personality. `no-ptrace` forbids ptrace as well. Numbers are those of x86-64.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
RET_ALLOW = 0x7FFF0000
RET_ERRNO = 0x00050000
LOAD, EQUALS, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JSET|K, BPF_RET|K
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
X86_64 = 0xC000003E

PTRACE = 101
CLONE, CLONE3, PERSONALITY = 56, 435, 135
CLONE_NEW = 0x7E020000
"""All flags of clone that make a namespace."""

PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Those that container engines allow. Addresses that are not random (0x40000) are not among them."""

FORBIDDEN = {
    "_sysctl": 156, "acct": 163, "add_key": 248, "bpf": 321, "chroot": 161, "clock_adjtime": 305, "clock_settime": 227,
    "create_module": 174, "delete_module": 176, "fanotify_init": 300, "finit_module": 313, "fsconfig": 431,
    "fsmount": 432, "fsopen": 430, "fspick": 433, "get_mempolicy": 239, "init_module": 175, "io_uring_enter": 426,
    "io_uring_register": 427, "io_uring_setup": 425, "ioperm": 173, "iopl": 172, "kexec_file_load": 320,
    "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212, "mbind": 237, "mount": 165, "mount_setattr": 442,
    "move_mount": 429, "move_pages": 279, "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298,
    "pivot_root": 155, "quotactl": 179, "reboot": 169, "request_key": 249, "set_mempolicy": 238, "setdomainname": 171,
    "sethostname": 170, "setns": 308, "settimeofday": 164, "swapoff": 168, "swapon": 167, "sysfs": 139, "syslog": 103,
    "umount2": 166, "unshare": 272, "uselib": 134, "userfaultfd": 323, "ustat": 136, "vhangup": 153,
}  # fmt: skip


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One struct sock_filter."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def refuse(number: int, error: int) -> bytes:
    """Has a system call fail."""
    return instruction(EQUALS, number, 0, 1) + instruction(RETURN, RET_ERRNO | error)


def container(more: Iterable[int] = ()) -> bytes:
    """What a container may not. Args: more: numbers of system calls that are forbidden too."""
    allow, deny = instruction(RETURN, RET_ALLOW), instruction(RETURN, RET_ERRNO | errno.EPERM)
    chosen = b"".join(instruction(EQUALS, value, len(PERSONALITIES) - i) for i, value in enumerate(PERSONALITIES))
    return b"".join([
        instruction(LOAD, ARCHITECTURE),
        instruction(EQUALS, X86_64, 1, 0),
        allow,
        instruction(LOAD, NUMBER),
        # Whoever uses clone3 tries clone then, whose flags a filter can see.
        refuse(CLONE3, errno.ENOSYS),
        *(refuse(number, errno.EPERM) for number in (*FORBIDDEN.values(), *more)),
        instruction(EQUALS, CLONE, 0, 4),
        instruction(LOAD, FIRST_ARGUMENT),
        instruction(ANY_BIT, CLONE_NEW, 0, 1),
        deny,
        allow,
        instruction(EQUALS, PERSONALITY, 0, len(PERSONALITIES) + 2),
        instruction(LOAD, FIRST_ARGUMENT),
        chosen,
        deny,
        allow,
    ])  # fmt: skip


def install(program: bytes) -> None:
    """Puts this process and all that it starts under a filter. Raises: OSError."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    given = Filter(len(program) // 8, program)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "cannot install the filter")


if __name__ == "__main__":
    install({"container": container(), "no-ptrace": container([PTRACE])}[sys.argv[1]])
    os.execvp(sys.argv[2], sys.argv[2:])
