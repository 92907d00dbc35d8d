"""The tree of an expression as text, in the form in which upstream's `jp parse` prints it."""

from __future__ import annotations

from typing import Final

from engine.lang.goquote import go_syntax

from .parser import Tree, parse

_NAMES: Final = {
    "and_expression": "ASTAndExpression",
    "comparator": "ASTComparator",
    "current": "ASTCurrentNode",
    "empty": "ASTEmpty",
    "expref": "ASTExpRef",
    "field": "ASTField",
    "filter_projection": "ASTFilterProjection",
    "flatten": "ASTFlatten",
    "function_expression": "ASTFunctionExpression",
    "identity": "ASTIdentity",
    "index": "ASTIndex",
    "index_expression": "ASTIndexExpression",
    "key_val_pair": "ASTKeyValPair",
    "literal": "ASTLiteral",
    "multi_select_dict": "ASTMultiSelectHash",
    "multi_select_list": "ASTMultiSelectList",
    "not_expression": "ASTNotExpression",
    "or_expression": "ASTOrExpression",
    "pipe": "ASTPipe",
    "projection": "ASTProjection",
    "slice": "ASTSlice",
    "subexpression": "ASTSubexpression",
    "value_projection": "ASTValueProjection",
}
_COMPARATORS: Final = {
    "eq": "tEQ", "ne": "tNE", "lt": "tLT", "lte": "tLTE", "gt": "tGT", "gte": "tGTE",
}  # fmt: skip


def outline(text: str) -> str:
    """Return the tree of an expression, one node or value a line. Raises ExpressionError.

    Upstream's form: children are indented by four, and the list of them is not closed.
    """
    lines: list[str] = []
    pending: list[Tree | str] = [parse(text)]
    indents = [0]
    while pending:
        node, indent = pending.pop(), indents.pop()
        if isinstance(node, str):
            lines.append(node)
            continue
        node = _in_pairs(node)
        spaces = " " * indent
        children = [] if node["type"] == "slice" else node["children"]
        lines.append(f"{spaces}{_NAMES[node['type']]} {{")
        value = _value(node)
        if value:
            lines.append(f"{spaces}  value: {value}")
        if children:
            lines.append(f"{spaces}  children: {{")
        pending += [f"{spaces}}}", *reversed(children)]
        indents += [0, *([indent + 4] * len(children))]
    return "\n".join(lines)


def _in_pairs(node: Tree) -> Tree:
    """Return a row of sub-expressions as nested pairs, which is how upstream holds them."""
    *front, last = node["children"] or [None]
    if node["type"] != "subexpression" or len(front) < 2:
        return node
    return {**node, "children": [{**node, "children": front}, last]}


def _value(node: Tree) -> str:
    kind = node["type"]
    if kind == "slice":
        shown = ", ".join("nil" if part is None else str(part) for part in node["children"])
        return f"[]*int{{{shown}}}"
    if kind == "comparator":
        return _COMPARATORS[node["value"]]
    if kind == "literal" and node["value"] is None:
        return ""
    return go_syntax(node["value"]) if node.get("value") is not None else ""
