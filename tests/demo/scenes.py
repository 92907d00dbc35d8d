"""What the guided run shows: scenes of steps, each with its policies, its objects and what the reader should see."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.record import record

NOW = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
"""The instant of every decision in the run, so that its output is the same everywhere."""


@record
class Step:
    """One question: these policies on these objects.

    `cluster` are sample files whose objects stand in the imagined cluster; `user` makes the request; `only` names the
    objects to show, where a file holds more.
    """

    says: str
    policies: tuple[str, ...]
    objects: tuple[str, ...]
    cluster: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    user: str = "jane"
    labels: tuple[tuple[str, str], ...] = ()


@record
class Scene:
    """One scenario."""

    title: str
    says: str
    steps: tuple[Step, ...]


CODES = ("one-time-codes/2-host-namespaces.yaml",)
JOURNAL = ("one-time-codes/1-journal.yaml",)

SCENES = (
    Scene(
        "One-time codes",
        "A refusal hands out a code; with a known code the same object passes once.",
        (
            Step(
                "A Deployment that shares the host IPC namespace is refused, with a fresh code.",
                CODES,
                ("one-time-codes/4-deployment.yaml",),
                cluster=JOURNAL,
            ),
            Step(
                "With a code that the journal does not hold it is refused, and gets no new one.",
                CODES,
                ("one-time-codes/5-deployment-with-code.yaml",),
                cluster=JOURNAL,
            ),
            Step(
                "With the starter code ua8v92pg it passes; the journal records who used it and when.",
                (*CODES, "one-time-codes/3-journal-keeper.yaml"),
                ("one-time-codes/5-deployment-with-code.yaml",),
                cluster=JOURNAL,
                labels=(("otp", "ua8v92pg"),),
            ),
        ),
    ),
    Scene(
        "Temporary exceptions",
        "An exception brings its own end: a clean-up policy four hours ahead.",
        (
            Step(
                "Creating the exception generates the clean-up policy that removes it.",
                ("temporary-exceptions/2-automate-cleanup.yaml",),
                ("temporary-exceptions/3-exception.yaml",),
            ),
        ),
    ),
    Scene(
        "Environments",
        "Namespaces of a pipeline get their rights; privileged containers and foreign registries are held off.",
        (
            Step(
                "A namespace made by the runner's service account gets a RoleBinding.",
                ("environments/2-namespace-admin.yaml",),
                ("pod-security/4-namespace-plain.yaml",),
                user="system:serviceaccount:gitlab:gitlab-runner-ephemeral-env",
            ),
            Step(
                "A privileged Pod is refused; Pods in debug and runners in gitlab are excluded.",
                ("environments/3-privileged-all.yaml",),
                ("environments/5-pods.yaml",),
            ),
            Step(
                "Images come from one registry; the rule for Deployments is computed from the Pod rule.",
                ("environments/4-registries.yaml",),
                ("jobs/5-deployment.yaml",),
            ),
        ),
    ),
    Scene(
        "Pod security levels and jobs",
        "Defaults are added, forbidden levels refused, and what is missing is reported.",
        (
            Step(
                "A namespace that says nothing gets the restricted level.",
                ("pod-security/1-default-label.yaml", "pod-security/2-allowed-labels.yaml"),
                ("pod-security/4-namespace-plain.yaml",),
            ),
            Step(
                "A namespace that asks for privileged is refused.",
                ("pod-security/1-default-label.yaml", "pod-security/2-allowed-labels.yaml"),
                ("pod-security/3-namespace.yaml",),
            ),
            Step(
                "Jobs get a time to live, Deployments are spread, missing requests are reported.",
                ("jobs/1-ttl.yaml", "jobs/2-requests-limits.yaml", "jobs/3-spread.yaml"),
                ("jobs/4-job.yaml", "jobs/5-deployment.yaml"),
            ),
        ),
    ),
    Scene(
        "Signed exceptions",
        "An exception counts only when the right workflow signed it.",
        (
            Step(
                "An exception that nobody signed is refused.",
                ("signed-exceptions/policy.yaml",),
                ("signed-exceptions/exception.yaml",),
            ),
        ),
    ),
)
