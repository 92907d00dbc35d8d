"""What the guided run plays: the five published scenarios, as the commands that a person would type.

An act waits until `until` has come back, so that what happens by and by is seen when it has. `finds` remembers a part of what
came back under a name that later acts write in braces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Mapping


@record
class Act:
    """One command: what it shows, who types it, and what must come back within a minute (a regular expression)."""

    says: str
    run: str
    until: str = ""
    user: str = ""
    finds: Mapping[str, str] = field(default_factory=dict)
    refused: bool = False


@record
class Written:
    """A file that is needed next: a sample with texts replaced, or text of its own."""

    to: str
    source: str = ""
    replace: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@record
class Play:
    """One scenario: what it is about, the folder of its samples, and its acts."""

    title: str
    says: str
    samples: str
    acts: tuple[Act | Written, ...]


READY = "kubectl wait --for=condition=Ready clusterpolicy --all --timeout=30s"
JOURNAL = "kubectl get configmap otp -n platform -o jsonpath={{.data.codes}}"
NONROOT = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-runasnonroot}
spec:
  validationFailureAction: Enforce
  rules:
  - name: runasnonroot
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: Containers do not run as root.
      pattern: {spec: {securityContext: {runAsNonRoot: true}}}
"""
MONGO = """\
apiVersion: v1
kind: Pod
metadata: {name: mongo-1, namespace: platform}
spec: {containers: [{name: mongo, image: "mongo:8"}]}
"""
SIGNED = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: validate-polex}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [PolicyException]}}]}
    validate:
      manifests:
        attestors:
        - entries:
          - keys: {publicKeys: "PUBLIC-KEY", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}
"""
EMERGENCY = """\
apiVersion: v1
kind: Pod
metadata: {name: emergency-busybox, namespace: falcon-dev}
spec:
  hostIPC: true
  containers: [{name: busybox, image: "busybox:1.28"}]
"""
HOSTS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: disallow-host-namespaces}
spec:
  validationFailureAction: Enforce
  rules:
  - name: host-namespaces
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: Host namespaces are not shared.
      pattern: {spec: {"=(hostIPC)": false}}
"""
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kyverno:bind-cluster-admin
  labels:
    rbac.kyverno.io/aggregate-to-background-controller: "true"
    rbac.kyverno.io/aggregate-to-admission-controller: "true"
rules:
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [cluster-admin]
  verbs: [bind]
"""
RUNNER = "system:serviceaccount:gitlab:gitlab-runner-ephemeral-env"
MESSAGES = "custom-columns=REASON:.reason,MESSAGE:.message"
TTL = "jsonpath={{.spec.ttlSecondsAfterFinished}}"
SPREAD = "jsonpath={{.spec.template.spec.topologySpreadConstraints}}"

PLAYS = (
    Play(
        "One-time codes",
        "A refusal hands out a code; with it the same object passes once, and the journal says who used it.",
        "one-time-codes",
        (
            Act("The journal and the policies that keep it are created.",
                "kubectl apply -f 1-journal.yaml -f 2-host-namespaces.yaml -f 3-journal-keeper.yaml"),
            Act("Both policies are ready.", READY),
            Act("A Deployment that shares the host IPC namespace is refused, with a fresh code.",
                "kubectl apply -f 4-deployment.yaml", user="jane", refused=True, finds={"code": r'pass code "([0-9a-z]{8})"'}),
            Act("The same code is in the journal.", JOURNAL, until="{code}"),
            Written("with-code.yaml", "5-deployment-with-code.yaml", {"uq1s17g8": "{code}"}),
            Act("With the code as the label `otp` the Deployment passes.",
                "kubectl apply -f with-code.yaml", user="jane", until="created"),
            Act("The journal says when it was used, and by whom.", JOURNAL, until="{code}-.*-jane"),
            Act("The Deployment is deleted …", "kubectl delete deployment busybox", until="deleted"),
            Act("… and the code is of no use a second time.",
                "kubectl apply -f with-code.yaml", user="jane", refused=True, until="has already been used"),
            Act("The policies are taken away.", "kubectl delete clusterpolicy --all"),
        ),
    ),
    Play(
        "Temporary exceptions",
        "An exception for one Pod of one user brings its own end, four hours later.",
        "temporary-exceptions",
        (
            Act("Without the right to make clean-up policies the policy is refused, naming what is missing.",
                "kubectl apply -f 2-automate-cleanup.yaml", refused=True, until="requires permissions"),
            Act("The right is given.", "kubectl apply -f 1-rights.yaml"),
            Act("Now the policy is accepted.", "kubectl apply -f 2-automate-cleanup.yaml", until="created"),
            Written("hosts.yaml", text=HOSTS),
            Act("A policy forbids sharing host namespaces.", "kubectl apply -f hosts.yaml"),
            Act("A namespace is made.", "kubectl create namespace falcon-dev"),
            Act("Both policies are ready.", READY),
            Written("pod.yaml", text=EMERGENCY),
            Act("Without an exception the Pod is refused.",
                "kubectl apply -f pod.yaml", user="chip", refused=True, until="host-namespaces"),
            Act("The exception is created …", "kubectl apply -f 3-exception.yaml"),
            Act("… and with it the clean-up policy that will end it.",
                "kubectl get clustercleanuppolicies", until="polex-falcon-dev"),
            Act("The Pod passes for chip, and for nobody else.",
                "kubectl apply -f pod.yaml", user="chip", until="created"),
            Act("The Pod is deleted again.", "kubectl delete -f pod.yaml --grace-period=0 --force"),
            Act("Four hours pass.", "kubectl kpolicy sandbox clock 4h1m"),
            Act("The exception is gone …",
                "kubectl get policyexceptions -n falcon-dev", until="No resources found"),
            Act("… and the Pod is refused again.",
                "kubectl apply -f pod.yaml", user="chip", refused=True, until="host-namespaces"),
            Act("The policies are taken away.", "kubectl delete clusterpolicy --all"),
        ),
    ),
    Play(
        "Environments",
        "A pipeline's namespaces get their rights; privileged containers and foreign registries are held off.",
        "environments",
        (
            Act("The runner's namespace …", "kubectl create namespace gitlab"),
            Act("… and one for debugging are made.", "kubectl create namespace debug"),
            Act("The runner gets its account.", "kubectl apply -f 1-runner-rights.yaml"),
            Written("rights.yaml", text=BINDING),
            Act("The engine may bind exactly one strong role.", "kubectl apply -f rights.yaml"),
            Act("A policy gives the runner's namespaces their RoleBinding.",
                "kubectl apply -f 2-namespace-admin.yaml", until="created"),
            Act("It is ready.", READY),
            Act("The runner makes a namespace …", "kubectl create namespace volee-1", user=RUNNER),
            Act("… which has its RoleBinding.",
                "kubectl get rolebindings -n volee-1", until="ephemeral-namespace-admin"),
            Act("Somebody deletes it …",
                "kubectl delete rolebinding ephemeral-namespace-admin -n volee-1", until="deleted"),
            Act("… and it is back.", "kubectl get rolebindings -n volee-1", until="ephemeral-namespace-admin"),
            Act("Privileged containers and foreign registries are forbidden, with exclusions.",
                "kubectl apply -f 3-privileged-all.yaml -f 4-registries.yaml"),
            Act("Both are ready.", READY),
            Act("Of five Pods those pass that are excluded; the others are refused by name.",
                "kubectl apply -f 5-pods.yaml", refused=True, until="privileged"),
            Act("Deployments are refused by a rule that nobody had to write.",
                "kubectl create deployment web --image=nginx", refused=True, until="autogen-"),
            Act("What is stored is what was applied.", "kubectl diff -f 4-registries.yaml"),
            Act("Each Pod has its report.", "kubectl get policyreports -A", until="Pod"),
            Act("The policies are taken away.", "kubectl delete clusterpolicy --all"),
        ),
    ),
    Play(
        "Signed exceptions",
        "Only exceptions that carry the right signature are accepted, and those take effect.",
        "signed-exceptions",
        (
            Written("signed-policy.yaml", text=SIGNED, replace={"PUBLIC-KEY": "{key}"}),
            Written("nonroot.yaml", text=NONROOT),
            Act("One policy asks for signatures on exceptions, another for containers that are not root.",
                "kubectl apply -f signed-policy.yaml -f nonroot.yaml"),
            Act("Both are ready.", READY),
            Written("mongo.yaml", text=MONGO),
            Act("The Pod is refused.", "kubectl apply -f mongo.yaml", refused=True, until="runasnonroot"),
            Act("An exception without a signature is refused, too.",
                "kubectl apply -f exception.yaml", refused=True, until="message not found"),
            Act("It is signed with our key.",
                "kubectl kpolicy sign -f exception.yaml -k signer.key --no-tlog-upload -o signed.yaml"),
            Written("altered.yaml", "signed.yaml", {"mongo*": "m*"}),
            Act("Altered afterwards it is refused, naming what was changed.",
                "kubectl apply -f altered.yaml", refused=True, until="diff found"),
            Act("As it was signed it is accepted …", "kubectl apply -f signed.yaml", until="created|configured"),
            Act("… and takes effect.", "kubectl apply -f mongo.yaml", until="created"),
            Act("The policies are taken away.", "kubectl delete clusterpolicy --all"),
        ),
    ),
    Play(
        "Pod security and jobs",
        "Defaults are added, forbidden levels refused, old Jobs removed, and what is missing is reported.",
        "pod-security",
        (
            Act("One policy adds a Pod Security level to namespaces, one refuses the privileged level.",
                "kubectl apply -f 1-default-label.yaml -f 2-allowed-labels.yaml"),
            Act("They are listed with their columns.", "kubectl get clusterpolicy", until="True[^\n]*\n[^\n]*True"),
            Act("A namespace that says nothing …", "kubectl apply -f 4-namespace-plain.yaml"),
            Act("… gets the restricted level.", "kubectl get namespace plain --show-labels", until="enforce=restricted"),
            Act("One that asks for the privileged level is refused.",
                "kubectl apply -f 3-namespace.yaml", refused=True, until="privileged pod security level"),
            Act("The refusal is an Event on the policy.",
                "kubectl get events --field-selector involvedObject.name=validate-pss-labels -o " + MESSAGES, until="check-restricted"),
            Act("Three policies for workloads follow.",
                "kubectl apply -f ../jobs/1-ttl.yaml -f ../jobs/2-requests-limits.yaml -f ../jobs/3-spread.yaml"),
            Act("They are ready.", READY),
            Act("A Job …", "kubectl apply -f ../jobs/4-job.yaml"),
            Act("… gets a time to live.", "kubectl get job pi -o " + TTL, until="90"),
            Act("A Deployment …", "kubectl create deployment spread --image=nginx"),
            Act("… is spread over nodes.", "kubectl get deployment spread -o " + SPREAD, until="topologyKey"),
            Act("What it lacks is in its report.", "kubectl get policyreports", until="Deployment +spread +[0-9]+ +[1-9]"),
        ),
    ),
)  # fmt: skip
