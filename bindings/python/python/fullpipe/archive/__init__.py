"""Archives of captures: every connection of any number of captures as a row of a Parquet data set, and questions to it.

``python -m fullpipe.archive INPUT... --out DIR`` reads captures from folders and object stores, on Ray or with processes of this
machine; ``python -m fullpipe.archive query NAME DIR`` asks. It needs the extra ``archive`` of the package (pyarrow, duckdb,
ray); Ray may be missing.
"""

from ._cli import main

__all__ = ["main"]
