"""Kubernetes quantities (`500m`, `1.5Gi`, `1e3`): exact numbers with a preferred way of writing them.

The grammar, the rounding and the canonical text are those of `k8s.io/apimachinery/pkg/api/resource`, because a policy
must see the same number as the API server. Numbers are decimals that keep their exponent, so `1e1000000` costs no more
to read or to compare than `1`.
"""

from __future__ import annotations

import math
import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.lazy_regex import regex
from engine.record import record

if TYPE_CHECKING:
    from fractions import Fraction


class Format(Enum):
    """How a quantity was written, which decides how results are written."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


_GRAMMAR = regex(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*)([+-]?[0-9]*)", re.ASCII)
_DECIMAL_SUFFIXES: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: name for name, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES: Final = {
    0: "",
    **{exponent // 10: name for name, exponent in _BINARY_SUFFIXES.items()},
}
_BINARY_MOST: Final = Decimal((1 << 63) - 1)
_EXPONENT_DIGITS: Final = 20
_CACHED_LENGTH: Final = 64
_FAST_DIGITS: Final = {2: 14, 10: 18}
"""Up to how many digits, those of a binary suffix included, the API server keeps a number as 64 bits."""
_NANO: Final = Decimal(1).scaleb(-9)
_WIDEST: Final = 4096
"""Digits beyond which a number is not expanded; no quantity of a real object comes near."""


@record
class Quantity:
    """An exact number with the format it was written in.

    Ordering and equality are those of the number alone (`1Gi` equals `1024Mi`).
    """

    number: Decimal
    format: Format = Format.DECIMAL

    def __eq__(self, other: object) -> bool:
        return self.number == other.number if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.number)

    def __lt__(self, other: Quantity) -> bool:
        return self.number < other.number

    def __le__(self, other: Quantity) -> bool:
        return self.number <= other.number

    def __gt__(self, other: Quantity) -> bool:
        return self.number > other.number

    def __ge__(self, other: Quantity) -> bool:
        return self.number >= other.number

    @property
    def value(self) -> Fraction:
        """The exact value; LimitError when writing it out would take thousands of digits."""
        from fractions import Fraction  # here: few policies calculate

        return Fraction(_bounded(self.number))

    def approximate(self) -> float:
        """Return a 64-bit float near the number, by the same steps as the API server; beyond its range infinity or zero."""
        exponent = _exponent(self.number)
        digits = float(self.number.scaleb(-exponent, context=_context(self.number))) + 0.0
        return digits * _power_of_ten(exponent) if exponent else digits

    def text(self) -> str:
        """Write the canonical form: the largest suffix that leaves a whole number (`1Gi`, `1500m`)."""
        number = self.number
        if not number:
            return "0"
        if self.format is Format.BINARY and number.copy_abs() >= 1024:
            whole = _bounded(number)
            if whole == whole.to_integral_value(context=_context(whole)):
                return _binary_text(int(whole))
        digits, exponent = _thousands(number)
        if self.format is Format.EXPONENT:
            return f"{digits}e{exponent}" if exponent else digits
        suffix = _DECIMAL_NAMES.get(exponent)
        return f"{digits}e{exponent}" if suffix is None else digits + suffix

    def add(self, other: Quantity) -> Quantity:
        """Return the sum in the format of this quantity (of the other when this is zero)."""
        return self._sum(other, other.number)

    def subtract(self, other: Quantity) -> Quantity:
        """Return the difference in the format of this quantity (of the other when this is zero)."""
        return self._sum(other, other.number.copy_negate())

    def _sum(self, other: Quantity, term: Decimal) -> Quantity:
        total = _context(self.number, term).add(_bounded(self.number), _bounded(term))
        return Quantity(total, self.format if self.number else other.format)

    def multiply(self, factor: Quantity) -> Quantity:
        """Return the exact product in the format of this quantity."""
        product = _context(self.number, factor.number).multiply(self.number, factor.number)
        return Quantity(product, self.format)

    def divide(self, divisor: Quantity) -> Quantity:
        """Return the quotient, rounded toward zero at the larger number of decimals of the two (row F-04)."""
        if not divisor.number:
            raise EvaluationError("division of a quantity by zero")
        exponent = min(_exponent(self.number), _exponent(divisor.number))
        ratio = self.value / divisor.value
        unit = Quantity(Decimal(1).scaleb(exponent)).value
        steps = abs(ratio) // unit
        number = Decimal(steps if ratio >= 0 else -steps)
        return Quantity(_context(number).multiply(number, Decimal(1).scaleb(exponent)), self.format)


def parse(text: str) -> Quantity | None:
    """Read a quantity; None when the text is none.

    Digits below a billionth are rounded away from zero, binary suffixes stop at the largest 64-bit number, as the API
    server does. A text without any digit (`m`, `+`) is zero, as there, unless it would not fit 64 bits (`Pi`, `e-10`).
    """
    return _kept(text) if len(text) <= _CACHED_LENGTH else _parse(text)


def _parse(text: str) -> Quantity | None:
    parts = _GRAMMAR.fullmatch(text)
    if not text or parts is None:
        return None
    scale = _scale(parts[4], parts[5])
    if scale is None:
        return None
    base, exponent, form = scale
    fraction = parts[3] or ""
    digits = f"{parts[2].lstrip('0') or '0'}{fraction}"
    shift = exponent - len(fraction) if base == 10 else -len(fraction)
    more = exponent * 3 // 10 if base == 2 else 0
    is_wide = shift < -9 or len(digits) + more > _FAST_DIGITS[base] or (base == 2 and fraction)
    if is_wide and not (parts[2] or fraction):
        return None
    number = Decimal(f"{parts[1]}{digits}E{shift}")
    if base == 2:
        number = _context(number).multiply(number, Decimal(1 << exponent))
    if is_wide:
        number = _nano(number)
    if base == 2 and number.copy_abs() > _BINARY_MOST:
        number = _BINARY_MOST.copy_sign(number)
    if base == 2 and number.copy_abs() < 1:
        form = Format.DECIMAL
    return Quantity(number, form)


_kept = lru_cache(maxsize=4096)(_parse)


def _nano(number: Decimal) -> Decimal:
    """Round away from zero at a billionth, and count in billionths where that stays short."""
    if number.adjusted() > _WIDEST:
        return number
    return number.quantize(_NANO, rounding=ROUND_UP, context=_context(number, _NANO))


def _scale(letters: str, digits: str) -> tuple[int, int, Format] | None:
    """Read a suffix as base, exponent and format; None when there is no such suffix."""
    suffix = letters + digits
    if suffix in _DECIMAL_SUFFIXES:
        return 10, _DECIMAL_SUFFIXES[suffix], Format.DECIMAL
    if suffix in _BINARY_SUFFIXES:
        return 2, _BINARY_SUFFIXES[suffix], Format.BINARY
    if letters not in ("e", "E") or len(digits) > _EXPONENT_DIGITS or not digits[-1:].isdigit():
        return None
    exponent = int(digits)
    if not -(1 << 63) <= exponent < 1 << 63:
        return None
    # The API server holds the exponent in 32 bits, where larger ones wrap around.
    return 10, (exponent + (1 << 31)) % (1 << 32) - (1 << 31), Format.EXPONENT


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _power_of_ten(exponent: int) -> float:
    """Return Go's `math.Pow10`, which is made of two powers and not always the nearest float."""
    large, small = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{large * 32}") / float(f"1e{small}") if exponent >= -323 else 0.0
    return float(f"1e{large * 32}") * float(f"1e{small}") if exponent <= 308 else math.inf


def _context(*numbers: Decimal) -> Context:
    """Return a context in which sums and products of the numbers are exact."""
    width = sum(len(number.as_tuple().digits) for number in numbers)
    spread = sum(abs(number.adjusted()) + abs(_exponent(number)) for number in numbers)
    return Context(prec=width + min(spread, 8 * _WIDEST) + 64, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _bounded(number: Decimal) -> Decimal:
    if abs(number.adjusted()) > _WIDEST or abs(_exponent(number)) > _WIDEST:
        raise LimitError(f"quantity with more than {_WIDEST} digits")
    return number


def _thousands(number: Decimal) -> tuple[str, int]:
    """Return digits and an exponent that is a multiple of three, with no more trailing zeros than that needs."""
    sign, digits, _ = number.as_tuple()
    text = "".join(map(str, digits))
    shorter = text.rstrip("0")
    exponent = _exponent(number) + len(text) - len(shorter)
    return f"{'-' if sign else ''}{shorter}{'0' * (exponent % 3)}", exponent - exponent % 3


def _binary_text(whole: int) -> str:
    steps = 0
    while whole % 1024 == 0 and steps < len(_BINARY_NAMES) - 1:
        whole //= 1024
        steps += 1
    return f"{whole}{_BINARY_NAMES[steps]}"
