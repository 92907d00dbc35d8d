"""Commands that list a cluster: formats, choices, exit codes and words, on a recording and on a server that is not there."""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.audit import Checkpoint, append
from engine.lang import yaml
from kubectl_kpolicy import entry
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.cluster.recording import Recorder
from kubectl_kpolicy.output.diagnostics import ExitCode
from tests.plugin.scene import NOW, hindered, objects, world

ROOT = Path(__file__).parents[3]


@pytest.fixture
def replay(tmp_path: Path) -> str:
    return recorded(tmp_path / "scene.jsonl", world())


def recorded(path: Path, there: ClusterCache) -> str:
    """Write what a ClusterCache holds as a recording and return the file's name."""
    made = ClusterCache()
    with path.open("w") as out:
        Recorder(made, out, lambda: NOW, "prod-eu")
        for name in (*objects(), "crds"):
            if there.is_synced(name):
                made.replace(name, there.objects(name), NOW)
            if (problem := there.problem(name)) is not None:
                made.hindered(name, problem)
    return str(path)


@pytest.fixture
def run(capsys, replay: str):
    """Run a command on the recording; return its exit code, standard output and standard error."""

    def call(*words: str, file: str = replay) -> tuple[int, str, str]:
        code = entry.main([*words, *(("--replay", file) if file else ())])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_a_list_is_a_table_as_kubectl_prints_it(run) -> None:
    code, out, err = run("violations")
    lines = out.splitlines()

    assert (code, err) == (0, "")
    assert lines[0].split() == ["SEV", "RES", "NS", "RESOURCE", "POLICY", "RULE", "MESSAGE", "AGE"]
    assert lines[1].startswith("critical   fail")
    assert len(lines) == 8


def test_findings_are_no_failure_of_a_plain_list(run) -> None:
    assert run("violations")[0] == run("exceptions", "audit")[0] == 0
    assert run("exceptions", "audit", "--exit-code")[0] == 1
    assert run("status", "--exit-code")[0] == 1
    assert run("status", "--exit-code", "--fail-on", "critical")[0] == 1


@pytest.mark.parametrize("noun", ["violations", "policies", "exceptions", "cleanup"])
def test_json_and_yaml_are_lists_of_objects(run, noun: str) -> None:
    found = json.loads(run(noun, "-o", "json")[1])
    again = yaml.load(run(noun, "-o", "yaml")[1])

    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert found["items"]
    assert all(
        one["apiVersion"] and one["kind"] and one["metadata"]["name"] for one in found["items"]
    )
    assert again == found


def test_names_are_fit_for_xargs(run) -> None:
    assert (
        run("exceptions", "-o", "name")[1].splitlines()[0]
        == "policyexception.kyverno.io/old-migration"
    )


def test_csv_and_json_lines_have_one_row_each(run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("violations", "-o", "csv")[1])))
    lines = run("violations", "-o", "jsonl")[1].splitlines()

    assert len(rows) == len(lines) == 7
    assert rows[0]["policy"] == json.loads(lines[0])["policy"] == "disallow-host-namespaces"


def test_a_cell_is_no_formula_for_a_spreadsheet(tmp_path, run) -> None:
    there = world()
    there.objects("reports")[0]["results"][0]["message"] = "=cmd()"
    out = run("violations", "-o", "csv", file=recorded(tmp_path / "x.jsonl", there))[1]

    assert "'=cmd()" in out


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--where", "sev>=high"], 3),
        (["--severity", "critical,high"], 3),
        (["--kind", "pod"], 2),
        (["--since", "5m"], 2),
        (["--result", "skip"], 1),
        (["--all"], 9),
        (["require-run-as-nonroot"], 2),
        (["require-run-as-nonroot/run-as-non-root", "--kind", "deployment"], 1),
        (["Deployment/web"], 2),
        (["--limit", "4"], 4),
        (["--severity", "high", "--where", "ns=search or kind=pod"], 1),
        (["--blocks"], 2),
    ],
)
def test_flags_choose_rows(run, words: list[str], count: int) -> None:
    assert len(run("violations", *words, "--no-headers")[1].splitlines()) == count


def test_rows_are_sorted_and_grouped_by_columns(run) -> None:
    names = [
        line.split()[0]
        for line in run("policies", "--sort-by", "name", "--no-headers")[1].splitlines()
    ]
    assert names == sorted(names)
    groups = json.loads(run("violations", "--group-by", "policy", "-o", "json")[1])
    assert groups[0] == {"policy": "require-run-as-nonroot", "count": 2}


def test_paths_lead_into_objects(run) -> None:
    assert (
        run("violations", "-o", "jsonpath={.items[0].policy}{'\\n'}")[1]
        == "disallow-host-namespaces\n"
    )
    out = run("violations", "-o", "custom-columns=P:.policy,NO:.nothing", "--limit", "1")[1]
    assert out.split() == ["P", "NO", "disallow-host-namespaces", "<none>"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["violations", "--where", "sevv=1"], 2, "there is no column `sevv`"),
        (["violations", "--sort-by", "nonsense"], 2, "there is no column `nonsense`"),
        (["violations", "-o", "tabel"], 2, "there is no format `tabel`"),
        (["violations", "-o", "jsonpath={.a[?(@.b)]}"], 2, "is not supported"),
        (
            ["violations", "describe", "nothing-like-it"],
            ExitCode.GONE,
            "there is no violation called `nothing-like-it`",
        ),
        (["audit", "verify", "--checkpoint", "x"], 2, "cannot read `x` as a checkpoint"),
    ],
)
def test_mistakes_have_their_exit_code_and_words(
    run, words: list[str], code: int, message: str
) -> None:
    found, out, err = run(*words)

    assert (found, out) == (code, "")
    assert message in err


@pytest.mark.parametrize(
    ("trouble", "code"),
    [(Trouble.FORBIDDEN, ExitCode.FORBIDDEN), (Trouble.UNREACHABLE, ExitCode.UNREACHABLE),
     (Trouble.UNAUTHORIZED, ExitCode.UNREACHABLE), (Trouble.MISSING, ExitCode.GONE)],
)  # fmt: skip
def test_what_cannot_be_read_has_its_exit_code(
    tmp_path, run, trouble: Trouble, code: ExitCode
) -> None:
    found, out, err = run("violations", file=recorded(tmp_path / "x.jsonl", hindered(trouble)))

    assert (found, out) == (code, "")
    assert err.startswith("error: ")


def test_what_is_missing_beside_the_rows_is_a_warning(tmp_path, run) -> None:
    there = world()
    there.hindered("exceptions", hindered(Trouble.FORBIDDEN).problem("exceptions"))
    code, out, err = run("policies", file=recorded(tmp_path / "x.jsonl", there))

    assert code == 0
    assert out
    assert "warning: without exceptions: you may not list" in err


def test_nothing_found_is_said_as_kubectl_says_it(tmp_path, run) -> None:
    code, out, err = run("violations", file=recorded(tmp_path / "x.jsonl", world({})))

    assert (code, out, err) == (0, "", "No resources found.\n")


def test_a_server_that_is_not_there_is_exit_code_3(tmp_path, run) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "users: [{name: x, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
    )

    code, out, err = run("violations", "--kubeconfig", str(config), file="")

    assert (code, out) == (ExitCode.UNREACHABLE, "")
    assert "127.0.0.1:9" in err


def test_describing_tells_everything_about_a_row(run) -> None:
    out = run("exceptions", "describe", "web-hotfix")[1]

    assert "Reason:" in out
    assert "2026-03-14T12:12:41Z" in out
    assert "require-run-as-nonroot/run-as-non-root" in out


def test_the_numbers_are_those_of_pulse(run) -> None:
    assert json.loads(run("status", "-o", "json")[1])["counts"]["failures"] == 7


def test_every_number_is_what_the_command_beside_it_finds(run) -> None:
    found = {}
    for line in run("status")[1].splitlines()[1:]:
        number, _, command = line.partition("kubectl kpolicy ")
        title, count = number.rsplit(maxsplit=1)
        code, out, _ = run(*shlex.split(command), "-o", "csv", file="")
        rows = csv.DictReader(io.StringIO(out))
        found[title] = (code, sum(int(row.get("count") or 1) for row in rows), int(count))

    assert len(found) == 12
    assert [title for title, (code, one, other) in found.items() if one != other or code] == []


@pytest.mark.parametrize(("words", "place"), [((), " -A"), (("-n", "shop", "--context", "a b"), " --context 'a b' --namespace shop")])  # fmt: skip
def test_the_command_beside_a_number_looks_where_it_was_counted(run, words, place: str) -> None:
    commands = [line.partition("kubectl kpolicy ")[2] for line in run("status", *words)[1].splitlines()[1:]]  # fmt: skip

    assert commands
    assert all(place in command for command in commands)


def test_what_cannot_be_read_has_no_number(run, tmp_path: Path) -> None:
    there = world({}, without=("grants", "codes"), trouble=Trouble.MISSING)
    blind = recorded(tmp_path / "blind.jsonl", there)

    told = run("status", file=blind)[1].splitlines()
    counts = json.loads(run("status", "-o", "json", file=blind)[1])["counts"]

    assert [line.split()[2] for line in told if line.startswith(("active grants", "codes out"))] == ["-", "-"]  # fmt: skip
    assert [counts[name] for name in ("active", "pending", "ending", "codes")] == [None] * 4
    assert counts["failures"] == 0


@pytest.mark.parametrize(("status", "expected"), [({}, None), ({"ready": True}, 0)])
def test_that_nothing_fails_is_said_only_where_an_engine_took_up_a_policy(
    run, tmp_path: Path, status: dict, expected: int | None
) -> None:
    policy = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "status": status,
    }
    there = recorded(tmp_path / "bare.jsonl", world({"clusterpolicies": [policy]}))

    counts = json.loads(run("status", "-o", "json", file=there)[1])["counts"]
    code, _, err = run("status", "--exit-code", file=there)

    assert (counts["failures"], counts["severity-critical"]) == (expected, expected)
    assert (counts["blocks"], counts["active"]) == (0, 0)
    assert code == (expected is None)
    assert ("no engine has taken up any policy" in err) is (expected is None)


def test_a_tampered_record_is_named(run) -> None:
    code, out, err = run("audit", "verify")

    assert code == 1
    assert "edited at record 1 in audit-000001" in out
    assert "checked: the numbers, hashes and links of all records" in err
    assert "not checked: seals" in err
    assert "not checked: the end" in err
    assert run("audit", "verify", "-q")[2] == ""


def test_an_export_is_checked_without_a_cluster(run, tmp_path: Path) -> None:
    first = append(
        {"id": "a", "time": "2026-03-14T11:04:00Z", "actor": "ann", "verb": "request"}, None
    )
    second = append(
        {"id": "b", "time": "2026-03-14T11:05:00Z", "actor": "bob", "verb": "approve"},
        Checkpoint(1, first["hash"]),
    )
    segment = {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "AuditSegment",
        "metadata": {"name": "audit-000000001", "namespace": "kyverno"},
        "spec": {"records": [first, second]},
    }
    there = world()
    there.replace("auditsegments", [segment], NOW)
    whole = run("audit", "export", file=recorded(tmp_path / "whole.jsonl", there))[1]
    export = tmp_path / "export.jsonl"

    def verdict(text: str, *words: str) -> tuple[int, str]:
        export.write_text(text)
        code, out, err = run("audit", "verify", "-f", str(export), *words, file="")
        return code, out + err

    assert verdict(whole)[0] == 0
    assert verdict(whole.replace("approve", "deny"))[0] == 1
    assert verdict(whole.splitlines()[1])[0] == 1
    code, said = verdict(whole + "{\n")
    assert (code, f"{export}:3: this is no record" in said) == (1, True)
    code, said = verdict(whole, "--seals")
    assert (code, "an export holds no seals" in said) == (2, True)


def test_what_a_verdict_rests_on_is_in_its_data(run) -> None:
    found = json.loads(run("audit", "verify", "--checkpoint", "1:abc", "-o", "json")[1])

    assert (found["kind"], found["whole"]) == ("AuditVerdict", False)
    assert found["checked"][-1] == "the heads that were kept elsewhere"
    assert [text.split(",")[0] for text in found["notChecked"]] == ["seals"]


def test_uses_in_a_journal_stand_among_the_records_and_are_not_exported_as_such(run) -> None:
    records = json.loads(run("audit", "log", "-o", "json")[1])["items"]

    assert {one["kind"] for one in records} == {"AuditRecord", "JournalEntry"}
    assert all(one["metadata"]["name"] for one in records)
    exported = [json.loads(line) for line in run("audit", "export")[1].splitlines()]
    assert all("kind" not in one and "hash" in one for one in exported), (
        "as stored, for its hash is of that"
    )
    assert [
        one["verb"]
        for one in map(
            json.loads, run("audit", "export", "--where", "verb=approve")[1].splitlines()
        )
    ] == ["approve"] * 2


def test_audit_records_are_filtered_and_exported(run) -> None:
    assert len(run("audit", "log", "--actor", "bob", "--no-headers")[1].splitlines()) == 1
    assert len(run("audit", "log", "--verb", "approve", "--no-headers")[1].splitlines()) == 2
    cef = run("audit", "export", "--format", "cef")[1].splitlines()
    assert len(cef) == 4
    assert cef[0].startswith(
        "CEF:0|kpolicy|kpolicy|1|request|request|3|rt=2026-03-14T11:04:00Z suser=alice"
    )
    assert cef[3].split("|")[6] == "7", "a denial weighs more"


def test_an_actor_whom_nobody_proved_is_shown_so_wherever_a_record_is(run, tmp_path: Path) -> None:
    entry_ = {"id": "x", "time": "2026-03-14T11:04:00Z", "actor": "bob", "verb": "create", "object": {"kind": "GrantPolicy", "name": "g"}, "result": "ok", "unproven": True}  # fmt: skip
    record = append(entry_, None)
    segment = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "AuditSegment", "metadata": {"name": "audit-000000001", "namespace": "kyverno"}, "spec": {"records": [record]}}  # fmt: skip
    there = world()
    there.replace("auditsegments", [segment], NOW)
    file = recorded(tmp_path / "unproven.jsonl", there)

    assert "bob (not proven)" in run("audit", "log", "--actor", "bob", file=file)[1]
    assert run("audit", "log", "--actor", "bo", "--no-headers", file=file)[1] == ""
    assert "suser=bob (not proven)" in run("audit", "export", "--format", "cef", file=file)[1]
    code, out, _ = run("audit", "verify", file=file)
    assert code == 0
    assert (
        "1 of them name an actor whom nobody proved: what they tell was seen in the cluster, who did it was not"
        in out
    )
    assert json.loads(run("audit", "verify", "-o", "json", file=file)[1])["unproven"] == 1
    assert "nobody proved" not in run("audit", "verify")[1]


@pytest.mark.parametrize("form", ["html", "md", "csv", "sarif", "junit"])
def test_reports_hold_every_row_and_nothing_that_runs(tmp_path, run, form: str) -> None:
    there = world()
    there.objects("reports")[0]["results"][0]["message"] = '<script>alert(1)</script> & "x" ]]>'
    code, out, _ = run(
        "report", "violations", "--format", form, file=recorded(tmp_path / "x.jsonl", there)
    )

    assert code == 0
    assert out.count("disallow-host-namespaces") >= 1
    if form in ("html", "junit"):
        assert "<script>" not in out
    if form == "sarif":
        assert len(json.loads(out)["runs"][0]["results"]) == 7
    if form == "junit":
        from xml.etree import ElementTree as ET

        assert ET.fromstring(out).attrib["failures"] == "7"


def test_compliance_is_that_of_all_namespaces_whichever_one_is_asked_from(run) -> None:
    rows = csv.DictReader(io.StringIO(run("report", "compliance", "-n", "search", "--format", "csv")[1]))  # fmt: skip
    failures = json.loads(run("violations", "-A", "-o", "json")[1])["items"]

    counted = Counter(one["policy"] for one in failures)
    found = {row["name"]: int(row["fail"]) for row in rows}
    assert found == {name: counted[name] for name in found}
    assert found["require-run-as-nonroot"] == 2


def test_repairs_are_commands_or_comments(run) -> None:
    out = run("doctor", "--fix-commands")[1]

    assert all(line.startswith(("kubectl ", "# ")) for line in out.splitlines())
    assert "# policies: to see why: kubectl kpolicy policies describe NAME" in out.splitlines()
    assert run("doctor", "--exit-code")[0] == 1


def test_pruning_says_what_it_would_do_before_it_does(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["x"])
    code = entry.main(["exceptions", "prune", "--kubeconfig", str(tmp_path / "none")])

    assert code == ExitCode.UNREACHABLE


def test_the_spec_holds_every_command_with_help_and_example(capsys) -> None:
    assert entry.main(["spec"]) == 0
    spec = json.loads(capsys.readouterr().out)

    assert spec["exitCodes"]["5"] == "refused"
    assert "list" in spec["commands"]["violations"]["verbs"]
    assert spec["commands"]["violations"]["verbs"]["list"]["flags"]["--where"]["takesValue"]
    assert {"request", "approve"} <= {one["id"] for one in spec["actions"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("KPOLICY_CONFIG", str(tmp_path / "kpolicy.toml"))
    return tmp_path / "kpolicy.toml"


def test_a_first_configuration_is_written_once_and_is_valid(home: Path, capsys) -> None:
    assert entry.main(["config", "init"]) == 0
    assert entry.main(["config", "validate"]) == 0
    assert entry.main(["config", "init"]) == 1
    assert home.exists()
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[tui]\nthem = 'x'\n",
            "kpolicy.toml:2: unknown key `them` in `tui`\nhelp: did you mean `theme`?",
        ),
        ("[tiu]\n", "unknown table `tiu`"),
        ("[tui]\nascii = 'yes'\n", "`ascii` in `tui` is true or false"),
        ("[context.prod]\nfavourites = 3\n", "is a list of texts"),
        ("[views]\nx = 'violations: sevv=1'\n", "there is no column `sevv`"),
        ("[views]\nx = 'nowhere: a'\n", "view `x` is for no screen"),
        ("[keymap]\nrequest = ['e']\n", "is both"),
        ("[keymap]\nnothing = ['e']\n", "there is no action `nothing`"),
        ("[tui\n", "kpolicy.toml"),
        ("[tui]\n# \udcff\n", "kpolicy.toml: not encoded as UTF-8"),
    ],
)
def test_mistakes_in_the_configuration_are_named(home: Path, capsys, text: str, words: str) -> None:
    home.write_bytes(text.encode("utf-8", "surrogateescape"))

    assert entry.main(["config", "validate"]) == 1
    assert words in capsys.readouterr().err


def test_production_is_read_only_unless_it_says_otherwise(home: Path) -> None:
    from kubectl_kpolicy.session.config import load_config

    home.write_text(
        "[context.'staging*']\nread_only = true\n[context.prod-lab]\nread_only = false\n"
    )
    config = load_config()

    assert [config.is_read_only(name) for name in ("prod-eu", "staging-1", "prod-lab", "kind")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_environment_wins_over_the_file(home: Path, monkeypatch) -> None:
    from kubectl_kpolicy.session.config import load_config

    home.write_text("[tui]\ntheme = 'light'\n")
    monkeypatch.setenv("KPOLICY_TUI__THEME", "cvd-dark")

    assert load_config().tui("theme") == "cvd-dark"


def test_the_console_says_that_it_needs_a_terminal(replay: str, capsys, home: Path) -> None:
    assert entry.main(["tui", "--replay", replay]) == 1
    assert "the console needs a terminal" in capsys.readouterr().err


def test_machine_output_loads_neither_textual_nor_the_kubernetes_package(
    replay: str, tmp_path: Path
) -> None:
    code = (
        "import sys\nfrom kubectl_kpolicy.entry import main\n"
        f"main(['violations', '-o', 'json', '--replay', {replay!r}])\n"
        f"main(['violations', '-o', 'json', '--kubeconfig', {write_config(tmp_path)!r}])\n"
        "print(sorted({'textual', 'rich', 'kubernetes'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stderr.splitlines()[-1] == "[]"
    assert json.loads(done.stdout)["kind"] == "List"


def write_config(folder: Path) -> str:
    path = folder / "kubeconfig"
    path.write_text(
        "current-context: x\nclusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {token: t}}]\n"
    )
    return str(path)


@pytest.mark.parametrize(
    "command", ["violations", "policies", "exceptions", "cleanup", "audit", "config"]
)
def test_commands_with_verbs_list_without_one(command: str) -> None:
    from kubectl_kpolicy.cli import parser_of

    parser, _ = parser_of(command)
    assert parser.parse_args([]).verb == parser.usual
    assert parser.usual


def test_completion_offers_verbs_and_flags() -> None:
    from kubectl_kpolicy.complete import candidates

    assert "describe" in [name for name, _ in candidates(["violations", ""])[0]]
    assert "--where" in [name for name, _ in candidates(["violations", "list", "--w"])[0]]


def test_a_report_of_findings_is_for_findings(run, tmp_path: Path) -> None:
    code, out, err = run("report", "grants", "--format", "sarif")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "sarif is for findings" in err
    code, _, err = run("report", "violations", "-O", str(tmp_path / "no" / "file"))
    assert (code, "cannot write" in err) == (1, True)
