"""What a database holds: tables with columns, keys, indexes and comments, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from engine.sql.allowance import Allowance
from engine.sql.connecting import Link
from engine.sql.failures import FAILURES, described
from engine.sql.question import Question
from engine.sql.session import begin

__all__ = ("Catalogue", "Table", "catalogue")

_KINDS: Final = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}
_SCHEMAS: Final = """
SELECT nspname::text FROM pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND has_schema_privilege(oid, 'USAGE')
ORDER BY nspname LIMIT 200
"""
_TABLES: Final = """
SELECT c.oid::bigint AS oid, c.relname::text AS name, c.relkind::text AS kind,
       CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END AS row_estimate,
       obj_description(c.oid, 'pg_class') AS comment
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND c.relname::text LIKE $2 AND c.relname::text COLLATE "C" > $3 COLLATE "C"
ORDER BY c.relname::text COLLATE "C" LIMIT $4
"""
_COLUMNS: Final = """
SELECT a.attrelid::bigint AS oid, a.attname::text AS column_name, format_type(a.atttypid, a.atttypmod) AS data_type,
       pg_get_expr(d.adbin, d.adrelid) AS column_default,
       CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
       col_description(a.attrelid, a.attnum) AS comment,
       a.attidentity <> '' AS is_identity, a.attgenerated <> '' AS is_generated
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_KEYS: Final = """
SELECT k.conrelid::bigint AS oid, k.contype::text AS kind, pg_get_constraintdef(k.oid) AS definition,
       (SELECT array_agg(a.attname::text ORDER BY u.place) FROM unnest(k.conkey) WITH ORDINALITY u(number, place)
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number) AS columns,
       CASE WHEN k.confrelid <> 0 THEN k.confrelid::regclass::text END AS target,
       (SELECT array_agg(a.attname::text ORDER BY u.place) FROM unnest(k.confkey) WITH ORDINALITY u(number, place)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number) AS target_columns
FROM pg_constraint k WHERE k.conrelid = ANY($1::oid[]) AND k.contype IN ('p', 'f', 'u', 'c')
ORDER BY k.conrelid, k.contype, k.conname
"""
_INDEXES: Final = """
SELECT i.indrelid::bigint AS oid, pg_get_indexdef(i.indexrelid) AS definition
FROM pg_index i WHERE i.indrelid = ANY($1::oid[]) AND NOT i.indisprimary
ORDER BY i.indrelid, i.indexrelid
"""


class Table(msgspec.Struct, frozen=True):
    """One table.

    :ivar definitions: of its columns, in their order
    :ivar attributes: what else there is to say of it: kind, keys, indexes, comment, row estimate
    """

    name: str
    definitions: list[dict[str, Any]]
    attributes: dict[str, Any]


class Catalogue(msgspec.Struct, frozen=True):
    """The answer.

    :ivar next_after: the name after which more follow; None: that was all
    """

    schemas: list[str]
    tables: list[Table]
    next_after: str | None


async def catalogue(link: Link, question: Question, allowance: Allowance) -> Catalogue:
    """Read what there is, as much as there is room for. :raises SqlError: if it cannot be read"""
    await begin(link, allowance, read_only=True)
    try:
        link.watch.begin()
        fetch = link.connection.fetch
        schemas = [row[0] for row in await fetch(_SCHEMAS)]
        found = await fetch(_TABLES, question.schema, question.pattern, question.after, question.limit + 1)
        shown = found[: question.limit]
        numbers = [table["oid"] for table in shown]
        parts = [_by_table(await fetch(sql, numbers)) for sql in (_COLUMNS, _KEYS, _INDEXES)]
        await link.connection.execute("ROLLBACK")
    except FAILURES as error:
        raise described(error, link.watch, allowance.statement) from error
    return _fitting(schemas, shown, parts, len(found) > len(shown), allowance.size)


def _by_table(rows: Sequence[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row["oid"], []).append(row)
    return found


def _fitting(schemas: list[str], shown: Sequence[Any], parts: list[Any], more: bool, size: int) -> Catalogue:
    tables: list[Table] = []
    taken = 0
    for row in shown:
        of_columns, of_keys, of_indexes = (part.get(row["oid"], []) for part in parts)
        table = Table(row["name"], [_column(each) for each in of_columns], _attributes(row, of_keys, of_indexes))
        taken += len(msgspec.json.encode(table))
        if taken > size and tables:
            more = True
            break
        tables.append(table)
    return Catalogue(schemas, tables, tables[-1].name if more and tables else None)


def _column(row: Any) -> dict[str, Any]:
    said = {name: row[name] for name in ("column_name", "data_type", "column_default", "is_nullable")}
    if row["comment"]:
        said["comment"] = row["comment"]
    return said | {name: True for name in ("is_identity", "is_generated") if row[name]}


def _attributes(row: Any, keys: list[Any], indexes: list[Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": _KINDS.get(row["kind"], row["kind"]), "row_estimate": row["row_estimate"]}
    if row["comment"]:
        said["comment"] = row["comment"]
    said["primary_key"] = next((key["columns"] for key in keys if key["kind"] == "p"), [])
    said["foreign_keys"] = [
        {"columns": key["columns"], "references": key["target"], "referenced_columns": key["target_columns"]}
        for key in keys
        if key["kind"] == "f"
    ]
    said["unique"] = [key["columns"] for key in keys if key["kind"] == "u"]
    said["checks"] = [key["definition"] for key in keys if key["kind"] == "c"]
    said["indexes"] = [index["definition"] for index in indexes]
    return said
