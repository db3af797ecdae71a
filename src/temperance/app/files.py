"""Files that are written atomically."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file atomically: readers, also after a kill, find the old or the new content.

    Text is stored as UTF-8, and permissions are those of any new file.
    """
    target = Path(path).resolve()  # a symbolic link is kept
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".temperance-")
    try:
        with open(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
