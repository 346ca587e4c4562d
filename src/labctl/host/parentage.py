"""Running a leg: what processes take over from their parent, who adopts orphans, who dies with its parent (Linux)."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """From now on, orphans among this process's descendants become its children, whatever sessions they made.

    Raises:
        OSError: the kernel refused.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent_pid: int, death_signal: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent ends; leave at once when it has ended already.

    The kernel looks at the parent's *thread*: the parent must have forked from its main thread.

    Args:
        parent_pid: the process that forked this one.
        death_signal: what the kernel sends.

    Raises:
        OSError: the kernel refused.
    """
    _prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent_pid:
        os._exit(128 + death_signal)


def heed_every_signal() -> None:
    """Undo what `nohup` or a shell's `&` had this process ignore: a start is the same however labctl was started."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
