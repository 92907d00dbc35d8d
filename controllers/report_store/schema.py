"""The tables of the store, the same in SQLite and PostgreSQL.

`reports` has one row for each report, `results` and `labels` what reports are chosen by, `changes` what happened lately, `history`
by how much each day changed the number of results, `counters` the version that was given last and the last that is forgotten,
`identity` the certificate that all stores of the database show.
Namespaces are empty for reports of the cluster. Keys are compared byte by byte. Indexes of results go on with the key of
the report, so that a page of reports that hold a value is read in order and no further than its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS counters (name {text} PRIMARY KEY, value BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reports (
        namespace {text} NOT NULL, name {text} NOT NULL, version BIGINT NOT NULL,
        scope_kind {text} NOT NULL, scope_name {text} NOT NULL, scope_namespace {text} NOT NULL,
        scope_uid {text} NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (namespace, name))""",
    """CREATE TABLE IF NOT EXISTS results (
        namespace {text} NOT NULL, name {text} NOT NULL, place BIGINT NOT NULL, policy {text} NOT NULL,
        rule {text} NOT NULL, result {text} NOT NULL, severity {text} NOT NULL, category {text} NOT NULL,
        source {text} NOT NULL, PRIMARY KEY (namespace, name, place))""",
    """CREATE TABLE IF NOT EXISTS labels (
        namespace {text} NOT NULL, name {text} NOT NULL, label {text} NOT NULL, value {text} NOT NULL,
        PRIMARY KEY (namespace, name, label))""",
    """CREATE TABLE IF NOT EXISTS changes (
        version BIGINT PRIMARY KEY, at BIGINT NOT NULL, namespace {text} NOT NULL, name {text} NOT NULL,
        before {bytes}, body {bytes})""",
    """CREATE TABLE IF NOT EXISTS history (
        day {text} NOT NULL, namespace {text} NOT NULL, policy {text} NOT NULL, severity {text} NOT NULL,
        result {text} NOT NULL, delta BIGINT NOT NULL,
        PRIMARY KEY (namespace, day, policy, severity, result))""",
    "CREATE INDEX IF NOT EXISTS reports_by_scope ON reports (scope_kind, scope_name)",
    "CREATE INDEX IF NOT EXISTS results_by_policy ON results (policy, namespace, name, result, severity)",
    "CREATE INDEX IF NOT EXISTS results_by_result ON results (result, namespace, name, severity)",
    "CREATE INDEX IF NOT EXISTS results_by_severity ON results (severity, namespace, name, result)",
    "CREATE INDEX IF NOT EXISTS labels_by_value ON labels (label, value, namespace, name)",
    "CREATE INDEX IF NOT EXISTS changes_by_place ON changes (namespace, name, version)",
    "CREATE INDEX IF NOT EXISTS changes_by_time ON changes (at)",
    "CREATE TABLE IF NOT EXISTS identity (name {text} PRIMARY KEY, value {bytes} NOT NULL)",
    "INSERT INTO counters VALUES ('version', 1), ('forgotten', 1) ON CONFLICT (name) DO NOTHING",
)


def statements(text: str, binary: str) -> Iterator[str]:
    """Yield what makes the tables, with the database's names for texts and bytes."""
    for one in _TABLES:
        yield one.format(text=text, bytes=binary)
