"""Files that replace others: in one step, through no link."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore._replaced_files import check_replaceable, open_unlinked, replaced


def put(path: Path, content: bytes, mode: int | None = None) -> None:
    with replaced(path, mode=mode, is_synced=True) as file:
        file.write(content)


@pytest.fixture
def denies(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets no new file be made, as in a folder of somebody else."""

    def deny(code: int) -> None:
        opened = os.open

        def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
            if flags & os.O_CREAT:
                raise OSError(code, os.strerror(code))
            return opened(path, flags, mode)

        monkeypatch.setattr(os, "open", refuse)

    return deny


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    put(path, b"one")
    path.chmod(0o640)
    put(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o640)
    put(path, b"three", mode=0o600)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"three", 0o600)
    assert [*tmp_path.iterdir()] == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    put(path, b"one")
    with pytest.raises(TypeError), replaced(path) as file:
        file.writelines([b"half of t", None])  # type: ignore[list-item]
    assert (path.read_bytes(), [*tmp_path.iterdir()]) == (b"one", [path])


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "saved"
    target.write_bytes(b"precious")
    path.symlink_to(target)
    put(path, b"one")
    assert (target.read_bytes(), path.read_bytes(), path.is_symlink()) == (b"precious", b"one", False)


def test_a_link_is_not_opened(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "log"
    target.write_bytes(b"precious")
    path.symlink_to(target)
    with pytest.raises(OSError, match="it is a link, and links are not followed"):
        open_unlinked(path, os.O_RDWR | os.O_CREAT)
    assert target.read_bytes() == b"precious"


def test_the_name_of_the_new_file_cannot_be_guessed(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with replaced(tmp_path / "saved") as file:
            names += [path.name for path in tmp_path.iterdir() if path.name != "saved"]
            file.write(b"")
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"\.kueuecore-[0-9a-f]{24}", name) for name in names)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    put(path, b"one")
    reader.join()
    assert (read, stat.S_ISFIFO(path.stat().st_mode)) == ([b"one"], True)


def test_a_file_in_a_folder_of_somebody_else_is_written_in_place(tmp_path: Path, denies: Callable[[int], None]) -> None:
    path = tmp_path / "saved"
    path.write_bytes(b"a longer one")
    denies(errno.EACCES)
    check_replaceable(path)
    put(path, b"two")
    assert path.read_bytes() == b"two"
    path.chmod(0o644)
    put(path, b"three", mode=0o600)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"three", 0o600)
    with pytest.raises(PermissionError):
        check_replaceable(tmp_path / "other")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, denies: Callable[[int], None]) -> None:
    path = tmp_path / "saved"
    path.write_bytes(b"one")
    denies(errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        put(path, b"two")
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("name", [".", "..", "folder", "absent/file", "n" * 300, "file/below", "a\0b"])
def test_a_place_that_cannot_be_written_is_found_before(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=r"Is a dir|No such file|File name too long|Not a dir|null"):
        check_replaceable(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["new", "file", "link", "dangling", "/dev/null"])
def test_a_place_that_can_be_written_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"as it is")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("absent")
    before = sorted(tmp_path.rglob("*"))
    check_replaceable(tmp_path / name)
    assert (sorted(tmp_path.rglob("*")), (tmp_path / "file").read_bytes()) == (before, b"as it is")
