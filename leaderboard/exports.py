"""Rows as files: CSV, Parquet and strict JSON with the same columns and values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import date
from typing import Any, Literal

import msgspec

from leaderboard.columns import Row, as_dict

Form = Literal["csv", "parquet", "json"]


def table_bytes(
    rows: Sequence[Row],
    form: str,
    columns: Sequence[str] | None = None,
    facts: dict[str, Any] | None = None,
) -> bytes:
    r"""Write rows as a file.

    Parameters
    ----------
    rows : sequence of Struct or mapping
    form : str
        ``csv``, ``parquet`` or ``json`` (a list of objects; null where there is no number).
    columns : sequence of str or None
        Fields, in order; all of the first row's by default.
    facts : dict or None
        Columns that are the same in every row.

    Raises
    ------
    ValueError
        For another form.

    Examples
    --------
    >>> table_bytes([{"a": 1, "b": None}], "csv")
    b'a,b\r\n1,\r\n'
    >>> table_bytes([{"a": 1, "b": None}], "json", facts={"level": 0.95})
    b'[{"a":1,"b":null,"level":0.95}]'
    """
    found = [as_dict(row) for row in rows]
    names = list(columns or (found[0] if found else ()))
    records = [{name: row.get(name) for name in names} | (facts or {}) for row in found]
    if form == "json":
        return msgspec.json.encode(records)
    if form == "parquet":
        return _parquet(records)
    if form != "csv":
        raise ValueError(f"no form {form!r}: csv, parquet or json")
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*names, *(facts or {})])
    writer.writeheader()
    writer.writerows({k: _cell(v) for k, v in record.items()} for record in records)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _parquet(records: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), sink, compression="zstd")
    return sink.getvalue()
