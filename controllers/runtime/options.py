"""The command line of `python -m controllers`: what operators may set, under upstream's names where upstream has them (row W-33)."""

from __future__ import annotations

import argparse
import os
import socket
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from controllers.store.policies import ExceptionRules
from engine.lang import duration
from engine.native import MUTATING, VALIDATING

from .logs import FORMATS, TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NETWORK = "a network such as 10.0.0.0/8 or a single address"


@dataclass(frozen=True, slots=True)
class Outside:
    """Texts as given: see `EgressRules` for what they mean. `pull_secrets` are used for every image."""

    networks: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    plain_registries: tuple[str, ...] = ()
    namespaced_services: bool = False
    pull_secrets: tuple[str, ...] = ()


def add_outside_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags; all of them may be given more than once, and hold several texts with commas between them."""
    group = parser.add_argument_group("calls that policies cause outside of the API server (closed by default)")  # fmt: skip
    listed: dict[str, Any] = {"action": "extend", "type": _texts, "default": []}
    add = group.add_argument
    add("--egress-network", dest="egress_networks", **{**listed, "type": _networks}, metavar="CIDR", help="may be called though it lies on this machine, the link or another place that is refused by default")  # fmt: skip
    add("--egress-host", dest="egress_hosts", **listed, metavar="PATTERN", help="only hosts that fit one of these may be called (`*.example.org`)")  # fmt: skip
    add("--plain-registry", dest="plain_registries", **listed, metavar="HOST[:PORT]", help="a registry that is asked without TLS")  # fmt: skip
    add("--namespaced-services", action="store_true", help="let Policies of namespaces call services, too, and not only ClusterPolicies")  # fmt: skip
    add("--imagePullSecrets", dest="pull_secrets", **listed, metavar="NAME", help="Secrets of our namespace, or NAMESPACE/NAME, that are used for every image")  # fmt: skip


def outside_of(given: argparse.Namespace) -> Outside:
    """Return what the flags say."""
    return Outside(
        networks=tuple(given.egress_networks),
        hosts=tuple(given.egress_hosts),
        plain_registries=tuple(given.plain_registries),
        namespaced_services=given.namespaced_services,
        pull_secrets=tuple(given.pull_secrets),
    )


def outside_in(block: Mapping[str, Any]) -> Outside:
    """Return what a message of our own holds."""
    given: dict[str, Any] = dict(block)
    for name in ("networks", "hosts", "plain_registries", "pull_secrets"):
        given[name] = tuple(given[name])
    return Outside(**given)


def _texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _networks(text: str) -> list[str]:
    for part in _texts(text):
        try:
            ip_network(part)
        except ValueError:
            raise argparse.ArgumentTypeError(f"`{part}` is not {_NETWORK}") from None
    return _texts(text)


WEBHOOK, LOOPS = "webhook", "loops"
ROLES: Final = (WEBHOOK, LOOPS)
MOST_WORKERS: Final = 64
EACH, OWN = "each", "own"
CRD, STORE = "crd", "store"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one process. Durations are seconds.

    `workers` 0 answers requests in the process itself; otherwise so many child processes do, watched and fed by this one.
    `accounts` says whether each job speaks as its own service account or all as who we are.
    `reports` says who keeps reports.
    `generated_natives` are the kinds of native policies that are made for ours, `reported_natives` those that are reported about.
    `seed` fixes chance and `clock_ahead` moves the clock, for tests and demonstrations.
    """

    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = "kyverno"
    accounts: str = EACH
    roles: frozenset[str] = frozenset(ROLES)
    host: str = ""
    port: int = 9443
    metrics_port: int = 8000
    server_url: str = ""
    workers: int = 1
    seed: str = ""
    trusted_root: Path | None = None
    client_ca: Path | None = None
    client_names: tuple[str, ...] = ()
    trusts_path: bool = False
    identity: str = ""
    observe_only: bool = False
    force_ignore: bool = False
    resolve_values: bool = False
    exceptions: ExceptionRules = field(default_factory=ExceptionRules)
    background_scan: bool = True
    scan_interval: float = 3600.0
    scan_workers: int = 2
    open_reports: bool = False
    reports: str = CRD
    ttl_interval: float = 60.0
    omitted_events: frozenset[str] = frozenset()
    generated_natives: frozenset[str] = frozenset({VALIDATING})
    reported_natives: frozenset[str] = frozenset({VALIDATING})
    outside: Outside = field(default_factory=Outside)
    drain_seconds: float = 5.0
    clock_ahead: float = 0.0
    log_level: str = "info"
    log_format: str = TEXT
    tracing_address: str = ""

    @property
    def serves(self) -> bool:
        """Whether requests are answered."""
        return WEBHOOK in self.roles

    @property
    def loops(self) -> bool:
        """Whether the loops run."""
        return LOOPS in self.roles


def read_options(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """Return the options of a command line; ends the process with a message for one that cannot be read."""
    parser = _parser(environment)
    given = parser.parse_args(arguments)
    roles = frozenset(part.strip() for part in given.roles.split(",") if part.strip())
    if unknown := roles - set(ROLES):
        parser.error(f"unknown roles: {', '.join(sorted(unknown))}; there are {', '.join(ROLES)}")
    plain = {one.name: getattr(given, one.name) for one in fields(Options) if one.name in given}
    worked_out: dict[str, Any] = {
        "roles": roles,
        "client_names": tuple(given.client_names),
        "identity": given.identity or _identity(environment),
        "exceptions": ExceptionRules(given.exceptions_enabled, given.exception_namespace),
        "omitted_events": frozenset(filter(None, given.omit_events.split(","))),
        "generated_natives": _native_kinds(given.generate_validating, given.generate_mutating),
        "reported_natives": _native_kinds(given.report_validating, given.report_mutating),
        "outside": outside_of(given),
        "clock_ahead": sum(given.clock_ahead),
        "tracing_address": _traced(parser, given),
    }
    return Options(**{**plain, **worked_out})


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m controllers",
        description="Serve admission webhooks for policies and run the loops behind them.",
    )
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="how to reach the API server; without it, as a Pod does")
    add("--context", default="", help="context of the kubeconfig")
    add("--namespace", default=environment.get("KYVERNO_NAMESPACE") or "kyverno", help="where our own objects live (%(default)s)")  # fmt: skip
    add("--accounts", choices=(EACH, OWN), default=EACH, help="whether each job speaks as its own service account, by tokens that we ask for, or all of them as who we are: for tests and demonstrations only (%(default)s)")  # fmt: skip
    add("--roles", default=",".join(ROLES), help="what to do, comma separated (%(default)s)")
    add("--host", default="", help="address to listen on; all of them by default")
    add("--port", type=int, default=9443, help="port of the webhooks; 0 takes a free one (%(default)s)")  # fmt: skip
    add("--metrics-port", type=int, default=8000, help="port of the metrics; -1 serves none (%(default)s)")  # fmt: skip
    add("--server-url", default="", metavar="URL", help="where the API server reaches us, outside a cluster; `auto` is this port on 127.0.0.1")  # fmt: skip
    add("--workers", type=_workers, default=1, help="processes that answer requests; 0 answers in this one (%(default)s)")  # fmt: skip
    add("--seed", default="", help="fix what policies draw by chance; for tests and demonstrations only")  # fmt: skip
    add("--trusted-root", type=Path, metavar="FILE", help="trusted root (JSON) of a Sigstore instance; without it, rules that trust keyless signatures of manifests or images fail")  # fmt: skip
    add("--client-ca", type=Path, metavar="FILE", help="authorities of the certificate that the API server shows to webhooks: nobody else is answered. While the file is not there, the API server is called at secret paths; once it was there, only the certificate counts")  # fmt: skip
    add("--client-name", dest="client_names", action="append", default=[], metavar="NAME", help="common name of that certificate (repeatable); without one, every certificate of the authorities is the API server's")  # fmt: skip
    add("--secret-path", action="store_true", help="have the API server call us at paths drawn by chance, which is what happens anyway where it shows no certificate")  # fmt: skip
    add("--trust-path", dest="trusts_path", action="store_true", help="take whoever calls at a secret path for the API server, and let requests have all their effects: codes, uses of grants, generation, records, Events. The API server prints these paths when a call fails, so whoever reads that can forge requests for some seconds")  # fmt: skip
    add("--identity", default="", help="name of this replica")
    add("--observe-only", action="store_true", help="write no webhook configurations, so that nothing is enforced")  # fmt: skip
    add("--drain", dest="drain_seconds", type=_seconds, default=5.0, metavar="DURATION", help="how long requests are still answered after the signal to stop (5s)")  # fmt: skip
    add(
        "--reports",
        choices=(CRD, STORE),
        default=CRD,
        help="where reports are kept: as custom resources, or in the report store, which can choose them by what they say (%(default)s)",
    )
    add("--resolve-values", action="store_true", help="read `{{ … }}` in values of objects, requests and look-ups as expressions, too, as Kyverno does: whoever may write such a value then decides what is read and shown")  # fmt: skip
    add("--clock-ahead", type=_seconds, action="append", default=[], metavar="DURATION", help="how much later than the machine's clock it is; for tests and demonstrations only")  # fmt: skip
    _add_behaviour(parser)
    add_outside_flags(parser)
    return parser


def _add_behaviour(parser: argparse.ArgumentParser) -> None:
    """Add the flags that upstream has under the same names."""
    add = parser.add_argument
    add("--forceFailurePolicyIgnore", dest="force_ignore", type=_truth, nargs="?", const=True, default=False, help="let no policy block when it cannot be asked")  # fmt: skip
    add("--enablePolicyException", dest="exceptions_enabled", type=_truth, nargs="?", const=True, default=True, help="whether exceptions count (true)")  # fmt: skip
    add("--exceptionNamespace", dest="exception_namespace", default="*", help="where exceptions count (every namespace)")  # fmt: skip
    add("--backgroundScan", dest="background_scan", type=_truth, nargs="?", const=True, default=True, help="whether existing objects are scanned (true)")  # fmt: skip
    add("--backgroundScanInterval", dest="scan_interval", type=_seconds, default=3600.0, help="how often all of them are (1h)")  # fmt: skip
    add("--backgroundScanWorkers", dest="scan_workers", type=int, default=2, help="how many scan at once (2)")  # fmt: skip
    add("--openreportsEnabled", dest="open_reports", type=_truth, nargs="?", const=True, default=False, help="whether reports are of openreports.io and not of wgpolicyk8s.io (false)")  # fmt: skip
    add("--ttlReconciliationInterval", dest="ttl_interval", type=_seconds, default=60.0, help="how often kinds are looked for whose objects may have a TTL (1m)")  # fmt: skip
    add("--omitEvents", dest="omit_events", default="", help="reasons of Events that are not written")  # fmt: skip
    for name, destination, default, words in _NATIVE:
        add(f"--{name}", dest=destination, type=_truth, nargs="?", const=True, default=default, help=f"{words} ({str(default).lower()})")  # fmt: skip
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="how much is logged")  # fmt: skip
    add(
        "--loggingFormat",
        dest="log_format",
        choices=FORMATS,
        default=TEXT,
        help="how it is: words, or one JSON object a line (%(default)s)",
    )
    add(
        "--enableTracing",
        dest="is_traced",
        type=_truth,
        nargs="?",
        const=True,
        default=False,
        help="whether reviews are traced (false)",
    )
    add(
        "--tracingAddress",
        dest="tracing_address",
        default="",
        metavar="ADDRESS",
        help="OpenTelemetry collector that traces are posted to as OTLP over HTTP: a URL, or HOST[:PORT]",
    )


_NATIVE: Final = (
    ("generateValidatingAdmissionPolicy", "generate_validating", True, "whether policies that ask for it become ValidatingAdmissionPolicies"),
    ("generateMutatingAdmissionPolicy", "generate_mutating", False, "whether the status of MutatingPolicies says why there is no MutatingAdmissionPolicy for them; those that ask for one get it anyway"),
    ("validatingAdmissionPolicyReports", "report_validating", True, "whether ValidatingAdmissionPolicies are reported about"),
    ("mutatingAdmissionPolicyReports", "report_mutating", False, "whether MutatingAdmissionPolicies are reported about"),
)  # fmt: skip
"""Upstream's switches for native policies: name, destination, default, words."""


def _traced(parser: argparse.ArgumentParser, given: argparse.Namespace) -> str:
    """Return where traces go, empty where none are made."""
    if given.is_traced and not given.tracing_address:
        parser.error("--enableTracing wants --tracingAddress: where traces are posted to")
    return str(given.tracing_address) if given.is_traced else ""


def _native_kinds(validating: bool, mutating: bool) -> frozenset[str]:
    pairs = ((VALIDATING, validating), (MUTATING, mutating))
    return frozenset(kind for kind, is_on in pairs if is_on)


def _workers(text: str) -> int:
    count = int(text)
    if not 0 <= count <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"between 0 and {MOST_WORKERS} processes")
    return count


def _truth(text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError("true or false")
    return known[text.lower()]


def _seconds(text: str) -> float:
    nanoseconds = duration.parse(text)
    if nanoseconds is None or nanoseconds <= 0:
        raise argparse.ArgumentTypeError("a duration such as 30s, 5m or 1h")
    return nanoseconds / 1e9


def _identity(environment: Mapping[str, str]) -> str:
    return environment.get("KYVERNO_POD_NAME") or f"{socket.gethostname()}-{os.getpid()}"
