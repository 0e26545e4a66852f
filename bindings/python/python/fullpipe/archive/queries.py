"""Questions to an archive, answered by DuckDB. What is not here: how an answer is shown (``__main__``, ``page``).

Lost is the time for which the limiter held the direction that carried more: its share of the time in which that one sent.
Where an application or the full path was the limit, nothing was lost that a setting gives back; these are left out unless
``all`` is asked for.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import date
from typing import Any, Dict, List, Optional, Tuple

from .._errors import made
from .store import Store

@dataclass(frozen=True)
class Ask:
    """What part of the archive is asked: days (``until`` not included), a site, how many rows of the answer."""

    since: Optional[date] = None
    until: Optional[date] = None
    site: Optional[str] = None
    top: Optional[int] = 20
    all: bool = False
    at: Optional[date] = None


@dataclass(frozen=True)
class Answer:
    """A table: the names of its columns, with units, and its rows."""

    name: str
    title: str
    columns: List[str]
    rows: List[Tuple[Any, ...]]

    def document(self) -> Dict[str, Any]:
        return {"schema": "fullpipe/2", "command": "archive query", "query": self.name, "title": self.title,
                "rows": [dict(zip(self.columns, row)) for row in self.rows]}


@dataclass(frozen=True)
class Query:
    """A question: its title, its SQL, and the sentence of the help."""

    title: str
    help: str
    sql: str
    columns: List[str]


LIMITERS = Query(
    "Seconds lost by limiter and destination",
    "seconds lost by limiter and destination, the receiver of the direction that carried more",
    """SELECT limiter, receiver, count(*), sum(lost_s), sum(bytes)::UBIGINT, median(rate_bps)
       FROM asked WHERE liftable GROUP BY ALL ORDER BY 4 DESC, 1, 2""",
    ["limiter", "destination", "connections", "lost_s", "bytes", "median_rate_bps"],
)
# An answer may have the option only where the SYN had it (RFC 7323, section 2.2): what is then lacking on both sides is a's doing.
UNSCALED = Query(
    "Hosts whose SYNs carry no window scale",
    "hosts that sent SYNs without the window-scale option, or left it out of the answer to one that has it, and what that cost",
    """WITH ends AS (
         SELECT host_a AS host, syn_seen_a AS seen, syn_seen_a AND window_scale_a IS NULL AS unscaled, detail, lost_s FROM asked
         UNION ALL
         SELECT host_b, syn_seen_b AND window_scale_a IS NOT NULL,
                syn_seen_b AND window_scale_a IS NOT NULL AND window_scale_b IS NULL, detail, lost_s FROM asked)
       SELECT host, count(*) FILTER (unscaled), count(*) FILTER (seen),
              coalesce(sum(lost_s) FILTER (unscaled AND detail = 'scaling_absent'), 0)
       FROM ends GROUP BY host HAVING count(*) FILTER (unscaled) > 0 ORDER BY 4 DESC, 2 DESC, 1""",
    ["host", "syns_without_scale", "syns_seen", "lost_s"],
)
PREFIXES = Query(
    "Worst prefixes",
    "receivers by /24 (IPv4) or /48 (IPv6), those first that lost most",
    """SELECT prefix, count(DISTINCT receiver), count(*), sum(lost_s), mode(limiter), sum(bytes)::UBIGINT
       FROM asked JOIN prefixes ON prefixes.host = asked.receiver WHERE liftable GROUP BY prefix ORDER BY 4 DESC, 1""",
    ["prefix", "hosts", "connections", "lost_s", "usual_limiter", "bytes"],
)
CHANGE = Query(
    "Before and after",
    "what each limiter cost per day before the day of --at, and from it on",
    """WITH spans AS (SELECT count(DISTINCT day) FILTER (day < $at) AS before, count(DISTINCT day) FILTER (day >= $at) AS after
                      FROM asked)
       SELECT limiter, count(*) FILTER (day < $at), count(*) FILTER (day >= $at),
              coalesce(sum(lost_s) FILTER (day < $at), 0) / nullif(any_value(before), 0),
              coalesce(sum(lost_s) FILTER (day >= $at), 0) / nullif(any_value(after), 0),
              median(rate_bps) FILTER (day < $at), median(rate_bps) FILTER (day >= $at)
       FROM asked, spans WHERE liftable GROUP BY limiter
       ORDER BY abs(coalesce(sum(lost_s) FILTER (day < $at), 0) / nullif(any_value(before), 0)
                    - coalesce(sum(lost_s) FILTER (day >= $at), 0) / nullif(any_value(after), 0)) DESC NULLS LAST, 1""",
    ["limiter", "connections_before", "connections_after", "lost_s_per_day_before", "lost_s_per_day_after",
     "median_rate_bps_before", "median_rate_bps_after"],
)
DAYS = Query(
    "Seconds by day and limiter",
    "seconds for which each limiter held, day by day",
    "SELECT day, limiter, count(*), sum(lost_s) FROM asked WHERE liftable GROUP BY ALL ORDER BY 1, 4 DESC, 2",
    ["day", "limiter", "connections", "lost_s"],
)

QUERIES: Dict[str, Query] = {"limiters": LIMITERS, "unscaled": UNSCALED, "prefixes": PREFIXES, "change": CHANGE, "days": DAYS}

ASKED = """SELECT *,
    CASE WHEN direction = 'a->b' THEN host_b ELSE host_a END AS receiver,
    share * sending_seconds AS lost_s,
    ($all OR limiter NOT IN ('application', 'path', 'insufficient_evidence')) AS liftable
  FROM (SELECT *, regexp_extract(a, '^\\[?(.*?)\\]?:[0-9]+$', 1) AS host_a, regexp_extract(b, '^\\[?(.*?)\\]?:[0-9]+$', 1) AS host_b
        FROM read_parquet($paths, union_by_name = true, hive_partitioning = true,
                          hive_types = {'day': VARCHAR, 'site': VARCHAR, 'limiter': VARCHAR}))
  WHERE ($since IS NULL OR day >= $since) AND ($until IS NULL OR day < $until) AND ($site IS NULL OR site = $site)"""


class Asking:
    """An archive that is asked, as often as one likes."""

    def __init__(self, store: Store, ask: Ask) -> None:
        try:
            import duckdb
        except ImportError:
            raise made("unsupported", "the package duckdb is not installed, which answers queries", "python -m pip install duckdb", 21)
        self.ask, self.duckdb, self.store = ask, duckdb.connect(), store

    def answer(self, name: str) -> Answer:
        return self.store.asked(lambda paths: self._answer(name, paths))

    def _answer(self, name: str, paths: List[str]) -> Answer:
        query = QUERIES[name]
        if name == "change" and self.ask.at is None:
            raise made("usage", "`change` needs --at DATE", "give the day of the change: --at 2026-11-24", 2)
        title = f"{query.title} {self.ask.at}" if name == "change" else query.title
        if not paths:
            return Answer(name, title, query.columns, [])
        ask, sql = self.ask, query.sql
        facts = {"paths": paths, "since": _text(ask.since), "until": _text(ask.until), "site": ask.site, "all": ask.all}
        if name == "prefixes":
            hosts = self.duckdb.execute(f"SELECT DISTINCT receiver FROM ({ASKED})", facts).fetchall()
            self.duckdb.execute("CREATE OR REPLACE TEMP TABLE prefixes (host VARCHAR, prefix VARCHAR)")
            rows = [(host, prefix(host)) for (host,) in hosts]
            for start in range(0, len(rows), 1000):
                self.duckdb.executemany("INSERT INTO prefixes VALUES (?, ?)", rows[start : start + 1000])
        if name == "change":
            facts["at"] = _text(self.ask.at)
        limit = f" LIMIT {int(self.ask.top)}" if self.ask.top else ""
        sql = f", {sql[5:]}" if sql.startswith("WITH ") else f" {sql}"
        rows = self.duckdb.execute(f"WITH asked AS ({ASKED}){sql}{limit}", facts).fetchall()
        return Answer(name, title, query.columns, rows)


def prefix(host: str) -> str:
    """The network that a host is counted with."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False))


def _text(day: Optional[date]) -> Optional[str]:
    return day.isoformat() if day else None
