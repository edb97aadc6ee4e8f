"""The statements of a memory: its files, their history, and what a search looks at."""

from __future__ import annotations

from typing import Final

from engine.text_search import SearchedTexts
from engine.tool_sql import Sql

__all__ = (
    "DELETED",
    "DELETED_BELOW",
    "DROPPED",
    "EXTENT",
    "FORMER",
    "GONE",
    "INSERTED",
    "KEPT",
    "KEPT_BELOW",
    "MARKED",
    "MARKED_BELOW",
    "MOVED",
    "MOVED_BELOW",
    "OLDEST",
    "PAGE",
    "READ",
    "REFOUND_BELOW",
    "RESTORABLE_BELOW",
    "RESTORED_BELOW",
    "SEARCHED",
    "STANDING",
    "TAKEN",
    "UNFOUND",
    "UNFOUND_BELOW",
    "UPDATED",
    "VERSIONS_OF",
)

STANDING: Final = Sql(
    "SELECT 'sums' AS kind, token AS text, entries AS a, size AS b, past AS c, last AS d, CAST(NULL AS TEXT) AS e "
    "FROM tool_ledgers WHERE {here} "
    "UNION ALL SELECT 'file', path, version, size, 0, 0, content FROM memory_files WHERE {here} AND path = :path "
    "UNION ALL SELECT 'past', path, version, size, 0, 0, NULL FROM memory_history WHERE {here} AND path = :path "
    "UNION ALL SELECT 'gone', older.path, older.version, older.size, 0, 0, NULL FROM "
    "(SELECT path, version FROM memory_history WHERE {here} AND content IS NULL AND changed_at < :before "
    "ORDER BY changed_at LIMIT 100) AS gone "
    "JOIN memory_history AS older ON older.tenant = :tenant AND older.tool_id = :tool_id "
    "AND older.path = gone.path AND older.version <= gone.version"
)
"""All that a change of one file is decided on: the sums, the file, its versions, and versions too old to be kept."""

READ: Final = Sql(
    "SELECT content, size, version, updated_at FROM memory_files WHERE {here} AND path = :path", moments=("updated_at",)
)
TAKEN: Final = Sql(
    "SELECT 'past' AS kind, :path AS path, coalesce(max(version), 0) AS version FROM memory_history "
    "WHERE {here} AND path = :path "
    "UNION ALL SELECT 'file', path, version FROM memory_files WHERE {here} AND path IN :keys "
    "UNION ALL SELECT 'below', path, version FROM "
    "(SELECT path, version FROM memory_files WHERE {here} AND path >= :start AND path < :stop LIMIT 1) AS below"
)
"""What stands in the way of a new file or directory, and the last version that its path had."""

PAGE: Final = Sql(
    "SELECT path FROM memory_files WHERE {here} AND path >= :start AND path < :stop AND path > :after "
    "ORDER BY path LIMIT :limit"
)
EXTENT: Final = Sql(
    "SELECT count(*), coalesce(sum(size), 0), coalesce(max(length(path)), 0) "
    "FROM memory_files WHERE {here} AND path >= :start AND path < :stop"
)
SEARCHED: Final = SearchedTexts("memory_files", "path")

INSERTED: Final = Sql(
    "INSERT INTO memory_files (tenant, tool_id, path, content, size, version, created_at, updated_at) "
    "SELECT :tenant, :tool_id, :path, :content, :size, :version, :now, :now WHERE {holds}"
)
UPDATED: Final = Sql(
    "UPDATE memory_files SET content = :content, size = :size, version = :version, updated_at = :now "
    "WHERE {here} AND path = :path AND {holds}"
)
DELETED: Final = Sql("DELETE FROM memory_files WHERE {here} AND path = :path AND {holds}")
DELETED_BELOW: Final = Sql("DELETE FROM memory_files WHERE {here} AND path >= :start AND path < :stop AND {holds}")
MOVED: Final = Sql(
    "UPDATE memory_files SET path = :new_path, version = :version, updated_at = :now "
    "WHERE {here} AND path = :path AND {holds}"
)
MOVED_BELOW: Final = Sql(
    "UPDATE memory_files SET path = :new_start || substr(path, :offset), updated_at = :now, version = 1 + "
    "(SELECT CASE WHEN max(past.version) > memory_files.version THEN max(past.version) ELSE memory_files.version END "
    "FROM memory_history AS past WHERE past.tenant = :tenant AND past.tool_id = :tool_id "
    "AND past.path = :new_start || substr(memory_files.path, :offset)) "
    "WHERE {here} AND path >= :start AND path < :stop AND {holds}"
)
"""A version is never given to a path twice, whatever was there before."""

_HISTORY: Final = "tenant, tool_id, path, version, content, size, changed_at, conversation_id, by_call"
_KEPT: Final = (
    "INSERT INTO memory_history ({columns}) SELECT tenant, tool_id, path, version, content, size, updated_at, "
    ":conversation_id, :by_call FROM memory_files WHERE {here} AND {which} AND {holds}"
)
_MARKED: Final = (
    "INSERT INTO memory_history ({columns}) SELECT tenant, tool_id, path, version + 1, NULL, 0, :now, "
    ":conversation_id, :by_call FROM memory_files WHERE {here} AND {which} AND {holds}"
)
_ONE: Final = "path = :path"
_WITHIN: Final = "path >= :start AND path < :stop"
KEPT: Final = Sql(_KEPT, columns=_HISTORY, which=_ONE)
KEPT_BELOW: Final = Sql(_KEPT, columns=_HISTORY, which=_WITHIN)
MARKED: Final = Sql(_MARKED, columns=_HISTORY, which=_ONE)
MARKED_BELOW: Final = Sql(_MARKED, columns=_HISTORY, which=_WITHIN)
DROPPED: Final = Sql("DELETE FROM memory_history WHERE {here} AND path = :path AND version = :version AND {holds}")

_IS_FILE: Final = (
    "EXISTS (SELECT 1 FROM memory_files AS file WHERE file.tenant = :tenant AND file.tool_id = :tool_id "
    "AND file.path = {path})"
)
_IS_NOW: Final = _IS_FILE.replace("{path}", "memory_history.path AND file.version = memory_history.version")
_VERSION: Final = (
    "path, version, size, CASE WHEN content IS NULL THEN 1 ELSE 0 END AS deleted, changed_at, conversation_id, by_call"
)
VERSIONS_OF: Final = Sql(
    "SELECT {version} FROM memory_history WHERE {here} AND path = :path ORDER BY version DESC LIMIT :limit",
    moments=("changed_at",),
    version=_VERSION,
)
GONE: Final = Sql(
    "SELECT {version} FROM memory_history WHERE {here} AND content IS NULL AND path >= :start AND path < :stop "
    "AND NOT {is_file} ORDER BY changed_at DESC LIMIT :limit",
    moments=("changed_at",),
    version=_VERSION,
    is_file=_IS_FILE.replace("{path}", "memory_history.path"),
)
"""Files that are deleted, or have another path now, the last first."""

FORMER: Final = Sql(
    "SELECT version, content FROM memory_history WHERE {here} AND path = :path AND content IS NOT NULL "
    "AND version >= :version AND version <= :upto ORDER BY version DESC LIMIT 1"
)
OLDEST: Final = Sql(
    "SELECT path, version, size FROM memory_history WHERE {here} AND size > 0 AND NOT {is_now} "
    "ORDER BY changed_at LIMIT 100",
    is_now=_IS_NOW,
)

_BEFORE_IT_WENT: Final = (
    "FROM memory_history AS gone JOIN memory_history AS former ON former.tenant = gone.tenant "
    "AND former.tool_id = gone.tool_id AND former.path = gone.path AND former.version = gone.version - 1 "
    "WHERE gone.tenant = :tenant AND gone.tool_id = :tool_id AND gone.path >= :start AND gone.path < :stop "
    "AND gone.content IS NULL AND gone.changed_at = :changed_at AND former.content IS NOT NULL"
)
RESTORABLE_BELOW: Final = Sql("SELECT count(*), coalesce(sum(former.size), 0) {it}", it=_BEFORE_IT_WENT)
RESTORED_BELOW: Final = Sql(
    "INSERT INTO memory_files (tenant, tool_id, path, content, size, version, created_at, updated_at) "
    "SELECT gone.tenant, gone.tool_id, gone.path, former.content, former.size, gone.version + 1, :now, :now "
    "{it} AND {holds}",
    it=_BEFORE_IT_WENT,
)

_BITS: Final = tuple(f"bits{number}" for number in range(12))
_RENAMED: Final = ":new_start || substr(key, :offset)"
UNFOUND: Final = Sql(
    "DELETE FROM text_index WHERE tenant = :tenant AND space = :space AND key = :path AND {holds} AND NOT {is_file}",
    is_file=_IS_FILE.replace("{path}", ":path"),
)
UNFOUND_BELOW: Final = Sql(
    "DELETE FROM text_index WHERE tenant = :tenant AND space = :space AND key >= :start AND key < :stop "
    "AND {holds} AND {is_file}",
    is_file=_IS_FILE.replace("{path}", "text_index.key"),
)
REFOUND_BELOW: Final = Sql(
    "INSERT INTO text_index (tenant, space, key, part, {bits}) SELECT tenant, space, {renamed}, part, {more} "
    "FROM text_index WHERE tenant = :tenant AND space = :space AND key >= :start AND key < :stop "
    "AND {holds} AND {is_file}",
    bits=", ".join(_BITS),
    more=", ".join(f"CASE WHEN part = 0 THEN {name} | :{name} ELSE {name} END" for name in _BITS),
    renamed=_RENAMED,
    is_file=_IS_FILE.replace("{path}", _RENAMED),
)
"""What deleted files said stays in the index, where it does no harm, until they cannot come back any more."""
