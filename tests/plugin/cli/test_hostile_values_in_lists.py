"""Whatever objects hold, a list on a terminal only draws: 363 payloads in every list command and format, read from a pty."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import termios
import unicodedata
from typing import TYPE_CHECKING

import pytest

from engine.lang import yaml
from engine.lang.unseen import unseen
from engine.lang.yaml.write import write
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.recording import Recorder
from kubectl_kpolicy.output.structured import json_text
from kubectl_kpolicy.output.terminal_escape import escaped, shown
from tests.plugin.hostile import GENERATORS, is_harmless, payloads
from tests.plugin.scene import (
    NOW,
    audit_record,
    block,
    exception,
    grant,
    meta,
    policy,
    report,
    result,
    ttl_object,
)

if TYPE_CHECKING:
    from pathlib import Path

LISTS = (
    ["violations", "list", "-A", "--all"], ["violations", "list", "-A", "--blocks"], ["policies", "list", "-A"], ["exceptions", "list", "-A"],
    ["exceptions", "audit", "-A"], ["grant", "list", "-A"], ["otp", "list"], ["cleanup", "list", "-A"], ["audit", "log"], ["doctor"], ["status"],
)  # fmt: skip
FORMS = ("table", "wide", "json", "yaml", "name", "markdown", "csv", "jsonl", "jsonpath={.items[*].metadata.name}", "custom-columns=A:.metadata.name,B:.message,C:.spec.reason")  # fmt: skip
DESCRIPTIONS = ["violations", "policies", "exceptions", "cleanup"]
DRIVER = """
import json, sys
from kubectl_kpolicy import entry
for words in json.loads(sys.stdin.read()):
    print("=====", flush=True)
    code = entry.main(words)
    print(f"----- {code}", flush=True)
"""


def hostile_world(texts: list[str]) -> ClusterCache:
    """Return a ClusterCache in which every text of somebody else's is a payload."""
    made = ClusterCache()
    made.replace("reports", [report(one, f"{number}{one}", one, result(one, one, "fail", "high", one, category=one, source=one, properties={"exceptions": one})) for number, one in enumerate(texts)], NOW)  # fmt: skip
    made.replace("clusterpolicies", [policy(f"{number}{one}", "Audit", one, [one]) for number, one in enumerate(texts)], NOW)  # fmt: skip
    made.replace("exceptions", [exception(f"{number}{one}", one, one, [one], [one], reason=one, ticket=one, requester=one) for number, one in enumerate(texts)], NOW)  # fmt: skip
    made.replace("grants", [grant(f"{number}{one}", "pending", one, target=one, reason=one, ticket=one) for number, one in enumerate(texts)], NOW)  # fmt: skip
    made.replace("codes", [{"apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode", "metadata": meta(f"{number}{one}", one),
        "spec": {"user": one, "issuedBy": one, "expiresAt": one, "binding": {"policy": one, "rules": [one], "object": {"kind": one, "name": one}}},
        "status": {"state": one, "usedBy": one}} for number, one in enumerate(texts)], NOW)  # fmt: skip
    made.replace("ttl", [ttl_object(one, f"{number}{one}", one, one, one) for number, one in enumerate(texts)], NOW)  # fmt: skip
    records = [
        audit_record(number + 1, one, one, one, one, one) for number, one in enumerate(texts)
    ]
    made.replace("auditsegments", [{"kind": "AuditSegment", "metadata": meta("a", "kyverno"), "spec": {"records": records}}], NOW)  # fmt: skip
    made.replace("events", [block(f"{number}{one}", 1, 1, f"Pod {one}/{one}: [{one}] fail (blocked); {one}", one, one) for number, one in enumerate(texts)], NOW)  # fmt: skip
    for name in ("clusterreports", "policies", "cleanuppolicies", "clustercleanuppolicies", "grantpolicies", "codeuses", "uses", "validatingwebhooks", "mutatingwebhooks", "leases", "crds", "journal"):  # fmt: skip
        made.replace(name, (), NOW)
    return made


def recorded(path: Path, there: ClusterCache) -> str:
    made = ClusterCache()
    with path.open("w") as out:
        Recorder(made, out, lambda: NOW, "prod-eu")
        for name in ("reports", "clusterpolicies", "exceptions", "grants", "codes", "ttl", "auditsegments", "events", "clusterreports", "policies", "crds"):  # fmt: skip
            made.replace(name, there.objects(name), NOW)
    return str(path)


def drawn(commands: list[list[str]], home: Path) -> list[str]:
    """Run commands in one process whose output is a terminal, and return what each drew."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    environment = {**os.environ, "HOME": str(home), "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen([sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=environment)  # fmt: skip
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(json.dumps(commands).encode())
    process.stdin.close()
    parts = []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert process.wait(30) == 0
    return b"".join(parts).decode().split("=====\n")[1:]


@pytest.fixture(scope="module")
def replay(tmp_path_factory) -> str:
    return recorded(tmp_path_factory.mktemp("hostile") / "r.jsonl", hostile_world(payloads()))


def test_there_are_three_hundred_of_them_of_every_sort() -> None:
    assert len(payloads()) >= 300
    assert all(len(list(make())) >= 9 for make in GENERATORS.values())


@pytest.mark.timeout(240)
@pytest.mark.parametrize("form", FORMS)
def test_no_control_character_reaches_the_terminal(replay: str, tmp_path, form: str) -> None:
    commands = [[*words, "-o", form, "--color", "never", "--replay", replay] for words in LISTS]
    if form == "table":
        commands += [
            [noun, "describe", "--color", "never", "--replay", replay] for noun in DESCRIPTIONS
        ]
    found = drawn(commands, tmp_path)
    assert len(found) == len(commands)
    for words, text in zip(commands, found, strict=True):
        wrong = {
            f"U+{ord(char):04X}"
            for char in set(text)
            if not is_harmless(char) and char not in "\n\t"
        }
        assert not wrong, f"{' '.join(words[:3])}: {sorted(wrong)}"
    told = sum("----- 0" in text for text in found)
    assert told >= 7, [text[-80:] for text in found]


@pytest.mark.timeout(120)
def test_colours_are_ours_alone(replay: str, tmp_path) -> None:
    commands = [[*words, "--color", color, "--replay", replay] for words in LISTS[:4] for color in ("never", "always")]  # fmt: skip
    found = drawn(commands, tmp_path)
    for plain, colored in zip(found[::2], found[1::2], strict=True):
        assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_a_table_has_one_line_for_each_row_whatever_rows_hold(replay: str, tmp_path) -> None:
    (text,) = drawn([["violations", "list", "-A", "--all", "--no-headers", "--color", "never", "--replay", replay]], tmp_path)  # fmt: skip
    assert len(text.splitlines()) == len(payloads()) + 1
    assert len(text.split("\n")) == len(payloads()) + 2


# What is escaped means the same as before.


@pytest.mark.parametrize("sort", GENERATORS)
def test_json_and_yaml_mean_what_they_meant(sort: str) -> None:
    for text in GENERATORS[sort]():
        made = json_text({"a": text, text: [text]})
        assert json.loads(made) == {"a": text, text: [text]}
        assert all(is_harmless(char) or char == "\n" for char in made), text
        if len(text) < 2_000:
            written = write({"a": text})
            assert yaml.load(written) == {"a": text}, text
            assert all(is_harmless(char) or char in "\n\t" for char in written), text


def test_nothing_unseen_is_forgotten() -> None:
    for code in range(0x110000):
        char = chr(code)
        if (
            unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
            and char not in "\n\t"
        ):
            assert unseen().match(char), f"U+{code:04X}"
    assert not unseen().search("plain text, 検索, é, 👍, \t\n")


def test_programs_get_exact_text_and_people_visible_text() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert shown("a\x1b[2Jb", io.StringIO()) == "a\x1b[2Jb"
    assert shown("a\x1b[2Jb", Terminal()) == "a\\u001b[2Jb"
    assert escaped('"\U000e0041"') == '"\\udb40\\udc41"'
    assert json.loads(escaped('"\U000e0041"')) == "\U000e0041"
