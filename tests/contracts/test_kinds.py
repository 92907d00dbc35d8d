"""A kind of policy is declared once: everything that goes through kinds finds it by its row."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from engine.model import kinds

TOY = """
import json, sys, types
from engine.model import kinds

shapes = types.ModuleType("toy")
sys.modules["toy"] = shapes
row = kinds.Family(
    "ToyPolicy", "NamespacedToyPolicy", "toypol", "ntoypol", "KyvernoToyPolicy",
    shape="toy:SHAPE", evaluator="toy:compile_toy",
)
kinds.declare(row)

from engine.parse.schema.nodes import TEXT, Shape
from engine.parse.schema.celkinds import VALIDATING
shapes.SHAPE = Shape({"matchConstraints": VALIDATING.fields["matchConstraints"], "answer": TEXT}, ("answer",))

def compile_toy(policy, exceptions):
    from engine.evaluate.state import answered
    from engine.evaluate.cel.constraints import compile_constraints
    from engine.evaluate.cel.policy_rule import cel_rule
    from engine.model import Status
    spec = policy.raw["spec"]
    constraints = compile_constraints(spec["matchConstraints"], namespace=policy.namespace)
    return (cel_rule(policy, "", constraints, lambda _: answered(Status.FAIL, spec["answer"]), enforce=True),)

shapes.compile_toy = compile_toy

def toy(kind, **metadata):
    constraints = {"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": {"name": "no", **metadata},
            "spec": {"matchConstraints": constraints, "answer": "no toys"}}

WIDE, NARROW = toy("ToyPolicy"), toy("NamespacedToyPolicy", namespace="shop")
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
"""


def in_process(script: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", TOY + dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_new_kind_is_read_checked_and_evaluated() -> None:
    assert in_process(
        """
        from engine.evaluate import PolicySet, evaluate, Inputs
        from engine.model import review_of
        from engine.parse import problems, unknown_fields
        from engine.parse.celpolicies import parse_cel_policy
        from datetime import UTC, datetime
        policies = [parse_cel_policy(one) for one in (WIDE, NARROW)]
        found = evaluate(PolicySet.compile(policies), review_of(POD), Inputs(datetime(2026, 1, 1, tzinfo=UTC)))
        print(json.dumps([
            [str(one.message) for one in problems({**WIDE, "spec": {"anwser": "x"}})],
            [[one.identity, one.status, one.message] for one in found.results],
        ]))
        """
    ) == [
        ["`spec.answer` is required", "unknown field `spec.anwser`"],
        [["toypol:no", "fail", "no toys"], ["ntoypol:shop/no", "fail", "no toys"]],
    ]


def test_a_new_kind_is_installed_allowed_watched_and_asked_for() -> None:
    made = in_process(
        """
        from controllers.kube.kinds import CEL_POLICIES
        from controllers.manifests.crds import definitions
        from controllers.manifests.rbac import rules
        from controllers.runtime.cluster_cache import WATCHED_IF_SERVED
        from controllers.store.policies import is_policy, policy_key
        from controllers.runtime.policy_cache import PolicyCache
        cache = PolicyCache()
        cache.put_policy(WIDE), cache.put_policy(NARROW)
        print(json.dumps({
            "crds": [one["metadata"]["name"] for one in definitions() if "toy" in one["metadata"]["name"]],
            "roles": [one for one in rules.CEL_POLICIES if "toy" in one],
            "watched": [str(one) for one in WATCHED_IF_SERVED if "toy" in str(one)],
            "policies": [is_policy(WIDE), policy_key(NARROW)],
            "lanes": [name for name in cache.snapshot.routes if "toy" in name],
            "problems": [str(one) for one in cache.snapshot.problems.values()],
        }))
        """
    )
    both = ["namespacedtoypolicies", "toypolicies"]
    assert made == {
        "crds": ["toypolicies.policies.kyverno.io", "namespacedtoypolicies.policies.kyverno.io"],
        "roles": both,
        "watched": ["toypolicies.policies.kyverno.io", "namespacedtoypolicies.policies.kyverno.io"],
        "policies": [True, "ntoypol:shop/no"],
        "lanes": ["fail/ntoypol", "fail/toypol"],
        "problems": [],
    }


def test_a_new_kind_is_applied_by_the_commands(tmp_path: Path) -> None:
    assert in_process(
        f"""
        from contextlib import redirect_stdout
        from io import StringIO
        from kubectl_kpolicy.entry import main
        import pathlib
        here = pathlib.Path({str(tmp_path)!r})
        (here / "policy.yaml").write_text(json.dumps(WIDE))
        (here / "pod.yaml").write_text(json.dumps(POD))
        said = StringIO()
        with redirect_stdout(said):
            code = main(["apply", str(here / "policy.yaml"), "--resource", str(here / "pod.yaml"), "-o", "json"])
        items = json.loads(said.getvalue())["items"]
        print(json.dumps([code, [[one["policy"], one["result"], one["message"]] for one in items]]))
        """
    ) == [1, [["no", "fail", "no toys"]]]


def test_every_row_refers_to_what_is_there() -> None:
    for family in kinds.FAMILIES:
        for reference in (
            family.shape,
            family.parser,
            family.linter,
            family.evaluator,
            family.effects,
        ):
            assert not reference or kinds.loaded(reference) is not None


def test_an_identity_is_read_as_it_is_written() -> None:
    for kind in kinds.ASKED_KINDS:
        key = "shop/team" if kind.is_namespaced else "team"
        assert kinds.named(kinds.identity(kind.kind, key)) == (kind, key)
