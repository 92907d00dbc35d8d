"""Colours: every theme can be read, and those there are are those that are named."""

from __future__ import annotations

import pytest
from textual.color import Color

from kubectl_kpolicy.session.config import THEMES as NAMES
from kubectl_kpolicy.tui.themes import SHORT, THEMES

ROLES = ("foreground", "primary", "accent", "success", "warning", "error")


def test_the_names_in_help_and_configuration_are_those_of_the_picker() -> None:
    assert tuple(SHORT) == NAMES


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_every_role_can_be_read_on_the_background(theme) -> None:
    least = 7.0 if "high-contrast" in theme.name else 4.5
    background = Color.parse(theme.background)

    ratios = {role: _ratio(Color.parse(getattr(theme, role)), background) for role in ROLES}

    assert {role: ratio for role, ratio in ratios.items() if ratio < least} == {}


def _ratio(one: Color, other: Color) -> float:
    """Return the contrast as WCAG 2.1 defines it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)
