# Shared by .ci/try and .ci/test: installs what is missing, and nothing else. Sourced by sh.
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
export DEBIAN_FRONTEND=noninteractive

say() { printf '== %s\n' "$*" >&2; }

# apt_need PROGRAM PACKAGE...: installs Debian packages when the program is missing.
apt_need() {
  program=$1
  shift
  PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 && return 0
  say "installing $* (for $program)"
  if [ -z "${APT_UPDATED:-}" ]; then
    apt-get update -qq >/dev/null
    APT_UPDATED=1
  fi
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# The tools that build: make, npm (which brings Bun and the packages of package-lock.json).
setup_build() {
  apt_need make make
  apt_need git git
  apt_need npm npm ca-certificates
  cd "$ROOT" || exit 1
  stamp=node_modules/.installed
  if ! cmp -s package-lock.json "$stamp" || ! node_modules/.bin/bun --version >/dev/null 2>&1; then
    say "installing Bun and the packages of package-lock.json"
    npm ci --no-audit --no-fund --loglevel=error
    # Some npm versions hold back install scripts; Bun's own puts its binary in place.
    node_modules/.bin/bun --version >/dev/null 2>&1 || node node_modules/bun/install.js
    cp package-lock.json "$stamp"
  fi
}

# What the tests drive for real: Slurm with munge, every Lua it may link, SkyPilot in a venv of its own.
setup_hosts() {
  apt_need slurmctld slurm-wlm munge
  apt_need munged munge
  for version in 5.1 5.2 5.3 5.4; do apt_need "lua$version" "lua$version"; done
  apt_need python3 python3 python3-venv
  sky=$ROOT/.cache/sky
  if ! "$sky/bin/python" -c 'import sky' >/dev/null 2>&1; then
    say "installing SkyPilot 0.13.0 into .cache/sky"
    rm -rf "$sky"
    python3 -m venv "$sky" 2>/dev/null || { apt-get install -y -qq python3-venv >/dev/null && python3 -m venv "$sky"; }
    "$sky/bin/pip" install -q --disable-pip-version-check skypilot==0.13.0 fastapi==0.115.12 starlette==0.46.2
  fi
  NEURARCH_TEST_SKY_PYTHON=$sky/bin/python
  export NEURARCH_TEST_SKY_PYTHON
}
