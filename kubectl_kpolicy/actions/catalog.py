"""The actions of the console, screen by screen, as `console.md` section 3 lays them out.

A lower-case letter never changes the cluster: at most it opens a form. What changes has a capital or ctrl, and `ctrl+d` is
always what destroys. The letters of the first group are the same on every screen.
"""

from __future__ import annotations

from kubectl_kpolicy.session.identity import Right

from .registry import TUI, Action, Danger, Registry
from .viewing import COMPARING, VIEWING

KPOLICY = "kpolicy.io"
KYVERNO = "kyverno.io"
GRANT = Right("create", "grants", KPOLICY)
PATCH_GRANT = Right("patch", "grants", KPOLICY)
DELETE_EXCEPTION = Right("delete", "policyexceptions", KYVERNO)
PATCH_CLEANUP = (
    Right("patch", "cleanuppolicies", KYVERNO, kind="CleanupPolicy"),
    Right("patch", "clustercleanuppolicies", KYVERNO, kind="ClusterCleanupPolicy"),
)
"""Objects with a TTL label are of any kind: for those the server alone knows."""
ISSUE = Right("create", "onetimecodes", KPOLICY)
VOID = Right("patch", "onetimecodes", KPOLICY, "status")
_TUI = f"{TUI} {{screen}}"
_LIST = "kubectl kpolicy <list>[ --where {filter}]"
_ISSUE = "kubectl kpolicy otp issue --for-user {user} --bind {bind}[ -n {namespace}] --ttl {ttl} --reason {reason} --show"
_DESCRIBE = "kubectl kpolicy <describe>"
LISTS = {
    "violations": "violations list",
    "blocks": "violations list --blocks",
    "policies": "policies list",
    "exceptions": "exceptions list",
    "grants": "grant list",
    "inbox": "grant list --to-approve",
    "codes": "otp list",
    "cleanup": "cleanup list",
    "audit": "audit log",
    "health": "doctor",
    "pulse": "status",
    "explain": "violations list --all",
}
"""The command behind each screen."""
DESCRIPTIONS = {
    "violations": "violations describe {resource}[ -n {namespace}]",
    "blocks": "violations list --blocks {resource}[ -n {namespace}]",
    "policies": "policies describe {name}[ -n {namespace}]",
    "exceptions": "exceptions describe {name}[ -n {namespace}]",
    "grants": "grant describe {name}[ -n {namespace}]",
    "inbox": "grant describe {name}[ -n {namespace}]",
    "codes": "otp describe {name}",
    "cleanup": "cleanup describe {object}[ -n {namespace}]",
    "audit": "audit log --object {object}",
    "health": "doctor",
}
"""The command that tells about a row of each screen."""


def _looks(id: str, title: str, help: str, *keys: str, command: str = _TUI, footer: int = 0, row: bool = False) -> Action:  # noqa: A002 - the names of the fields  # fmt: skip
    return Action(id, title, help, keys, Danger.LOOKS, command, needs_row=row, footer=footer)


GLOBAL = (
    _looks("open", "Open", "Show everything about the row; on Pulse, go to the rows behind the number.", "enter",
           command=_DESCRIBE, footer=1, row=True),
    _looks("filter", "Filter", "Keep rows that fit: words, /regex/, !not, -l labels, -f fuzzy, sev>=high age<1h.", "/",
           footer=6),
    _looks("actions", "Actions", "Everything that can be done with the row, with keys.", "x", footer=8),
    _looks("help", "Help", "Keys and words of this screen.", "?", footer=9),
    _looks("command", "Command", "Go to a screen or run a command: :v, :grants, :ns payments, :view mine.", ":"),
    _looks("palette", "Palette", "Search everything that can be done.", "ctrl+p"),
    _looks("back", "Back", "Close what is open, clear the filter, or go one screen back.", "escape"),
    _looks("last", "Last screen", "Go to the screen before this one.", "-"),
    _looks("history-back", "Earlier", "Go back in the history of screens.", "["),
    _looks("history-forward", "Later", "Go forward in the history of screens.", "]"),
    _looks("previous-screen", "Previous", "Go to the screen left of this one.", "<"),
    _looks("next-screen", "Next", "Go to the screen right of this one.", ">"),
    *(
        _looks(f"namespace-{digit}", "All namespaces" if digit == 0 else f"Namespace {digit}",
               "Show all namespaces." if digit == 0 else f"Show favourite namespace {digit} of the configuration.",
               str(digit))
        for digit in range(10)
    ),
    _looks("down", "Down", "Next row.", "j", "down"),
    _looks("up", "Up", "Previous row.", "k", "up"),
    _looks("top", "Top", "First row.", "g", "home"),
    _looks("bottom", "Bottom", "Last row.", "G", "end"),
    _looks("page-down", "Page down", "A screen further down.", "pagedown", "ctrl+f"),
    _looks("page-up", "Page up", "A screen further up.", "pageup", "ctrl+b"),
    _looks("left", "Left", "Show columns further left.", "left"),
    _looks("right", "Right", "Show columns further right.", "right"),
    _looks("mark", "Mark", "Mark the row for what is done to several at once.", "space"),
    _looks("mark-range", "Mark range", "Mark all rows from the last mark to this one.", "v"),
    _looks("mark-clear", "Clear marks", "Take away all marks.", "ctrl+backslash"),
    _looks("sort-name", "Sort by name", "Sort by the name of the thing.", "N", command=_LIST + " --sort-by={order}"),
    _looks("sort-age", "Sort by age", "Sort by time, the newest first.", "A", command=_LIST + " --sort-by={order}"),
    _looks("sort-namespace", "Sort by namespace", "Sort by namespace.", "P", command=_LIST + " --sort-by={order}"),
    _looks("sort-severity", "Sort by severity", "Sort by severity or state.", "S", command=_LIST + " --sort-by={order}"),
    _looks("sort", "Sort by …", "Choose the column to sort by.", "o", command=_LIST + " --sort-by={order}"),
    _looks("sort-reverse", "Reverse", "Turn the order round.", "O", command=_LIST + " --sort-by={order}"),
    _looks("wide", "Wide", "Show all columns.", "w", command=_LIST + " -o wide"),
    _looks("failures", "Failures", "Show only what fails, or everything.", "!", command=_LIST + "<all>", footer=7),
    _looks("group", "Group", "Group rows by the next column that lends itself to it.", "b", command=_LIST + "[ --group-by={group}]"),
    _looks("copy", "Copy", "Copy name, message, YAML or command, over SSH as well.", "c", row=True),
    _looks("yaml", "YAML", "Show the object as YAML.", "y", command=_LIST + " -o yaml", row=True),
    _looks("describe", "Describe", "Show all values of the row.", "d",
           command=_DESCRIBE, row=True),
    _looks("refresh", "Refresh", "Read again what is not watched.", "ctrl+r", command=_LIST),
    _looks("export", "Export", "Write the rows that are shown to a file: JSON lines, CSV, Markdown.", "ctrl+s", command=_LIST + " -o csv"),
    _looks("log", "Command log", "The command lines behind what you did here, to copy.", "~"),
    _looks("maximize", "Maximize", "Give the whole screen to the table, or back.", "m"),
    _looks("header", "Header", "Show or hide the header.", "ctrl+e"),
    _looks("theme", "Theme", "Choose colours; two pairs are for colour-blind eyes.", "T", command="kubectl kpolicy tui {screen} --theme NAME"),
    _looks("jump", "Jump", "Go to a part of the screen by a letter.", "ctrl+o"),
    _looks("read-only", "Read-only", "Lock changes, or unlock them for 15 minutes.", "ctrl+w", command="kubectl kpolicy tui {screen} --read-only"),
    _looks("quit", "Quit", "Leave the console.", "ctrl+q", command=_TUI),
    *VIEWING,
)  # fmt: skip

VIOLATIONS = (
    Action("request", "Request", "Ask for an exception for this object: opens the form of a grant.", ("r",), Danger.ASKS,
           "kubectl kpolicy grant request {policy}/{rule} {resource}[ -n {namespace}] --for 2h --reason {reason}",
           (GRANT,), ("violations", "blocks", "explain"), needs_row=True, bulk=True, footer=2),
    Action("explain", "Explain", "Why this object fails: every rule that was tried, with the values it saw.", ("e",), Danger.LOOKS,
           "kubectl kpolicy explain {resource}[ -n {namespace}]", (), ("violations", "blocks", "policies", "exceptions"), needs_row=True, footer=3),
    Action("ignore", "Ignore for me", "Hide this row on this computer until it changes; nothing is granted.", ("i",), Danger.LOOKS,
           "kubectl kpolicy tui violations", (), ("violations",), needs_row=True, bulk=True),
    Action("hint", "Fix hint", "What the policy's author says about mending it.", ("f",), Danger.LOOKS,
           "kubectl kpolicy policies describe {policy}", (), ("violations",), needs_row=True),
)  # fmt: skip

POLICIES = (
    Action("policy-exceptions", "Exceptions", "Exceptions that name this policy.", ("l",), Danger.LOOKS,
           "kubectl kpolicy exceptions list -A --where policy={policy}", (), ("policies",), needs_row=True, footer=2),
    Action("policy-results", "Results", "Results of this policy, passing ones included.", ("h",), Danger.LOOKS,
           "kubectl kpolicy violations list -A {policy} --all", (), ("policies",), needs_row=True, footer=3),
    Action("policy-test", "Test", "The command that tests a file against this policy.", ("t",), Danger.LOOKS,
           "kubectl kpolicy apply POLICY.yaml -r FILE", (), ("policies",), needs_row=True),
)  # fmt: skip

EXCEPTIONS = (
    Action("exception-audit", "Audit", "Only exceptions with something wrong: expired, orphaned, unused, over-broad.", ("a",), Danger.LOOKS,
           "kubectl kpolicy exceptions audit -A", (), ("exceptions",), footer=2),
    Action("exception-revoke", "Revoke", "Delete the exception: what it let through is blocked from the next admission on.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy exceptions prune {name} -n {namespace} --yes", (DELETE_EXCEPTION,), ("exceptions",), needs_row=True, bulk=True, footer=3),
    Action("exception-adopt", "Adopt", "Ask for a grant that takes this exception over, with an end and a reason.", ("H",), Danger.ASKS,
           "kubectl kpolicy exceptions adopt {name} -n {namespace}", (GRANT,), ("exceptions",), needs_row=True),
)  # fmt: skip

GRANTS = (
    Action("grant-new", "New", "Ask for an exception: opens the form of a grant.", ("n",), Danger.ASKS,
           "kubectl kpolicy grant request POLICY/RULE KIND/NAME --for 2h --reason REASON", (GRANT,), ("grants",), footer=2),
    Action("extend", "Extend", "Ask for more time: makes a successor, which needs its own approval.", ("E",), Danger.ASKS,
           "kubectl kpolicy grant extend {grant} -n {namespace} --for {for} --reason {reason}", (GRANT,), ("grants", "exceptions"), needs_row=True),
    Action("grant-revoke", "Revoke", "End the grant now (your own is withdrawn or dropped): its exception goes with it.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy grant <ending> {name} -n {namespace} --<why> {reason}", (PATCH_GRANT,), ("grants",), needs_row=True, bulk=True, footer=3),
    Action("grant-report", "Report", "What the grant let through, from request to end.", ("R",), Danger.LOOKS,
           "kubectl kpolicy grant report {name} -n {namespace}", (), ("grants",), needs_row=True),
)  # fmt: skip

INBOX = (
    Action("approve", "Approve", "Say yes to the request; it takes effect when enough people did.", ("ctrl+a",), Danger.CHANGES,
           "kubectl kpolicy grant approve {name} -n {namespace} --comment {comment}", (PATCH_GRANT,), ("inbox",), needs_row=True, bulk=True, footer=2),
    Action("deny", "Deny", "Say no to the request; that is final.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy grant deny {name} -n {namespace} --comment {comment}", (PATCH_GRANT,), ("inbox",), needs_row=True, bulk=True, footer=3),
    Action("ask-back", "Ask back", "Leave a question for the requester; the request stays open.", ("B",), Danger.ASKS,
           "kubectl kpolicy grant comment {name} -n {namespace} --comment {comment}", (PATCH_GRANT,), ("inbox",), needs_row=True),
)  # fmt: skip

CODES = (
    Action("code-issue", "Issue", "Issue a one-time code for a user, policy, rule and object; it is shown once.", ("n",), Danger.ASKS,
           _ISSUE, (ISSUE,), ("codes",), footer=2),
    Action("code-for", "Issue code", "Issue a one-time code for what the row is about; it is shown once.", ("I",), Danger.ASKS,
           _ISSUE, (ISSUE,), ("violations", "blocks", "inbox"), needs_row=True),
    Action("code-redeem", "Redeem", "Use a code: it is typed into a form, never into a command line.", ("u",), Danger.ASKS,
           "kubectl kpolicy otp redeem -f {file}[ -n {namespace}]", (), ("codes",), footer=4),
    Action("code-void", "Void", "Make a code useless before it was used.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy otp void {name} --system-namespace {namespace}", (VOID,), ("codes",), needs_row=True, bulk=True, footer=3),
)  # fmt: skip

CLEANUP = (
    Action("cleanup-preview", "Preview", "What the next run would delete, and what it would leave and why.", ("p",), Danger.LOOKS,
           "kubectl kpolicy cleanup <preview> {object}[ -n {namespace}]", (), ("cleanup",), needs_row=True, footer=2),
    Action("cleanup-postpone", "Postpone", "Let it happen later; asks for how long and why.", ("ctrl+t",), Danger.CHANGES,
           "kubectl kpolicy cleanup postpone {object}[ -n {namespace}] --for {for} --reason {reason}", PATCH_CLEANUP, ("cleanup",), needs_row=True, bulk=True, footer=3),
    Action("cleanup-skip", "Skip once", "Pass over the next run only.", ("ctrl+k",), Danger.CHANGES,
           "kubectl kpolicy cleanup skip {object}[ -n {namespace}] --reason {reason}", PATCH_CLEANUP, ("cleanup",), needs_row=True, bulk=True),
    Action("cleanup-pause", "Pause", "Stop until it is resumed; pressed again, resume.", ("ctrl+x",), Danger.CHANGES,
           "kubectl kpolicy cleanup <pausing> {object}[ -n {namespace}] --reason {reason}", PATCH_CLEANUP, ("cleanup",), needs_row=True, bulk=True),
)  # fmt: skip

AUDIT = (
    Action("audit-verify", "Verify", "Check the chain of records, from the first to the last.", ("V",), Danger.LOOKS,
           "kubectl kpolicy audit verify", (), ("audit",), footer=2),
    Action("audit-tail", "Tail", "Follow new records as they come.", ("t",), Danger.LOOKS,
           "kubectl kpolicy audit log -f", (), ("audit",), footer=3),
    Action("audit-follow", "Follow one", "Only records about this object.", ("F",), Danger.LOOKS,
           "kubectl kpolicy audit log --object {object}", (), ("audit",), needs_row=True),
)  # fmt: skip

ALL = (
    *GLOBAL,
    *VIOLATIONS,
    *POLICIES,
    *EXCEPTIONS,
    *GRANTS,
    *COMPARING,
    *INBOX,
    *CODES,
    *CLEANUP,
    *AUDIT,
)


def registry(keymap: dict[str, list[str]] | None = None) -> Registry:
    """Return the registry of all actions, with keys that people gave them."""
    return Registry(ALL, keymap)
