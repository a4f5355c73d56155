"""Work in forks of a test: one that may be killed, or several that are let go at one moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence


def in_child(work: Callable[[], object]) -> int:
    """Exit status of a fork that does the work: 0, 1 for an exception, or the negative signal that ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


KILLED = -signal.SIGKILL


def die() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def together(works: Sequence[Callable[[], str]]) -> list[str]:
    """Run each work in a fork of its own, all let go at one moment; what each returned, in their order.

    A work that raises makes its answer the exception's name and text.
    """
    gate_read, gate_write = os.pipe()
    running = []
    for work in works:
        answer_read, answer_write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(gate_write)
            os.close(answer_read)
            status = 1
            try:
                os.read(gate_read, 1)  # the end of the file, when the parent opens the gate
                try:
                    said = work()
                except Exception as error:  # noqa: BLE001 - the parent is told whatever it was
                    said = f"{type(error).__name__}: {error}"
                os.write(answer_write, said.encode())
                status = 0
            finally:
                os._exit(status)
        os.close(answer_write)
        running.append((child, answer_read))
    os.close(gate_read)
    os.close(gate_write)
    answers = []
    for child, answer in running:
        with os.fdopen(answer, "rb") as pipe:
            answers.append(pipe.read().decode())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return answers
