"""Runs one program and writes what it used as the last line of a file: `launch.py REPORT PROGRAM [ARGUMENT]...`.

A script of its own, started without site packages, because the kernel lets a process' peak memory start at that of
whoever started it: this one has next to none. It waits for the program and everything that the program waited for.
"""

import os
import sys
import time

if __name__ == "__main__":
    report, *argv = sys.argv[1:]
    began = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    with open(report, "w") as out:
        out.write(f"{os.waitstatus_to_exitcode(status)} {wall} {used.ru_utime + used.ru_stime} {used.ru_maxrss * 1024}")
