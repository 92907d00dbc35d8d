from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from aiohttp import web

from .serving import Api, config_map, pod, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

HOOKS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
Verdict = dict[str, Any]


def allow(_: Any) -> Verdict:
    return {"allowed": True}


def deny(text: str, **more: Any) -> Callable[[Any], Verdict]:
    return lambda _: {"allowed": False, "status": {"message": text, **more}}


def patch(*operations: Any) -> Verdict:
    text = base64.b64encode(orjson.dumps(list(operations))).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


class Webhook:
    """A webhook server of its own that remembers what it was asked, and by whom."""

    def __init__(self, port: int, bundle: str) -> None:
        self.port, self.bundle = port, bundle
        self.asked: list[Any] = []
        self.callers: list[Any] = []
        self.verdict: Callable[[Any], Verdict] = allow

    def configuration(
        self, kind: str = "Validating", *, name: str = "w", **hook: Any
    ) -> dict[str, Any]:
        rules = [
            {
                "operations": ["*"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }
        ]
        made = {
            "name": f"{name}.example.com",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self.port}/{name}",
                "caBundle": self.bundle,
            },
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": rules,
            **hook,
        }
        return {
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [made],
        }

    async def install(self, api: Api, kind: str = "Validating", **hook: Any) -> None:
        await api.post(
            f"{HOOKS}/{kind.lower()}webhookconfigurations", self.configuration(kind, **hook)
        )


@asynccontextmanager
async def webhook(api: Api) -> AsyncIterator[Webhook]:
    """Serve a webhook with a certificate of the sandbox's own authority, asking for the caller's."""
    files = api.sandbox.files
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files.authority))
    context.load_cert_chain(*files.pair("server"))
    context.verify_mode = ssl.CERT_REQUIRED
    made = Webhook(0, base64.b64encode(files.authority.read_bytes()).decode())

    async def answer(request: web.Request) -> web.Response:
        review = await request.json()
        made.asked.append(review["request"])
        assert request.transport is not None
        made.callers.append(request.transport.get_extra_info("peercert")["subject"])
        response = {"uid": review["request"]["uid"], **made.verdict(review["request"])}
        return web.json_response(
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        )

    app = web.Application()
    app.router.add_post("/{name}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        made.port = runner.addresses[0][1]
        yield made
    finally:
        await runner.cleanup()


def test_a_denial_has_kube_apiservers_words_and_the_caller_shows_a_certificate(
    tmp_path: Path,
) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            hook.verdict = deny("no way\n\nat all")
            await hook.install(api)
            status, refusal = await api("POST", MAPS, config_map(k="v"))
            assert status == 400
            assert (
                refusal["message"]
                == 'admission webhook "w.example.com" denied the request: no way\n\nat all'
            )
            assert "reason" not in refusal
            request = hook.asked[0]
            assert (request["operation"], request["name"], request["namespace"]) == (
                "CREATE",
                "a",
                "default",
            )
            assert request["userInfo"]["username"] == "kubernetes-admin"
            assert request["object"]["data"] == {"k": "v"}
            assert request["oldObject"] is None
            assert request["dryRun"] is False
            assert (
                dict(pair for part in hook.callers[0] for pair in part)["commonName"]
                == "kube-apiserver-webhook-client"
            )
            hook.verdict = deny("", reason="Forbidden", code=403)
            status, refusal = await api("POST", MAPS, config_map())
            assert (status, refusal["reason"]) == (403, "Forbidden")

    run(tmp_path, test)


def test_updates_and_deletions_are_reviewed_with_what_was_there_before(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            await hook.install(api)
            await api.post(MAPS, config_map(k="1"))
            await api("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, Content_Type=MERGE)
            await api("DELETE", f"{MAPS}/a")
            create, update, delete = hook.asked
            assert (update["operation"], update["oldObject"]["data"], update["object"]["data"]) == (
                "UPDATE",
                {"k": "1"},
                {"k": "2"},
            )
            assert (delete["operation"], delete["object"], delete["oldObject"]["data"]) == (
                "DELETE",
                None,
                {"k": "2"},
            )
            assert delete["options"]["kind"] == "DeleteOptions"
            assert create["options"]["kind"] == "CreateOptions"

    run(tmp_path, test)


def test_mutating_webhooks_run_in_order_of_names_and_again_where_asked(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:

            def verdict(request: Any) -> Verdict:
                data = request["object"]["data"]
                if "b" not in data:
                    return patch({"op": "add", "path": "/data/b", "value": "1"})
                return patch({"op": "add", "path": "/data/c", "value": data["b"] + "2"})

            hook.verdict = verdict
            await hook.install(api, "Mutating", name="one", reinvocationPolicy="IfNeeded")
            await hook.install(api, "Mutating", name="two")
            made = await api.post(MAPS, config_map(a="0"))
            assert made["data"] == {"a": "0", "b": "1", "c": "12"}
            assert len(hook.asked) == 3

    run(tmp_path, test)


@pytest.mark.parametrize("allowed", [True, False])
def test_warnings_of_a_webhook_reach_the_client(tmp_path: Path, allowed: bool) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            hook.verdict = lambda _: {"allowed": allowed, "warnings": ['policy "x"\nfailed']}
            await hook.install(api)
            async with api.open("POST", MAPS, config_map()) as answer:
                assert answer.headers["Warning"] == '299 - "policy \\"x\\" failed"'

    run(tmp_path, test)


def test_who_cannot_be_asked_denies_or_is_passed_over_as_the_configuration_says(
    tmp_path: Path,
) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            hook.port = 1
            await hook.install(api, failurePolicy="Ignore")
            await api.post(MAPS, config_map("a"))
            await hook.install(api, name="x", failurePolicy="Fail")
            status, refusal = await api("POST", MAPS, config_map("b"))
            assert (status, refusal["reason"]) == (500, "InternalError")
            text = 'Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s"'
            assert refusal["message"].startswith(text)

    run(tmp_path, test)


def test_a_webhook_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            open_ones: list[asyncio.StreamWriter] = []

            async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                open_ones.append(writer)

            server = await asyncio.start_server(silent, "127.0.0.1", 0)
            hook.port = server.sockets[0].getsockname()[1]
            await hook.install(api, timeoutSeconds=1)
            status, refusal = await api("POST", MAPS, config_map())
            assert status == 500
            assert "context deadline exceeded" in refusal["message"]
            for writer in open_ones:
                writer.close()
                await writer.wait_closed()
            server.close()
            await server.wait_closed()

    run(tmp_path, test)


def test_a_dry_run_is_said_to_be_one_and_side_effects_are_not_accepted(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            wrong = hook.configuration(sideEffects="Some")
            status, refusal = await api("POST", f"{HOOKS}/validatingwebhookconfigurations", wrong)
            assert status == 422
            assert 'webhooks[0].sideEffects: Unsupported value: "Some"' in refusal["message"]
            await hook.install(api, name="n", sideEffects="NoneOnDryRun")
            await api.post(f"{MAPS}?dryRun=All", config_map())
            assert hook.asked[0]["dryRun"] is True
            assert hook.asked[0]["options"]["dryRun"] == ["All"]

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "short"),
        ("admissionReviewVersions", []),
        ("timeoutSeconds", 31),
        ("clientConfig", {"url": "http://127.0.0.1/"}),
        ("clientConfig", {}),
        ("clientConfig", {"service": {"name": "x"}}),
    ],
)
def test_a_webhook_that_could_not_be_called_is_refused(
    tmp_path: Path, field: str, value: Any
) -> None:
    async def test(api: Api) -> None:
        made = Webhook(1, "").configuration()
        made["webhooks"][0][field] = value
        status, refusal = await api("POST", f"{HOOKS}/validatingwebhookconfigurations", made)
        assert (status, f"webhooks[0].{field}" in refusal["message"]) == (422, True)

    run(tmp_path, test)


def test_selectors_and_conditions_decide_whether_a_webhook_is_asked(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            await api.post(
                "/api/v1/namespaces", {"metadata": {"name": "seen", "labels": {"watched": "yes"}}}
            )
            chosen = {"matchLabels": {"watched": "yes"}}
            condition = {
                "name": "not-skipped",
                "expression": "!(has(object.data) && 'skip' in object.data)",
            }
            await hook.install(api, namespaceSelector=chosen, matchConditions=[condition])
            hook.asked.clear()
            await api.post(MAPS, config_map("out"))
            place = "/api/v1/namespaces/seen/configmaps"
            await api.post(place, config_map("skipped", "seen", skip="1"))
            await api.post(place, config_map("in", "seen"))
            names = [one["name"] for one in hook.asked if one["operation"] == "CREATE"]
            assert [name for name in names if name != "kube-root-ca.crt"] == ["in"]

    run(tmp_path, test)


def test_a_webhook_for_core_events_sees_those_of_the_new_group_as_core_events(
    tmp_path: Path,
) -> None:
    events = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["events"],
    }
    place = "/apis/events.k8s.io/v1/namespaces/default/events"

    def event(name: str) -> dict[str, Any]:
        about = {"kind": "Pod", "name": "p", "namespace": "default"}
        return {
            "metadata": {"name": name},
            "regarding": about,
            "note": "hello",
            "reason": "R",
            "type": "Normal",
        }

    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            hook.verdict = lambda _: patch(
                {"op": "replace", "path": "/message", "value": "changed"}
            )
            await hook.install(api, "Mutating", rules=[events])
            made = await api.post(place, event("e"))
            assert made["note"] == "changed"
            request = hook.asked[0]
            assert (request["kind"]["group"], request["requestKind"]["group"]) == (
                "",
                "events.k8s.io",
            )
            assert (request["object"]["apiVersion"], request["object"]["message"]) == (
                "v1",
                "hello",
            )
            await api("DELETE", f"{HOOKS}/mutatingwebhookconfigurations/w")
            await hook.install(api, "Mutating", rules=[events], matchPolicy="Exact")
            await api.post(place, event("f"))
            assert len(hook.asked) == 1

    run(tmp_path, test)


def test_webhooks_are_never_asked_about_webhook_configurations(tmp_path: Path) -> None:
    everything = {
        "operations": ["*"],
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": ["*/*"],
    }

    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            hook.verdict = deny("no")
            await hook.install(api, rules=[everything])
            assert (await api("POST", MAPS, config_map()))[0] == 400
            assert (await api("DELETE", f"{HOOKS}/validatingwebhookconfigurations/w"))[0] == 200

    run(tmp_path, test)


def test_a_service_is_reached_where_it_was_said_to_listen(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            service = {
                "service": {"name": "kubernetes", "namespace": "default", "path": "/w"},
                "caBundle": hook.bundle,
            }
            await hook.install(api, clientConfig=service)
            status, refusal = await api("POST", MAPS, config_map())
            assert (
                status,
                'no endpoints available for service "kubernetes"' in refusal["message"],
            ) == (500, True)
            await api("POST", "/sandbox/services", {"default/kubernetes": f"127.0.0.1:{hook.port}"})
            await api.post(MAPS, config_map())
            assert len(hook.asked) == 1
            assert (await api("POST", "/sandbox/services", {"a/b": "example.com:443"}))[0] == 400

    run(tmp_path, test)


def test_deleting_all_asks_about_each(tmp_path: Path) -> None:
    pods = {
        "operations": ["DELETE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }

    async def test(api: Api) -> None:
        async with webhook(api) as hook:
            for name in ("a", "b"):
                await api.post("/api/v1/namespaces/default/pods", pod(name))
            await hook.install(api, rules=[pods])
            await api("DELETE", "/api/v1/namespaces/default/pods")
            assert sorted(one["name"] for one in hook.asked) == ["a", "b"]

    run(tmp_path, test)
