"""Tokens to a syntax tree, by precedence; macros are expanded on the way.

Loops where the grammar allows, recursion (bounded) only for real nesting, so that no text exhausts the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import ast
from .errors import CelSyntaxError
from .lexer import RESERVED, LiteralError, Token, number_value, text_value, tokenize
from .macros import expand

MAX_DEPTH: Final = 64
"""Levels of nesting of one expression: twice what the language asks for, and safe on any caller's stack."""

_RANKS: Final = {
    "||": 1, "&&": 2,
    "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4,
    "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_LOGIC: Final = 2
_RELATION: Final = 3
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


def parse(source: str) -> ast.Node:
    """Return the tree of an expression. Raises CelSyntaxError."""
    parser = _Parser(source)
    node = parser.expression()
    parser.expect("end")
    return node


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.index = 0
        self.level = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def error(self, message: str, at: int | None = None) -> CelSyntaxError:
        return CelSyntaxError(message, self.source, self.token.at if at is None else at)

    def unexpected(self) -> CelSyntaxError:
        shown = self.token.text or "<EOF>"
        return self.error(f"syntax error: unexpected `{shown[:40]}`")

    def take(self, kind: str) -> bool:
        if self.tokens[self.index].kind != kind:
            return False
        self.index += 1
        return True

    def expect(self, kind: str) -> Token:
        token = self.token
        if token.kind != kind:
            raise self.unexpected()
        self.index += 1
        return token

    def sized(self, node: ast.Node) -> ast.Node:
        if node.depth > MAX_DEPTH:
            raise self.error(f"expression nests deeper than {MAX_DEPTH} levels", node.at)
        return node

    def expression(self) -> ast.Node:
        self.level += 1
        if self.level > MAX_DEPTH:
            raise self.error(f"expression nests deeper than {MAX_DEPTH} levels")
        node = self.operations()
        if self.token.kind == "?":
            node = self.choice(node)
        self.level -= 1
        return self.sized(node)

    def choice(self, test: ast.Node) -> ast.Node:
        cases = []
        at = self.token.at
        while self.take("?"):
            value = self.operations()
            self.expect(":")
            cases.append((test, value))
            test = self.operations()
        return ast.Choice(cases, test, at=at)

    def operations(self) -> ast.Node:
        """Read operands and binary operators, binding tighter ones first, without recursion."""
        operands = [self.unary()]
        pending: list[Token] = []
        while (rank := self.rank()) > 0:
            while pending and _RANKS[pending[-1].text] >= rank:
                self.join(operands, pending.pop())
            pending.append(self.token)
            self.index += 1
            operands.append(self.unary())
        while pending:
            self.join(operands, pending.pop())
        return operands[0]

    def rank(self) -> int:
        token = self.token
        is_operator = token.kind == token.text or (token.kind == "name" and token.text == "in")
        return _RANKS.get(token.text, 0) if is_operator else 0

    def join(self, operands: list[ast.Node], operator: Token) -> None:
        right = operands.pop()
        operands[-1] = self.sized(_joined(operands[-1], operator, right))

    def unary(self) -> ast.Node:
        token = self.token
        if token.kind not in ("!", "-"):
            return self.member()
        count = 0
        while self.take(token.kind):
            count += 1
        if token.kind == "-" and count % 2 and self.token.kind == "number":
            self.index += 1
            negative = self.number(self.tokens[self.index - 1], negative=True)
            return self.postfix(negative)
        operand = self.member()
        odd = ast.Unary(token.kind, operand, at=token.at)
        return self.sized(odd if count % 2 else ast.Unary(token.kind, odd, at=token.at))

    def member(self) -> ast.Node:
        return self.postfix(self.primary())

    def postfix(self, node: ast.Node) -> ast.Node:
        while True:
            token = self.token
            if token.kind == ".":
                self.index += 1
                node = self.dotted(node, token.at)
            elif token.kind == "[":
                self.index += 1
                optional = self.take("?")
                key = self.expression()
                self.expect("]")
                node = ast.Index(node, key, optional, at=token.at)
            elif token.kind == "{" and (name := _type_name(node)):
                self.index += 1
                node = self.message(name, node.at)
            else:
                return node
            self.sized(node)

    def dotted(self, node: ast.Node, at: int) -> ast.Node:
        optional = self.take("?")
        name = self.field()
        if not optional and self.take("("):
            return self.call(node, name, self.arguments(")"), at + 1)
        return ast.Select(node, name, optional, at=at)

    def field(self) -> str:
        token = self.token
        if token.kind == "escaped":
            self.index += 1
            return token.text[1:-1]
        name = self.expect("name").text
        if name in _CONSTANTS or name == "in":
            raise self.error(f"syntax error: unexpected `{name}`", token.at)
        return name

    def call(
        self, target: ast.Node | None, name: str, arguments: list[ast.Node], at: int
    ) -> ast.Node:
        try:
            expanded = expand(target, name, arguments, at)
        except LiteralError as error:
            raise self.error(error.message, error.offset) from None
        return expanded if expanded is not None else ast.Call(target, name, arguments, at=at)

    def arguments(self, closing: str) -> list[ast.Node]:
        found: list[ast.Node] = []
        while not self.take(closing):
            found.append(self.expression())
            if not self.take(","):
                self.expect(closing)
                break
            if self.token.kind == closing and closing == ")":
                raise self.unexpected()
        return found

    def primary(self) -> ast.Node:
        token = self.token
        reader = self.READERS.get(token.kind)
        if reader is None:
            raise self.unexpected()
        self.index += 1
        return reader(self, token)

    def group(self, _token: Token) -> ast.Node:
        node = self.expression()
        self.expect(")")
        return node

    def name(self, token: Token) -> ast.Node:
        if token.text in _CONSTANTS:
            return ast.Literal(_CONSTANTS[token.text], at=token.at)
        return self.named(token, absolute=False)

    def rooted(self, token: Token) -> ast.Node:
        return self.named(self.expect("name"), absolute=True, at=token.at)

    def named(self, token: Token, *, absolute: bool, at: int | None = None) -> ast.Node:
        if token.text in RESERVED or token.text in _CONSTANTS or token.text == "in":
            raise self.error(f"reserved identifier: `{token.text}`", token.at)
        if self.take("("):
            return self.call(None, token.text, self.arguments(")"), token.at)
        return ast.Ident(token.text, absolute, at=token.at if at is None else at)

    def text(self, token: Token) -> ast.Node:
        try:
            return ast.Literal(text_value(token.text), at=token.at)
        except LiteralError as error:
            raise self.error(error.message, token.at + error.offset) from None

    def number(self, token: Token, *, negative: bool = False) -> ast.Node:
        try:
            return ast.Literal(number_value(token.text, negative=negative), at=token.at)
        except LiteralError as error:
            raise self.error(error.message, token.at) from None

    def closed(self, closing: str) -> bool:
        """Take the end of a literal that has no entries yet, or none after its last comma."""
        lonely = self.tokens[self.index].kind == "," and self.tokens[self.index - 1].kind != ","
        if lonely and self.tokens[self.index + 1].kind == closing:
            self.index += 1
        return self.take(closing)

    def list_literal(self, token: Token) -> ast.Node:
        items = []
        while not self.closed("]"):
            optional = self.take("?")
            items.append((self.expression(), optional))
            if not self.take(","):
                self.expect("]")
                break
        return ast.ListLiteral(items, at=token.at)

    def map_literal(self, token: Token) -> ast.Node:
        entries = []
        while not self.closed("}"):
            optional = self.take("?")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.take(","):
                self.expect("}")
                break
        return ast.MapLiteral(entries, at=token.at)

    def message(self, name: str, at: int) -> ast.Node:
        entries = []
        while not self.closed("}"):
            optional = self.take("?")
            start, field = self.token.at, self.field()
            self.expect(":")
            entries.append((field, self.expression(), optional, start))
            if not self.take(","):
                self.expect("}")
                break
        return ast.MessageLiteral(name, entries, at=at)

    READERS: Final[dict[str, Callable[[_Parser, Token], ast.Node]]] = {
        "(": group,
        "[": list_literal,
        "{": map_literal,
        ".": rooted,
        "name": name,
        "number": number,
        "text": text,
    }


def _type_name(node: ast.Node) -> str:
    """Return the dotted name that a chain of selections spells, or nothing."""
    names: list[str] = []
    while isinstance(node, ast.Select) and not node.optional and not node.test:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, ast.Ident):
        return ""
    return ".".join((node.name, *reversed(names)))


def _joined(left: ast.Node, operator: Token, right: ast.Node) -> ast.Node:
    """Return `left operator right`, as one more part of a chain of the same rank where that is what `left` is."""
    rank = _RANKS[operator.text]
    if rank <= _LOGIC:
        if isinstance(left, ast.Logic) and left.operator == operator.text:
            left.parts.append(right)
            left.grow(right)
            return left
        return ast.Logic(operator.text, [left, right], at=operator.at)
    link = (operator.text, right, operator.at)
    if rank != _RELATION and isinstance(left, ast.Chain) and _RANKS[left.rest[0][0]] == rank:
        left.rest.append(link)
        left.grow(right)
        return left
    return ast.Chain(left, [link], at=operator.at)
