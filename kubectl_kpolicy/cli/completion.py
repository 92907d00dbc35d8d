"""`kubectl kpolicy completion`: completion for shells, for `kubectl-kpolicy` called by its own name and for the plugin.

kubectl completes plugins by an executable of its own, `kubectl_complete-kpolicy`, which comes with the wheel; the scripts printed
here ask the same program, so all ways give the same candidates.
"""

from __future__ import annotations

import sys

from .flags import Arguments, Flags, guarded

HINTS = {
    "bash": "source <(kubectl kpolicy completion bash)",
    "zsh": "source <(kubectl kpolicy completion zsh)",
    "fish": "kubectl kpolicy completion fish | source",
    "powershell": "kubectl kpolicy completion powershell | Out-String | Invoke-Expression",
}
BASH = r"""# completion of kubectl-kpolicy for bash
_kubectl_kpolicy() {
  local line lines=() IFS=$'\n'
  lines=($(kubectl_complete-kpolicy "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  COMPREPLY=()
  for line in "${lines[@]}"; do
    [[ $line == :* ]] || COMPREPLY+=("${line%%$'\t'*}")
  done
}
complete -o default -F _kubectl_kpolicy kubectl-kpolicy
"""
ZSH = r"""#compdef kubectl-kpolicy
_kubectl_kpolicy() {
  local line
  local -a found
  for line in "${(@f)$(kubectl_complete-kpolicy "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ $line == :* || -z $line ]] && continue
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe 'kpolicy' found; else _files; fi
}
compdef _kubectl_kpolicy kubectl-kpolicy
"""
FISH = r"""# completion of kubectl-kpolicy for fish
function __kubectl_kpolicy
  set -l words (commandline -opc) (commandline -ct)
  kubectl_complete-kpolicy $words[2..-1] 2>/dev/null | string match -v -r '^:'
end
complete -c kubectl-kpolicy -a '(__kubectl_kpolicy)'
"""
POWERSHELL = r"""# completion of kubectl-kpolicy for PowerShell
Register-ArgumentCompleter -Native -CommandName 'kubectl-kpolicy' -ScriptBlock {
  param($word, $line, $position)
  $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
  if (-not $word) { $words += '' }
  kubectl_complete-kpolicy @words 2>$null | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
    $value, $text = $_ -split "`t", 2
    [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $(if ($text) { $text } else { $value }))
  }
}
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH, "powershell": POWERSHELL}


def add_arguments(flags: Flags) -> None:
    """Add the command's arguments."""
    flags.add("shell", "shell to print the script for; `install` writes what is needed into your home", choices=(*SCRIPTS, "install"))  # fmt: skip
    flags.add("for_shell", "with `install`: for this shell ($SHELL by default)", nargs="?", choices=tuple(SCRIPTS), metavar="SHELL")  # fmt: skip
    flags.text("--bin-dir", "FOLDER", "with `install`: a folder on the PATH for kubectl's own completion (~/.local/bin)")  # fmt: skip
    flags.choice("--dry-run", ("none", "client"), "with `install`: only say what would be written")
    hints = (f"  {shell:10}  {line}" for shell, line in HINTS.items())
    flags.parser.epilog = "\n".join(
        ["use it by:", *hints, "", "example: kubectl kpolicy completion install bash"]
    )


def run(args: Arguments) -> int:
    """Print the script, or install everything."""
    if args.shell == "install":
        return _install(args)
    sys.stdout.write(SCRIPTS[args.shell])
    return 0


@guarded
def _install(args: Arguments) -> int:
    from kubectl_kpolicy.session.completions import install

    return install(args.for_shell or "", args.bin_dir, SCRIPTS, is_tried=args.dry_run == "client")
