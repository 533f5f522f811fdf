"""Unpacks what is compressed with gzip, whatever its name, up to a limit."""

from __future__ import annotations

import errno
import gzip
import io
import zlib

__all__ = ["GZIP", "unpacked"]

GZIP = b"\x1f\x8b"
"""How compressed data begins."""
_CHUNK = 2**20


def unpacked(data: bytes, *, largest: int) -> bytes:
    """Return what compressed data holds.

    Args:
        data: The compressed data.
        largest: The most bytes that it may hold: little data may hold much.

    Raises:
        OSError: It is cut off or damaged, or holds more (EFBIG).

    Example:
        >>> unpacked(gzip.compress(b"queues"), largest=1 << 20)
        b'queues'
    """
    chunks: list[bytes] = []
    left = largest
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise OSError(errno.EFBIG, f"it has more than {largest >> 30} GiB once decompressed")
                chunks.append(chunk)
    except EOFError:
        raise OSError(errno.EINVAL, "the compressed file is cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise OSError(errno.EINVAL, f"the compressed file is damaged: {error}") from None
    return b"".join(chunks)
