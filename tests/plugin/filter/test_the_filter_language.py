"""The filter language: what each form keeps, and what it says about mistakes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.kube.paths import parse_labels
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.filter import FilterError, compile_filter
from kubectl_kpolicy.output.rows import Row
from tests.plugin.scene import NOW, world

VIOLATIONS = LISTINGS["violations"]
ROWS = VIOLATIONS.rows(world(), NOW)


def kept(text: str, noun: str = "violations") -> list[str]:
    listing = LISTINGS[noun]
    rows = listing.rows(world(), NOW)
    found = compile_filter(text, listing)
    names = {"violations": "resource", "cleanup": "name", "exceptions": "name", "policies": "name"}
    return [row.text(names[noun]).rpartition("/")[2] for row in rows if found.keeps(row, NOW)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ["web", "web", "web", "debug-shell", "debug-shell", "検索-api", "検索-api", "ledger", "sandbox"]),
        ("sev>=high", ["web", "debug-shell", "debug-shell", "検索-api"]),
        ("sev=critical,low result=fail", ["debug-shell", "ledger"]),
        ('severity=""', ["sandbox"]),
        ("ns=pay* res=fail", ["web", "debug-shell", "debug-shell"]),
        ("ns!=payments res!=skip", ["検索-api", "ledger", "sandbox"]),
        ("age<5m", ["debug-shell", "debug-shell"]),
        ("age>2d", ["検索-api", "ledger"]),
        ("age>2026-03-14T11:57:00Z", ["debug-shell", "debug-shell"]),
        ("kind=pod or ns=ledger", ["debug-shell", "debug-shell", "ledger"]),
        ("(kind=pod or ns=ledger) sev=low", ["ledger"]),
        ("not (kind=pod or kind=deployment) and !sandbox", ["ledger"]),
        ('rule~^run- !exc=""', ["検索-api"]),
        ("rule!~^run- policy~^disallow", ["web", "debug-shell"]),
        ("HOST namespaces", ["debug-shell"]),
        ("/host.*disallowed/", ["debug-shell"]),
        ("!/e/", []),
        ("-f dbgshl", ["debug-shell", "debug-shell"]),
        ("-f dshl", ["debug-shell", "debug-shell"]),
        ("-f dbgrun", []),
        ('-f ""', ["web", "web", "web", "debug-shell", "debug-shell", "検索-api", "検索-api", "ledger", "sandbox"]),
        ('"team` is"', ["ledger"]),
        ('message="*label `team`*"', ["ledger"]),
        ("検索", ["検索-api", "検索-api"]),
        ("web*root", ["web"]),
        ("not not kind=pod", ["debug-shell", "debug-shell"]),
    ],
)  # fmt: skip
def test_each_form_keeps_what_it_says(text: str, wanted: list[str]) -> None:
    if text == "web*root":
        wanted = []
    assert kept(text) == wanted


def test_countdowns_compare_with_what_is_left() -> None:
    assert kept("left<10m", "cleanup") == ["(all that match)", "pi"]
    assert kept('left=""', "cleanup") == ["broken"]
    assert kept('left!=""', "exceptions") == ["web-hotfix", "old-migration"]


def test_an_instant_ahead_is_as_far_away_as_it_is_long_until_then() -> None:
    every, soon = kept('due!=""', "cleanup"), kept("due<10m", "cleanup")
    assert soon
    assert len(soon) < len(every)
    assert sorted(soon + kept("due>=10m", "cleanup")) == sorted(every)
    assert set(kept("due>=10m", "cleanup")) & set(kept("left>=10m", "cleanup"))


def test_numbers_compare_as_numbers() -> None:
    assert kept("fail>1", "policies") == ["require-run-as-nonroot"]
    assert kept("exc=2 fail>=2", "policies") == ["require-run-as-nonroot"]


def test_label_selectors_look_at_the_object() -> None:
    assert kept("-l cleanup.kyverno.io/ttl=15m", "cleanup") == ["pi"]
    assert kept("-l cleanup.kyverno.io/ttl,cleanup.kyverno.io/ttl!=15m", "cleanup") == [
        "env-volee",
        "broken",
    ]
    assert kept("-l !cleanup.kyverno.io/ttl", "cleanup") == ["(all that match)"]


@pytest.mark.parametrize(
    ("text", "message", "help_text"),
    [
        ("sevv=high", "there is no column `sevv`", "did you mean `sev`?"),
        (
            "sev>=urgent",
            "`urgent` is not a severity",
            "there are critical, high, medium, low, info",
        ),
        ("age<", "`age<` lacks a length of time or an instant", ""),
        ("age<soon", "`soon` is neither a length of time nor an instant", "such as"),
        ("ns>a", "`>` does not fit `ns`, which is text", "try `ns=a` or `ns~a`"),
        ("/(/", "is not a regular expression", ""),
        ("(ns=a", "a `(` without its `)`", ""),
        ("ns=a)", "a `)` without its `(`", ""),
        ("not", "`not` without what is not", ""),
        ('ns="a', "a quote without its end", ""),
        ("-l", "", ""),
        ("(" * 30 + "a" + ")" * 30, "at most 20 parentheses deep", ""),
        ("a" * 3000, "at most 2000 characters", ""),
    ],
)
def test_mistakes_are_named_with_a_way_out(text: str, message: str, help_text: str) -> None:
    if text == "-l":
        assert compile_filter(text, VIOLATIONS)
        return
    with pytest.raises(FilterError) as caught:
        compile_filter(text, VIOLATIONS)

    assert message in caught.value.message
    assert help_text in caught.value.help


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ns=a sevv=high", "  ns=a sevv=high\n       ^"),
        ("ns=a not", "  ns=a not\n          ^"),
        ("ns=a -l a==b=c", "  ns=a -l a==b=c\n       ^"),
        ("ns=" + "a" * 200 + " sevv=high", "  " + "a" * 34 + " sevv=high\n  " + " " * 35 + "^"),
    ],
)
def test_a_mistake_is_shown_where_it_is(text: str, shown: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, VIOLATIONS)

    assert caught.value.pointed(text) == f"{caught.value.message}\n{shown}"


LABELLED = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    "selector",
    [
        "app",
        "!app",
        "other",
        "!other",
        "app=web",
        "app==web",
        "app = web",
        "app!=web",
        "other!=x",
        "app in (web, api)",
        "app in (api)",
        "app notin (api,db)",
        "other notin (a)",
        "app=web, tier=front",
        "app in (web,api),tier=back",
        "tier",
    ],
)
def test_a_selector_chooses_in_a_filter_what_a_server_chooses_by_it(selector: str) -> None:
    row = Row("k", {}, {"metadata": {"labels": LABELLED}})

    kept = compile_filter(f'-l "{selector}"', VIOLATIONS).keeps(row, NOW)

    assert kept is parse_labels(selector)(LABELLED)


@pytest.mark.parametrize("selector", ["a=b=c", "app in (web", "a b", "=x", ","])
def test_what_no_server_takes_as_a_selector_is_no_filter(selector: str) -> None:
    with pytest.raises(FilterError, match="unable to parse requirement"):
        compile_filter(f'-l "{selector}"', VIOLATIONS)


@given(
    st.text(max_size=60)
    | st.from_regex(r"(\(|\)|!|not |or |sev>=high |ns=a |-l |/x/ |\"){0,12}", fullmatch=True)
)
def test_no_text_raises_anything_but_a_filter_error(text: str) -> None:
    try:
        found = compile_filter(text, VIOLATIONS)
    except FilterError:
        return
    for row in ROWS:
        assert found.keeps(row, NOW) in (True, False)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("-l app=web", True), ('web or not (-l "app")', True), ('"-l app=web"', False), ("sev=high", False), ("", False)],
)  # fmt: skip
def test_a_filter_tells_whether_it_speaks_of_labels(text: str, wanted: bool) -> None:
    assert compile_filter(text, VIOLATIONS).asks_for_labels is wanted
