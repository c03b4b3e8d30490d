# Shared by .ci/try and .ci/test: installs what is missing, and nothing else. Sourced by sh.
ROOT=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
export DEBIAN_FRONTEND=noninteractive

say() { printf '== %s\n' "$*" >&2; }

# apt_install PACKAGE...: from the distribution, with one update of its lists a run.
apt_install() {
  say "installing $*"
  if [ -z "${APT_UPDATED:-}" ]; then
    apt-get update -qq >/dev/null || return 1
    APT_UPDATED=1
  fi
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# apt_need PROGRAM PACKAGE...: installs packages when the program is missing.
apt_need() {
  program=$1
  shift
  PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 || apt_install "$@"
}

# python_need: a Python that can make virtual environments.
python_need() { python3 -c 'import ensurepip' 2>/dev/null || apt_install python3 python3-venv; }

# venv_need FOLDER MODULE REQUIREMENT...: a virtual environment in which MODULE can be imported.
venv_need() {
  folder=$1 module=$2
  shift 2
  "$folder/bin/python" -c "import $module" >/dev/null 2>&1 && return 0
  say "installing $* into ${folder#"$ROOT"/}"
  python_need || return 1
  rm -rf "$folder"
  python3 -m venv "$folder" || return 1
  "$folder/bin/pip" install -q --disable-pip-version-check "$@" || return 1
  "$folder/bin/python" -c "import $module"
}

# The tools that build: make, npm (which brings Bun and the packages of package-lock.json).
setup_build() {
  apt_need make make || return 1
  apt_need git git || return 1
  apt_need npm npm ca-certificates || return 1
  cd "$ROOT" || return 1
  stamp=node_modules/.installed
  if ! cmp -s package-lock.json "$stamp" || ! node_modules/.bin/bun --version >/dev/null 2>&1; then
    say "installing Bun and the packages of package-lock.json"
    npm ci --no-audit --no-fund --loglevel=error || return 1
    # Some npm versions hold back install scripts; Bun's own puts its binary in place.
    node_modules/.bin/bun --version >/dev/null 2>&1 || node node_modules/bun/install.js || return 1
    cp package-lock.json "$stamp"
  fi
}

# sshd itself is wanted, not a service of this machine: its package's start-up script is told not to.
ssh_server_need() {
  PATH="$PATH:/usr/sbin:/sbin" command -v sshd >/dev/null 2>&1 && return 0
  policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && made=1; }
  apt_install openssh-server
  code=$?
  [ -z "${made:-}" ] || rm -f "$policy"
  return "$code"
}

# What the tests drive for real: Slurm with munge and accounting, every Lua it may link, SkyPilot in a venv of its own.
setup_hosts() {
  apt_need slurmctld slurm-wlm munge || return 1
  apt_need munged munge || return 1
  # The parts of MariaDB without its service, which a cluster of the tests starts itself.
  apt_need slurmdbd slurmdbd || return 1
  apt_need mariadbd mariadb-server-core || return 1
  apt_need mariadb-admin mariadb-client || return 1
  # Opens the report of a ledger.
  apt_need chromium chromium || return 1
  apt_need ssh-keygen openssh-client || return 1
  # The login node of a cluster that SkyPilot works on; nothing of it is started by the package.
  ssh_server_need || return 1
  apt_need rsync rsync || return 1
  apt_need curl curl || return 1
  apt_need ip iproute2 || return 1
  apt_need ps procps || return 1
  for version in 5.1 5.2 5.3 5.4; do apt_need "lua$version" "lua$version" || return 1; done
  # The shells whose completions are tried, what reads the man page, and what checks a JUnit report.
  apt_need zsh zsh || return 1
  apt_need fish fish || return 1
  apt_need mandoc mandoc || return 1
  apt_need groff groff-base || return 1
  apt_need xmllint libxml2-utils || return 1
  # What a submit opens, and whether a unit is one.
  apt_need strace strace || return 1
  apt_need systemd-analyze systemd || return 1
  venv_need "$ROOT/.cache/sky" sky,hostlist,grpc 'skypilot[slurm]==0.13.0' fastapi==0.115.12 starlette==0.46.2 'setuptools<81'
}
