"""One number for all verdicts of an archive, whatever the order, the files and the workers they went through.

The columns of a connection are written as text, apart from its number in its capture and from where the archive keeps it; the
SHA-256 digests of all rows are added up modulo 2^256. A row that is lost, doubled or changed changes the sum.
"""

from __future__ import annotations

import hashlib
from typing import Dict, List

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .store import partition

APART = {"number", "day", "site", "capture"}
"""Columns that say where a row is, not what it says."""


def digest(paths: List[str]) -> str:
    """The digest of all rows of the files."""
    total = 0
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=16_384):
            total += _sum(batch, partition(path))
    return f"{total % (1 << 256):064x}"


def _sum(batch: pa.RecordBatch, folders: Dict[str, str]) -> int:
    columns_by_name = {name: _text(batch.column(name)) for name in batch.schema.names}
    columns_by_name.update((name, pa.array([value] * len(batch), pa.string())) for name, value in folders.items())
    columns = [columns_by_name[name] for name in sorted(columns_by_name) if name not in APART]
    lines = pc.binary_join_element_wise(*columns, "\x1f", null_handling="replace", null_replacement="\x00")
    return sum(int.from_bytes(hashlib.sha256(line.encode()).digest(), "big") for line in lines.to_pylist())


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        # By its bits: no two versions of a library need agree on how a fraction is written.
        column = pa.Array.from_buffers(pa.int64(), len(column), column.buffers(), column.null_count, column.offset)
    return column.cast(pa.string())
