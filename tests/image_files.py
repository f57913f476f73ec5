"""Small fake image collections: the published layouts, invented pixels."""

import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def idx_images(pixels: np.ndarray) -> bytes:
    """Return an idx file of images (n, 784)."""
    return struct.pack(">4I", 2051, len(pixels), 28, 28) + pixels.tobytes()


def idx_labels(labels: np.ndarray) -> bytes:
    """Return an idx file of labels."""
    return struct.pack(">2I", 2049, len(labels)) + labels.astype(np.uint8).tobytes()


def idx_paths(
    folder: Path, names: tuple[str, ...], labels: np.ndarray, pixels: np.ndarray
) -> dict[str, Path]:
    """Write images and labels of each part; a part's files have the same content."""
    for name in names:
        images = name.endswith("-images")
        data = idx_images(pixels) if images else idx_labels(labels)
        (folder / name).write_bytes(data)
    return {name: folder / name for name in names}


def tiny(labels: np.ndarray, pixels: np.ndarray, coarse: bool = False) -> bytes:
    """Return records of the binary version: labels, then red, green and blue."""
    columns = [labels[:, None], pixels]
    columns = [np.zeros((len(labels), 1)), *columns] if coarse else columns
    return np.hstack(columns).astype(np.uint8).tobytes()


def tar(files: Mapping[str, bytes], folder: str = "batches") -> bytes:
    """Return an archive of ``files``, each in a folder of its own."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()
