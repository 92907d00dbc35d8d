"""Tokens to a tree, by upstream's grammar and with its error texts.

Built on the parser of the `jmespath` package, whose grammar is the same up to a few points: errors inside a leading
`[n` are swallowed there (the tree then holds a node that fails when evaluated), a slice may have a third colon, and
indexes never merge. Precedence, that of `!` included (row V-23), is the package's.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jmespath import ast, parser

from .errors import ExpressionError
from .gojson import GoJsonError, decode

Tree = dict[str, Any]
"""A node of the package's tree: `type`, `children` and mostly `value`."""

MAX_NESTING: Final = 100
"""How deep brackets may nest; bounds the recursion of parser and evaluation."""
MAX_LENGTH: Final = 100_000
_MAX_INDEX: Final = 2**63

_NAMES: Final = {
    "rbracket": "tRbracket", "rparen": "tRparen", "lparen": "tLparen", "lbracket": "tLbracket",
    "lbrace": "tLbrace", "rbrace": "tRbrace", "or": "tOr", "and": "tAnd", "pipe": "tPipe", "dot": "tDot",
    "star": "tStar", "filter": "tFilter", "flatten": "tFlatten", "number": "tNumber", "comma": "tComma",
    "colon": "tColon", "lt": "tLT", "lte": "tLTE", "gt": "tGT", "gte": "tGTE", "eq": "tEQ", "ne": "tNE",
    "unquoted_identifier": "tUnquotedIdentifier", "quoted_identifier": "tQuotedIdentifier",
    "json_literal": "tJSONLiteral", "string_literal": "tStringLiteral", "current": "tCurrent",
    "expref": "tExpref", "not": "tNot", "unknown": "tUnknown", "eof": "tEOF",
}  # fmt: skip


def parse(text: str) -> Tree:
    """Return the tree of an expression. Raises ExpressionError, with upstream's text where upstream has one."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression is longer than {MAX_LENGTH} characters")
    return _Parser().tree(text)


class _Parser(parser.Parser):  # type: ignore[misc] # the package has no type hints
    BINDING_POWER: Final = {
        **parser.Parser.BINDING_POWER,
        "unknown": 0,
        "json_literal": 0,
        "string_literal": 0,
    }

    def tree(self, text: str) -> Tree:
        self._tokens: list[Token] = tokenize(text)
        self._index = 0
        self._depth = 0
        tree: Tree = self._expression(0)
        if self._current_token() != "eof":
            self._refuse(f"Unexpected token at the end of the expression: {self._current_name()}")
        return tree

    def _expression(self, binding_power: int = 0) -> Tree:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ExpressionError(f"the expression nests deeper than {MAX_NESTING} levels")
        tree: Tree = super()._expression(binding_power)
        self._depth -= 1
        return tree

    def _token_nud_json_literal(self, token: Token) -> Tree:
        try:
            tree: Tree = ast.literal(decode(token["value"]))
        except GoJsonError as error:
            raise ExpressionError(str(error)) from None
        return tree

    def _token_nud_string_literal(self, token: Token) -> Tree:
        tree: Tree = ast.literal(token["value"])
        return tree

    def _token_nud_quoted_identifier(self, token: Token) -> Tree:
        if self._current_token() == "lparen":
            self._refuse("Can't have quoted identifier as function name.")
        tree: Tree = ast.field(token["value"])
        return tree

    def _token_nud_lbracket(self, token: Token) -> Tree:
        if self._current_token() not in ("number", "colon"):
            tree: Tree = super()._token_nud_lbracket(token)
            return tree
        try:
            right = self._parse_index_expression()
        except ExpressionError:
            return {"type": "empty", "children": []}
        return self._project_if_slice(ast.identity(), right)

    def _token_led_lbracket(self, left: Tree) -> Tree:
        if self._current_token() in ("number", "colon"):
            return self._project_if_slice(left, self._parse_index_expression())
        self._match("star")
        self._match("rbracket")
        right = self._parse_projection_rhs(self.BINDING_POWER["star"])
        tree: Tree = ast.projection(left, right)
        return tree

    def _token_led_lparen(self, left: Tree) -> Tree:
        if left["type"] != "field":
            self._refuse("Invalid function name")
        tree: Tree = super()._token_led_lparen(left)
        return tree

    def _project_if_slice(self, left: Tree, right: Tree) -> Tree:
        tree: Tree = super()._project_if_slice(left, right)
        return tree

    def _parse_index_expression(self) -> Tree:
        if self._lookahead(0) == "colon" or self._lookahead(1) == "colon":
            return self._parse_slice_expression()
        tree: Tree = ast.index(self._integer())
        self._advance()
        self._match("rbracket")
        return tree

    def _parse_slice_expression(self) -> Tree:
        parts: list[int | None] = [None, None, None]
        colons = 0
        while self._current_token() != "rbracket" and colons < len(parts):
            if self._current_token() == "colon":
                colons += 1
            elif self._current_token() == "number":
                parts[colons] = self._integer()
            else:
                self._refuse(f"Expected tColon or tNumber, received: {self._current_name()}")
            self._advance()
        self._match("rbracket")
        tree: Tree = ast.slice(*parts)
        return tree

    def _integer(self) -> int:
        text = self._lookahead_token(0)["value"]
        if text == "-":
            raise ExpressionError('strconv.Atoi: parsing "-": invalid syntax')
        if (
            len(text.lstrip("-0")) > len(str(_MAX_INDEX))
            or not -_MAX_INDEX <= int(text) < _MAX_INDEX
        ):
            raise ExpressionError(f'strconv.Atoi: parsing "{text}": value out of range')
        return int(text)

    def _parse_dot_rhs(self, binding_power: int) -> Tree:
        kind = self._current_token()
        if kind not in ("quoted_identifier", "unquoted_identifier", "star", "lbracket", "lbrace"):
            self._refuse("Expected identifier, lbracket, or lbrace")
        tree: Tree = super()._parse_dot_rhs(binding_power)
        return tree

    def _error_nud_token(self, token: Token) -> None:
        if token["type"] == "eof":
            self._refuse("Incomplete expression")
        self._refuse(f"Invalid token: {_NAMES[token['type']]}")

    def _error_led_token(self, token: Token) -> None:
        self._refuse(f"Unexpected token: {_NAMES[token['type']]}")

    def _match(self, token_type: str) -> None:
        if self._current_token() != token_type:
            self._refuse(f"Expected {_NAMES[token_type]}, received: {self._current_name()}")
        self._advance()

    def _match_multiple_tokens(self, token_types: list[str]) -> None:
        if self._current_token() not in token_types:
            self._refuse("Expected tQuotedIdentifier or tUnquotedIdentifier")
        self._advance()

    def _raise_parse_error_for_token(self, token: Token, reason: str) -> None:  # noqa: ARG002 - the package's form
        self._refuse("Error")

    def _current_name(self) -> str:
        return _NAMES[self._current_token()]

    def _refuse(self, message: str) -> None:
        raise ExpressionError(f"SyntaxError: {message}")


# Text of an expression to tokens, by upstream's rules.
#
# The `jmespath` package reads literals, quotes and unknown characters differently (row V-22: between backticks stands JSON
# and nothing else), so the parser is fed with these tokens. They have the form of that package's own tokens.

Token = dict[str, Any]

_PIECE: Final = re.compile(
    r"(?P<space>[ \t\n\r]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>-[0-9]*|[0-9]+)"
    r"|(?P<symbol>\[\]|\[\?|\|\||&&|[<>!=]=|[.*,:{}\]()@\[|&<>!=])"
    r"|'(?P<raw>(?:[^'\\]|\\'|\\(?!'))*)'"
    r"|`(?P<json>(?:[^`\\]|\\.)*)`"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    r"|(?P<open>['`\"])",
    re.DOTALL,
)
_SYMBOLS: Final = {
    "[]": "flatten", "[?": "filter", "||": "or", "&&": "and", "<=": "lte", ">=": "gte", "!=": "ne",
    "==": "eq", ".": "dot", "*": "star", ",": "comma", ":": "colon", "{": "lbrace", "}": "rbrace",
    "]": "rbracket", "(": "lparen", ")": "rparen", "@": "current", "[": "lbracket", "|": "pipe",
    "&": "expref", "<": "lt", ">": "gt", "!": "not", "=": "unknown",
}  # fmt: skip


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text`, the last of type `eof`. Raises ExpressionError with upstream's text."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise ExpressionError(f"SyntaxError: Unknown char: {_quoted_char(text[at])}")
        at = found.end()
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(_token(kind, found.group(kind), found.start(), at))
    tokens.append(_new("eof", "", at, at))
    return tokens


def _new(kind: str, value: Any, start: int, end: int) -> Token:
    return {"type": kind, "value": value, "start": start, "end": end}


def _token(kind: str, text: str, start: int, end: int) -> Token:
    if kind == "name":
        return _new("unquoted_identifier", text, start, end)
    if kind == "symbol":
        return _new(_SYMBOLS[text], text, start, end)
    if kind == "number":
        return _new("number", text, start, end)
    if kind == "raw":
        return _new("string_literal", text.replace("\\'", "'"), start, end)
    if kind == "json":
        return _new("json_literal", text.replace("\\`", "`"), start, end)
    if kind == "quoted":
        return _new("quoted_identifier", _decoded(f'"{text}"'), start, end)
    raise ExpressionError(f"SyntaxError: Unclosed delimiter: {text}")


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except GoJsonError as error:
        raise ExpressionError(str(error)) from None


def _quoted_char(char: str) -> str:
    code = ord(char)
    named = {7: "\\a", 8: "\\b", 11: "\\v", 12: "\\f", 39: "\\'", 92: "\\\\"}
    if code in named:
        return f"'{named[code]}'"
    if code < 0x20 or code == 0x7F:
        return f"'\\x{code:02x}'"
    if char.isascii():
        return f"'{char}'"
    if 0xD800 <= code <= 0xDFFF:
        return "'\\ufffd'"
    return f"'\\u{code:04x}'" if code <= 0xFFFF else f"'\\U{code:08x}'"
