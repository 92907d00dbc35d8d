"""The actions of the console, screen by screen.

A lower-case letter never changes the cluster: at most it opens a form. What changes has a capital or ctrl, and `ctrl+d` is
always what destroys. The letters of the first group are the same on every screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.cleanup.holds import HoldState
from kubectl_kpolicy.session.identity import Right

from .registry import TUI, Action, Danger, Field, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubectl_kpolicy.output.rows import Row

KPOLICY = "kpolicy.io"
KYVERNO = "kyverno.io"
GRANT = Right("create", "grants", KPOLICY)
PATCH_GRANT = Right("patch", "grants", KPOLICY)
DELETE_EXCEPTION = Right("delete", "policyexceptions", KYVERNO)
PATCH_CLEANUP = (
    Right("patch", "cleanuppolicies", KYVERNO, kind="CleanupPolicy"),
    Right("patch", "clustercleanuppolicies", KYVERNO, kind="ClusterCleanupPolicy"),
    Right("patch", "deletingpolicies", "policies.kyverno.io", kind="DeletingPolicy"),
    Right(
        "patch",
        "namespaceddeletingpolicies",
        "policies.kyverno.io",
        kind="NamespacedDeletingPolicy",
    ),
)
"""Objects with a TTL label are of any kind: for those the server alone knows."""
ISSUE = Right("create", "onetimecodes", KPOLICY)
VOID = Right("patch", "onetimecodes", KPOLICY, "status")
_TUI = f"{TUI} {{screen}}"
_LIST = "kubectl kpolicy <list>[ --where {filter}]"
_ISSUE = "kubectl kpolicy otp issue --for-user {user} --bind {bind}[ -n {namespace}] --ttl {ttl} --reason {reason} --show"
_DESCRIBE = "kubectl kpolicy <describe>"


def _looks(id: str, title: str, help: str, *keys: str, command: str = _TUI, row: bool = False, **more: Any) -> Action:  # noqa: A002 - the names of the fields  # fmt: skip
    return Action(id, title, help, keys, Danger.LOOKS, command, needs_row=row, **more)


REASON = Field("reason", "reason", "why, for the record")
HOW_LONG = Field("for", "for", "how long, such as 1h", "1h")
FAR = 1_000_000_000


def _not_extended(row: Row) -> str:
    return (
        ""
        if row.text("grant")
        else "no grant is behind this exception; H asks for one that takes it over"
    )


def _not_decided(row: Row) -> str:
    why = row.text("refused")
    return f"you cannot decide about this: {why}" if why else ""


def _not_ended(row: Row) -> str:
    from engine.grants import FINAL  # here, as below: most screens show no grant

    return f"it is {row.text('state')}, which is final" if row.text("state") in FINAL else ""


def _not_voided(row: Row) -> str:
    is_over = row.text("state") in ("used", "confirmed", "void")
    return f"it is {row.text('state')} already" if is_over else ""


def ending_of(row: Row, user: str) -> str:
    """Return the verdict by which somebody ends the grant of a row."""
    from engine.grants.lifecycle import ending

    return ending(row.text("state"), is_own=row.text("requester") == user)


def _ending_title(row: Row, user: str) -> str:
    return ending_of(row, user).capitalize()


def _pausing_title(row: Row, _user: str) -> str:
    return "Resume" if row.text("state") == HoldState.PAUSED else ""


GLOBAL = (
    _looks("open", "Open", "Show everything about the row; on Pulse, go to the rows behind the number.", "enter",
           command=_DESCRIBE, footer=1, row=True, handler="details.open_row"),
    _looks("filter", "Filter", "Keep rows that fit: words, /regex/, !not, -l labels, -f fuzzy, sev>=high age<1h.", "/",
           footer=6, handler="input_line.filter_line"),
    _looks("actions", "Actions", "Everything that can be done with the row, with keys.", "x", footer=8, handler="details.menu"),
    _looks("help", "Help", "Keys and words of this screen.", "?", footer=9, handler="details.show_help"),
    _looks("command", "Command", "Go to a screen or run a command: :v, :grants, :ns payments, :view mine.", ":", handler="input_line.command_line"),
    _looks("palette", "Palette", "Search everything that can be done.", "ctrl+p", handler="input_line.palette"),
    _looks("back", "Back", "Close what is open, clear the filter, or go one screen back.", "escape", handler="input_line.back"),
    _looks("last", "Last screen", "Go to the screen before this one.", "-", handler="navigation.last"),
    _looks("history-back", "Earlier", "Go back in the history of screens.", "[", handler="navigation.step", given=(-1,)),
    _looks("history-forward", "Later", "Go forward in the history of screens.", "]", handler="navigation.step", given=(1,)),
    _looks("previous-screen", "Previous", "Go to the screen left of this one.", "<", handler="navigation.beside", given=(-1,)),
    _looks("next-screen", "Next", "Go to the screen right of this one.", ">", handler="navigation.beside", given=(1,)),
    *(
        _looks(f"namespace-{digit}", "All namespaces" if digit == 0 else f"Namespace {digit}",
               "Show all namespaces." if digit == 0 else f"Show favourite namespace {digit} of the configuration.",
               str(digit), handler="navigation.favourite", given=(digit,))
        for digit in range(10)
    ),
    _looks("down", "Down", "Next row.", "j", "down", handler="navigation.move", given=(1,), cheap=True),
    _looks("up", "Up", "Previous row.", "k", "up", handler="navigation.move", given=(-1,), cheap=True),
    _looks("top", "Top", "First row.", "g", "home", handler="navigation.move", given=(-FAR,), cheap=True),
    _looks("bottom", "Bottom", "Last row.", "G", "end", handler="navigation.move", given=(FAR,), cheap=True),
    _looks("page-down", "Page down", "A screen further down.", "pagedown", "ctrl+f", handler="navigation.page", given=(1,), cheap=True),
    _looks("page-up", "Page up", "A screen further up.", "pageup", "ctrl+b", handler="navigation.page", given=(-1,), cheap=True),
    _looks("left", "Left", "Show columns further left.", "left", handler="navigation.sideways", given=(-1,), cheap=True),
    _looks("right", "Right", "Show columns further right.", "right", handler="navigation.sideways", given=(1,), cheap=True),
    _looks("mark", "Mark", "Mark the row for what is done to several at once.", "space", handler="navigation.mark"),
    _looks("mark-range", "Mark range", "Mark all rows from the last mark to this one.", "v", handler="navigation.mark_range"),
    _looks("mark-clear", "Clear marks", "Take away all marks.", "ctrl+backslash", handler="navigation.clear_marks"),
    _looks("sort-name", "Sort by name", "Sort by the name of the thing.", "N", command=_LIST + " --sort-by={order}", handler="lists.sort", given=("name",)),
    _looks("sort-age", "Sort by age", "Sort by time, the newest first.", "A", command=_LIST + " --sort-by={order}", handler="lists.sort", given=("age",)),
    _looks("sort-namespace", "Sort by namespace", "Sort by namespace.", "P", command=_LIST + " --sort-by={order}", handler="lists.sort", given=("namespace",)),
    _looks("sort-severity", "Sort by severity", "Sort by severity or state.", "S", command=_LIST + " --sort-by={order}", handler="lists.sort", given=("severity",)),
    _looks("sort", "Sort by …", "Choose the column to sort by.", "o", command=_LIST + " --sort-by={order}", handler="lists.sort_picker"),
    _looks("sort-reverse", "Reverse", "Turn the order round.", "O", command=_LIST + " --sort-by={order}", handler="lists.reverse"),
    _looks("wide", "Wide", "Show all columns.", "w", command=_LIST + " -o wide", handler="lists.wide"),
    _looks("failures", "Failures", "Show only what fails, or everything.", "!", command=_LIST + "<all>", footer=7, handler="lists.failures"),
    _looks("group", "Group", "Group rows by the next column that lends itself to it.", "b", command=_LIST + "[ --group-by={group}]", handler="lists.group"),
    _looks("copy", "Copy", "Copy name, message, YAML or command, over SSH as well.", "c", row=True, handler="details.copy"),
    _looks("yaml", "YAML", "Show the object as it is in the cluster, with owners, policies, and what they object to.", "y", command=_LIST + " -o yaml", row=True, handler="details.show_yaml"),
    _looks("describe", "Describe", "Show all values of the row.", "d",
           command=_DESCRIBE, row=True, handler="details.describe"),
    _looks("refresh", "Refresh", "Read again what is not watched.", "ctrl+r", command=_LIST, handler="lists.refresh"),
    _looks("export", "Export", "Write the rows that are shown to a file: JSON lines, CSV, Markdown.", "ctrl+s", command=_LIST + " -o csv", handler="details.export"),
    _looks("log", "Command log", "The command lines behind what you did here, to copy.", "~", handler="details.show_log"),
    _looks("maximize", "Maximize", "Give the whole screen to the table, or back.", "m", handler="lists.maximize"),
    _looks("details-wider", "Wider details", "Give the details beside the list more of the width; the mouse drags their left edge.", "+", handler="lists.resize", given=(5,)),
    _looks("details-narrower", "Narrower details", "Give the list more of the width.", "_", handler="lists.resize", given=(-5,)),
    _looks("header", "Header", "Show or hide the header.", "ctrl+e", handler="lists.toggle_header"),
    _looks("theme", "Theme", "Choose colours; two pairs are for colour-blind eyes.", "T", command="kubectl kpolicy tui {screen} --theme NAME", handler="lists.themes"),
    _looks("jump", "Jump", "Go to a part of the screen by a letter.", "ctrl+o", handler="jump.jump"),
    _looks("read-only", "Read-only", "Lock changes, or unlock them for 15 minutes.", "ctrl+w", command="kubectl kpolicy tui {screen} --read-only", handler="input_line.toggle_lock"),
    _looks("quit", "Quit", "Leave the console.", "ctrl+q", command=_TUI, handler="input_line.leave"),
    _looks("filter-build", "Build filter", "Put a filter together from columns, comparisons and values that are there.", "=",
           command="kubectl kpolicy <list>[ --where {filter}]", handler="choices.build_filter"),
    _looks("notice", "Go to notice", "Go where the newest notice leads: a decision, an end, a request, a new critical failure.", ";", handler="navigation.go_to_notice"),
    _looks("columns", "Columns", "Choose which columns this screen shows; kept for the next time.", "C", handler="choices.columns"),
    _looks("context", "Context", "Choose another context of the kubeconfig, as :ctx does.", "ctrl+g", command=f"{_TUI} --context {{context}}", handler="choices.contexts"),
    _looks("namespaces", "Namespaces", "Choose a namespace among those that have rows, as :ns does.", "ctrl+n", command=f"{_TUI} -n {{namespace}}", handler="choices.namespaces"),
    _looks("time-back", "Change before", "In a recording: go back to the change before.", ",", command=f"{_TUI} --replay FILE --at TIME", handler="input_line.step", given=(-1,)),
    _looks("time-forward", "Next change", "In a recording: go on to the next change.", ".", command=f"{_TUI} --replay FILE --at TIME", handler="input_line.step", given=(1,)),
    _looks("time-earlier", "Earlier", "In a recording: go five minutes back.", "{", command=f"{_TUI} --replay FILE --at TIME", handler="input_line.move", given=(-1,)),
    _looks("time-later", "Later", "In a recording: go five minutes on.", "}", command=f"{_TUI} --replay FILE --at TIME", handler="input_line.move", given=(1,)),
)  # fmt: skip

VIOLATIONS = (
    Action("request", "Request", "Ask for an exception for this object: opens the form of a grant.", ("r",), Danger.ASKS,
           "kubectl kpolicy grant request {policy}/{rule} {resource}[ -n {namespace}] --for 2h --reason {reason}",
           (GRANT,), ("violations", "blocks", "explain"), needs_row=True, bulk=True, footer=2, handler="changes.request"),
    Action("explain", "Explain", "Why this object fails: every rule that was tried, with the values it saw.", ("e",), Danger.LOOKS,
           "kubectl kpolicy explain {resource}[ -n {namespace}]", (), ("violations", "blocks", "policies", "exceptions"), needs_row=True, footer=3, handler="details.explain"),
    Action("ignore", "Ignore for me", "Hide this row on this computer until it changes; nothing is granted.", ("i",), Danger.LOOKS,
           "kubectl kpolicy tui violations", (), ("violations",), needs_row=True, bulk=True, handler="lists.ignore"),
    Action("hint", "Fix hint", "What the policy's author says about mending it.", ("f",), Danger.LOOKS,
           "kubectl kpolicy policies describe {policy}", (), ("violations",), needs_row=True, handler="details.show_hint"),
)  # fmt: skip

POLICIES = (
    Action("policy-exceptions", "Exceptions", "Exceptions that name this policy.", ("l",), Danger.LOOKS,
           "kubectl kpolicy exceptions list -A --where policy={policy}", (), ("policies",), needs_row=True, footer=2, handler="details.policy_exceptions"),
    Action("policy-results", "Results", "Results of this policy, passing ones included.", ("h",), Danger.LOOKS,
           "kubectl kpolicy violations list -A {policy} --all", (), ("policies",), needs_row=True, footer=3, handler="details.policy_results"),
    Action("policy-test", "Test", "The command that tests a file against this policy.", ("t",), Danger.LOOKS,
           "kubectl kpolicy apply POLICY.yaml -r FILE", (), ("policies",), needs_row=True, handler="details.policy_test"),
)  # fmt: skip

EXCEPTIONS = (
    Action("exception-audit", "Audit", "Only exceptions with something wrong: expired, orphaned, unused, over-broad.", ("a",), Danger.LOOKS,
           "kubectl kpolicy exceptions audit -A", (), ("exceptions",), footer=2, handler="lists.audit_exceptions"),
    Action("exception-revoke", "Revoke", "Delete the exception: what it let through is blocked from the next admission on.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy exceptions prune {name} -n {namespace} --yes", (DELETE_EXCEPTION,), ("exceptions",), needs_row=True, bulk=True, footer=3, work="changes.revoke_exception"),
    Action("exception-adopt", "Adopt", "Ask for a grant that takes this exception over, with an end and a reason.", ("H",), Danger.ASKS,
           "kubectl kpolicy exceptions adopt {name} -n {namespace}", (GRANT,), ("exceptions",), needs_row=True, handler="changes.adopt"),
)  # fmt: skip

GRANTS = (
    Action("grant-new", "New", "Ask for an exception: opens the form of a grant.", ("n",), Danger.ASKS,
           "kubectl kpolicy grant request POLICY/RULE KIND/NAME --for 2h --reason REASON", (GRANT,), ("grants",), footer=2, handler="changes.new_grant"),
    Action("extend", "Extend", "Ask for more time: makes a successor, which needs its own approval.", ("E",), Danger.ASKS,
           "kubectl kpolicy grant extend {grant} -n {namespace} --for {for} --reason {reason}", (GRANT,), ("grants", "exceptions"), needs_row=True, fields=(HOW_LONG, Field("reason", "reason", "why it is still needed")), unfit=_not_extended, work="grants.extend"),
    Action("grant-revoke", "Revoke", "End the grant now (your own is withdrawn or dropped): its exception goes with it.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy grant <ending> {name} -n {namespace} --<why> {reason}", (PATCH_GRANT,), ("grants",), needs_row=True, bulk=True, footer=3, fields=(REASON,), typed="target", unfit=_not_ended, named=_ending_title, work="grants.end"),
    Action("grant-report", "Report", "What the grant let through, from request to end.", ("R",), Danger.LOOKS,
           "kubectl kpolicy grant report {name} -n {namespace}", (), ("grants",), needs_row=True, handler="details.describe"),
    Action("timeline", "Timeline", "Show grants or clean-ups as lanes in time, with approvals, uses and runs as ticks, or hide them.", ("t",), Danger.LOOKS,
           _TUI, (), ("grants", "cleanup"), footer=5, handler="lists.timeline"),
    Action("grant-compare", "Compare", "Show two grants side by side: mark one, put the cursor on the other.", ("D",), Danger.LOOKS,
           "kubectl kpolicy grant describe {name} -n {namespace}", (), ("grants", "inbox"), needs_row=True, handler="choices.compare"),
)  # fmt: skip

INBOX = (
    Action("approve", "Approve", "Say yes to the request; it takes effect when enough people did.", ("ctrl+a",), Danger.CHANGES,
           "kubectl kpolicy grant approve {name} -n {namespace} --comment {comment}", (PATCH_GRANT,), ("inbox",), needs_row=True, bulk=True, footer=2, fields=(Field("comment", "comment", "for the record"),), unfit=_not_decided, work="grants.approve"),
    Action("deny", "Deny", "Say no to the request; that is final.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy grant deny {name} -n {namespace} --comment {comment}", (PATCH_GRANT,), ("inbox",), needs_row=True, bulk=True, footer=3, fields=(Field("comment", "comment", "why not"),), typed="target", unfit=_not_decided, work="grants.deny"),
    Action("ask-back", "Ask back", "Leave a question for the requester; the request stays open.", ("B",), Danger.ASKS,
           "kubectl kpolicy grant comment {name} -n {namespace} --comment {comment}", (PATCH_GRANT,), ("inbox",), needs_row=True, fields=(Field("comment", "question", "what you want to know; the request stays open"),), work="grants.ask_back"),
)  # fmt: skip

CODES = (
    Action("code-issue", "Issue", "Issue a one-time code for a user, policy, rule and object; it is shown once.", ("n",), Danger.ASKS,
           _ISSUE, (ISSUE,), ("codes",), footer=2, handler="codes.issue"),
    Action("code-for", "Issue code", "Issue a one-time code for what the row is about; it is shown once.", ("I",), Danger.ASKS,
           _ISSUE, (ISSUE,), ("violations", "blocks", "inbox"), needs_row=True, handler="codes.issue"),
    Action("code-redeem", "Redeem", "Use a code: it is typed into a form, never into a command line.", ("u",), Danger.ASKS,
           "kubectl kpolicy otp redeem -f {file}[ -n {namespace}]", (), ("codes",), footer=4, handler="codes.redeem"),
    Action("code-void", "Void", "Make a code useless before it was used.", ("ctrl+d",), Danger.DESTROYS,
           "kubectl kpolicy otp void {name} --system-namespace {namespace}", (VOID,), ("codes",), needs_row=True, bulk=True, footer=3, typed="user", unfit=_not_voided, work="codes.void"),
)  # fmt: skip

CLEANUP = (
    Action("cleanup-preview", "Preview", "What the next run would delete, and what it would leave and why.", ("p",), Danger.LOOKS,
           "kubectl kpolicy cleanup <preview> {object}[ -n {namespace}]", (), ("cleanup",), needs_row=True, footer=2, handler="changes.preview"),
    Action("cleanup-postpone", "Postpone", "Let it happen later; asks for how long and why.", ("ctrl+t",), Danger.CHANGES,
           "kubectl kpolicy cleanup postpone {object}[ -n {namespace}] --for {for} --reason {reason}", PATCH_CLEANUP, ("cleanup",), needs_row=True, bulk=True, footer=3, fields=(HOW_LONG, REASON), work="changes.postpone"),
    Action("cleanup-skip", "Skip once", "Pass over the next run only.", ("ctrl+k",), Danger.CHANGES,
           "kubectl kpolicy cleanup skip {object}[ -n {namespace}] --reason {reason}", PATCH_CLEANUP, ("cleanup",), needs_row=True, bulk=True, fields=(REASON,), work="changes.skip"),
    Action("cleanup-pause", "Pause", "Stop until it is resumed; pressed again, resume.", ("ctrl+x",), Danger.CHANGES,
           "kubectl kpolicy cleanup <pausing> {object}[ -n {namespace}] --reason {reason}", PATCH_CLEANUP, ("cleanup",), needs_row=True, bulk=True, fields=(REASON,), named=_pausing_title, work="changes.pause"),
)  # fmt: skip

AUDIT = (
    Action("audit-verify", "Verify", "Check the chain of records, from the first to the last.", ("V",), Danger.LOOKS,
           "kubectl kpolicy audit verify", (), ("audit",), footer=2, handler="details.verify_audit"),
    Action("audit-tail", "Tail", "Follow new records as they come.", ("t",), Danger.LOOKS,
           "kubectl kpolicy audit log -f", (), ("audit",), footer=3, handler="details.tail"),
    Action("audit-follow", "Follow one", "Only records about this object.", ("F",), Danger.LOOKS,
           "kubectl kpolicy audit log --object {object}", (), ("audit",), needs_row=True, handler="details.follow"),
)  # fmt: skip

CLEANUP_RUN = Action("cleanup-run", "Run", "Delete now what the next run would; noted on the policy.", (), Danger.DESTROYS,
                     "kubectl kpolicy cleanup run {object} --yes --reason {reason}", PATCH_CLEANUP, ("cleanup",), work="changes.note_run")  # fmt: skip
"""Of the command alone."""

ALL = (*GLOBAL, *VIOLATIONS, *POLICIES, *EXCEPTIONS, *GRANTS, *INBOX, *CODES, *CLEANUP, *AUDIT)


def registry(
    keymap: Mapping[str, Sequence[str]] | None = None, own: Sequence[Action] = ()
) -> Registry:
    """Return the registry of all actions, with keys that people gave them, and with actions of their own."""
    return Registry((*ALL, *own), keymap)


def action_of(name: str) -> Action:
    """Return the action with an id; raises KeyError."""
    return next(one for one in (*ALL, CLEANUP_RUN) if one.id == name)
