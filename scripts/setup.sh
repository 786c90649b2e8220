#!/usr/bin/env bash
# Makes the repository ready to use: Debian packages, .venv, build/. Installs
# only what is missing, so running it again is quick. With WHALE_TEST_FULL
# (scripts/test --full) it installs also what the long tests need, with
# WHALE_WHEEL (scripts/wheel) what makes wheels, and builds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }

extras=()
[[ -z ${WHALE_TEST_FULL:-} ]] || extras+=(full wheel)
[[ -z ${WHALE_WHEEL:-} ]] || extras+=(wheel)

# Debian packages, at the versions named where the mirror still has them.
lists=(scripts/debian-packages.txt)
for extra in "${extras[@]}"; do lists+=("scripts/debian-packages-$extra.txt"); done
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
  for extra in "${extras[@]}"; do
    list=scripts/requirements-$extra.txt
    stamp=.venv/requirements-$extra.sha256
    sha256sum --check --status "$stamp" 2>/dev/null && continue
    .venv/bin/python -m pip install -q --disable-pip-version-check -r "$list"
    sha256sum "$list" >"$stamp"
  done
  site=$(.venv/bin/python -c 'import site; print(site.getsitepackages()[0])')
  echo "$PWD/python" >"$site/whale.pth"
fi

[[ -z ${WHALE_WHEEL:-} ]] || exit 0

# The compiler, the runtime and the extension.
[[ -f build/build.ninja ]] || cmake --preset default >/dev/null
say "Building"
ninja -C build --quiet
