"""`python -m tests.packaging.chart [--check]`: makes the Helm chart and the kustomize base in charts/ from what `install` prints.

Everything below charts/ is made here and kept, so that it can be read and installed from a clone; a test holds it to what would be
made. `monitoring` has the alert rules and the dashboard for whoever has neither the Prometheus operator nor Grafana's sidecar.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controllers import installation
from controllers.manifests import monitoring
from controllers.manifests.bundle import installed, marked
from controllers.manifests.choice import Choice, words_of
from controllers.manifests.crds import definitions
from controllers.manifests.deploy import PINNED
from engine.lang.yaml.write import write, write_all

from .templates import templates, value_name, values
from .wheel import ROOT, project

if TYPE_CHECKING:
    from pathlib import Path

CHARTS = ROOT / "charts"
CHART = "kpolicy"
_MADE = "# Made by `python -m tests.packaging.chart`; change what it is made from.\n"
_OWN_VALUES = {
    "bringKinds": (True, "whether an upgrade brings the kinds up to date first; Helm itself leaves kinds that are there as they are"),
    "removeKinds": (False, "whether the kinds go with the release, and with them every policy, exception, grant and record"),
}  # fmt: skip
"""Values beside those of Choice: what the chart's hooks do."""


def main() -> int:
    """Write the files, or with `--check` name those that are not as they would be and return 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging.chart", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        stale = differing()
        print(*stale, sep="\n")
        return 1 if stale else 0
    shutil.rmtree(CHARTS / CHART / "templates", ignore_errors=True)
    for name, text in made().items():
        path = CHARTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def differing() -> list[str]:
    """Return the names of files that are not as they would be made, and of templates that would not be made."""
    wanted = made()
    there = {
        str(path.relative_to(CHARTS)) for path in (CHARTS / CHART).rglob("*") if path.is_file()
    }
    stale = [name for name, text in wanted.items() if not _is(CHARTS / name, text)]
    return sorted([*stale, *(there - wanted.keys())])


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


def made() -> dict[str, str]:
    """Return the text of every file below charts/ that is made here, by its name."""
    chart = {
        "Chart.yaml": _MADE + write(_chart()),
        "values.yaml": _values(),
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "crds/kinds.yaml": _kinds(),
        "templates/NOTES.txt": _NOTES,
        **{f"templates/{name}.yaml": text for name, text in _templates().items()},
    }
    base = {
        "kustomization.yaml": _MADE + write(_kustomization()),
        "controllers.yaml": _MADE + write_all(installed(Choice(with_kinds=False))),
    }
    watching = {
        "monitoring/rules.yaml": _MADE + write(monitoring.alert_rules()),
        "monitoring/dashboard.json": json.dumps(monitoring.dashboard(), indent=2) + "\n",
    }
    return {**{f"{CHART}/{name}": text for name, text in chart.items()}, **base, **watching}


def _chart() -> dict[str, Any]:
    about = project()
    return {
        "apiVersion": "v2",
        "name": CHART,
        "description": about["description"],
        "type": "application",
        "version": about["version"],
        "appVersion": about["version"],
        "home": about["urls"]["Homepage"],
    }


def _values() -> str:
    words = {value_name(name): text for name, text in words_of().items() if name != "namespace"}
    own = {name: usual for name, (usual, _) in _OWN_VALUES.items()}
    words |= {name: text for name, (_, text) in _OWN_VALUES.items()}
    parts = [f"# {words[name]}\n{write({name: usual})}" for name, usual in (values() | own).items()]
    return _MADE + "\n" + "\n".join(parts)


def _schema() -> dict[str, Any]:
    own = {name: usual for name, (usual, _) in _OWN_VALUES.items()}
    properties = {name: _kind_of(usual) for name, usual in (values() | own).items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {**properties, "global": {"type": "object"}},
    }


def _kind_of(usual: Any) -> dict[str, Any]:
    match usual:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer", "minimum": 1}
        case list():
            return {"type": "array", "items": {"type": "string", "minLength": 1}}
        case _:
            return {"type": "string", **({"minLength": 1} if usual else {})}


def _kinds() -> str:
    """Return the kinds, one a line: a schema over several lines would be half a million of them."""
    lines = [
        json.dumps(marked(one), separators=(",", ":"), ensure_ascii=False) for one in definitions()
    ]
    return _MADE + "".join(f"---\n{line}\n" for line in lines)


def _templates() -> dict[str, str]:
    """Return the text of each template: one for each kind of object, and one for each hook."""
    parts: dict[str, list[str]] = {}
    for text in templates(lambda choice: installed(replace(choice, with_kinds=False))):
        parts.setdefault(_file_of(text), []).append(text)
    leaving = templates(_leaving, with_kinds=(False, ".Values.removeKinds"))
    bringing = templates(lambda choice: _hook(installation.bringing_kinds(), choice))
    whole = {name: "".join(texts) for name, texts in parts.items()}
    whole["hook-leave"] = "".join(leaving)
    whole["hook-kinds"] = "{{- if .Values.bringKinds }}\n" + "".join(bringing) + "{{- end }}\n"
    return {name: f"{{{{/* {_MADE[2:-1]} */ -}}}}\n{text}" for name, text in whole.items()}


def _leaving(choice: Choice) -> list[Any]:
    return _hook(installation.leaving(choice), choice)


def _hook(hook: installation.Hook, choice: Choice) -> list[Any]:
    return [marked(one) for one in installation.objects_of(hook, choice)]


def _file_of(text: str) -> str:
    kind = next(line for line in text.splitlines() if line.startswith("kind: "))
    return kind.removeprefix("kind: ").lower()


def _kustomization() -> dict[str, Any]:
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{CHART}/crds/kinds.yaml", "controllers.yaml"],
    }


_NOTES = f"""{{{{- if not (regexMatch `^{PINNED.pattern}$` .Values.image) }}}}
warning: `{{{{ .Values.image }}}}` is named by a tag, behind which another image can be put; set image=NAME@sha256:DIGEST
{{{{- end }}}}
{{{{ .Values.replicas }}}} replicas in {{{{ .Release.Namespace }}}}. What is checked next: kubectl kpolicy doctor
Deleting the release {{{{ if .Values.removeKinds }}}}takes the kinds with it, and every policy{{{{ else }}}}leaves the kinds, and every policy and record{{{{ end }}}}.
"""

if __name__ == "__main__":
    sys.exit(main())
