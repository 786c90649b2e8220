#!/usr/bin/env bash
# Makes the repository ready to use: Debian packages, .venv, build/. Installs
# only what is missing, so running it again is quick.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }

# Debian packages, at the versions named where the mirror still has them; with
# WHALE_TEST_FULL (scripts/test --full) also what the long tests need.
lists=(scripts/debian-packages.txt)
[[ -z ${WHALE_TEST_FULL:-} ]] || lists+=(scripts/debian-packages-full.txt)
missing=()
while read -r name version; do
  [[ -z $name || $name == '#'* ]] && continue
  if [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) != installed ]]; then
    missing+=("$name=$version")
  fi
done < <(cat "${lists[@]}")
if ((${#missing[@]})); then
  say "Installing ${#missing[@]} Debian packages"
  apt=(apt-get)
  if ((EUID != 0)); then apt=(sudo apt-get); fi
  "${apt[@]}" update -qq
  wanted=()
  for entry in "${missing[@]}"; do
    if apt-cache madison "${entry%%=*}" | grep -qF "| ${entry#*=} |"; then
      wanted+=("$entry")
    else
      wanted+=("${entry%%=*}")
    fi
  done
  log=$(mktemp)
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y -qq \
    --no-install-recommends "${wanted[@]}" >"$log" 2>&1 ||
    { cat "$log" >&2 && exit 1; }
  rm -f "$log"
fi

# Python packages, pinned; a linked environment is left as it is.
if [[ ! -L .venv ]]; then
  python=$(command -v python3.11 || command -v python3)
  [[ -x .venv/bin/python ]] || "$python" -m venv .venv
  stamp=.venv/requirements.sha256
  if ! sha256sum --check --status "$stamp" 2>/dev/null; then
    say "Installing Python packages into .venv"
    .venv/bin/python -m pip install -q --disable-pip-version-check \
      -r requirements.txt
    sha256sum requirements.txt >"$stamp"
  fi
  # Long tests ask for more.
  stamp=.venv/requirements-full.sha256
  full=scripts/requirements-full.txt
  if [[ -n ${WHALE_TEST_FULL:-} ]] &&
    ! sha256sum --check --status "$stamp" 2>/dev/null; then
    .venv/bin/python -m pip install -q --disable-pip-version-check -r "$full"
    sha256sum "$full" >"$stamp"
  fi
  site=$(.venv/bin/python -c 'import site; print(site.getsitepackages()[0])')
  echo "$PWD/python" >"$site/whale.pth"
fi

# The compiler, the runtime and the extension.
[[ -f build/build.ninja ]] || cmake --preset default >/dev/null
say "Building"
ninja -C build --quiet
