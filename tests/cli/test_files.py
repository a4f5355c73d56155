"""Files that a user names: written whole or not at all, and nothing is replaced that is no file."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from fleetctl.cli.files import read_regular, write_whole
from fleetctl.errors import Unreachable


def test_a_new_file_is_private_and_an_old_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for data in (b"one", b"two"):
        write_whole(path, data)
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (data, 0o600)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to("target")
    write_whole(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    """As root, a rename would put a file in the place of `/dev/null`. A device of our own is asked first."""
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.open("wb").close()
    except PermissionError:
        pytest.skip("only root makes devices, and only where they are allowed")
    write_whole(device, b"data")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"data")
    reader.join(20)
    assert read == [b"data"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_by_its_name(tmp_path: Path) -> None:
    """`-o /dev/stdout` is a link to whatever the process has open, here a pipe."""
    link = tmp_path / "stdout"
    read, write = os.pipe()
    link.symlink_to(f"/proc/self/fd/{write}")
    write_whole(link, b"data")
    os.close(write)
    assert os.read(read, 10) == b"data" and link.is_symlink()
    os.close(read)


@pytest.mark.parametrize("name", [".", "missing/plan.json", "bad\0name"])
def test_what_cannot_be_written_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unreachable) as refused:
        write_whole(f"{tmp_path}/{name}", b"data")
    assert refused.value.code == "path-unwritable"
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing", "."):
        with pytest.raises(Unreachable):
            read_regular(tmp_path / name, 10)
