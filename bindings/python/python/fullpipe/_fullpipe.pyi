from typing import Any, Dict, List, Optional, final

__version__: str

@final
class Table:
    """A table in Arrow's columns, read by others without a copy."""

    @property
    def column_names(self) -> List[str]: ...
    @property
    def units(self) -> Dict[str, str]:
        """The columns that have a unit, with it: bit/s, us, s, B."""
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Captures:
    """What captures held."""

    @property
    def connections(self) -> Table:
        """A row for each connection; the columns of ``fullpipe read --parquet``."""
    @property
    def timelines(self) -> Table:
        """A row for each sample of each judged direction; times in us, sizes in bytes."""
    @property
    def problems(self) -> Table:
        """A row for each thing that could not be read."""

def read(
    source: object, filter: Optional[str] = None, threads: Optional[int] = None, timelines: bool = True
) -> Captures: ...
def diagnose(source: object, filter: Optional[str] = None, threads: Optional[int] = None) -> Dict[str, Any]: ...
def document(words: List[str]) -> Dict[str, Any]: ...
def bdp(rate: str, rtt: str) -> int: ...
