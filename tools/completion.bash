# Completes options of Whale's tools, as their --help lists them, in bash, and in
# zsh after `autoload -U bashcompinit && bashcompinit`:
#
#     source tools/completion.bash

_whale_tool() {
  local tool=$1 word=$2
  local words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  # Commands have options of their own.
  if [[ $tool == *whale-checkpoint && ${#words[@]} -eq 0 ]]; then
    mapfile -t COMPREPLY < <(
      compgen -W "list verify export import --help --version" -- "$word")
    return
  fi
  [[ $word == -* ]] || return
  local command=()
  [[ $tool == *whale-checkpoint ]] && command=("${words[0]}")
  mapfile -t COMPREPLY < <(
    compgen -W "$("$tool" "${command[@]}" --help 2>/dev/null |
      grep -oE -- '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,' | sort -u)" \
      -- "$word")
}

# What is no option is a file.
complete -o default -F _whale_tool \
  whale-compile whale-run whale-sim whale-opt whale-checkpoint
