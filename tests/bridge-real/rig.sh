#!/usr/bin/env bash
# A cluster and a SkyPilot of their own for the tests: real Slurm daemons, a real sshd as its login node, and the real
# SkyPilot client and API server, on one machine.
#
#   rig.sh hold DIR PYTHON PROJECT  brings everything up, prints `ready PID`, and takes it down when its stdin ends
#   rig.sh do WORDS...              inside a rig: one of the acts at the end of this file
#
# Everything runs in namespaces of its own (processes, network, mounts, host name), whose first process is the holder:
# when it ends, for whatever reason, the kernel ends all that was started below it. Its loopback network is not the
# machine's, so no port is shared with anything. Inside, DIR is /mnt. PYTHON belongs to an environment with
# skypilot[slurm]; PROJECT, where the executable under test is dist/neurarch-gate, is /mnt/project inside. Needs root, and
# Debian's slurm-wlm munge openssh-server openssh-client rsync curl iproute2 util-linux.
#
# The host of SkyPilot and the nodes have a /tmp each and an unprivileged user, `pilot`. One thing is not real: a node has no network,
# so what SkyPilot installs there with uv comes from PYTHON's environment (see write_installer).
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
PATIENCE_S=240
SELF=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)/$(basename "${BASH_SOURCE[0]}")

fail() {
  echo "rig.sh: $*" >&2
  exit 1
}

# until_ok SECONDS COMMAND...: repeats a command until it succeeds
until_ok() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# --- Outside ------------------------------------------------------------------------------------------------------

hold() {
  local program unsharer
  [ "$(id -u)" -eq 0 ] || fail "needs root"
  for program in unshare nsenter setpriv ip munged munge slurmctld slurmd srun scontrol sshd ssh ssh-keygen rsync curl; do
    command -v "$program" >/dev/null ||
      fail "$program is not installed (Debian: slurm-wlm munge openssh-server openssh-client rsync curl iproute2 util-linux)"
  done
  unshare --mount --pid --net --uts --ipc --fork true || fail "this machine allows no namespaces"
  mkdir -p "$1"
  exec 3<&0
  unshare --mount --propagation private --pid --net --uts --ipc --fork --kill-child=KILL \
    bash "$SELF" inside "$@" <&3 &
  unsharer=$!
  exec 3<&-
  trap 'kill -KILL "$unsharer"' TERM INT HUP
  wait "$unsharer"
  # What was mounted there went with the namespace.
  [ -n "${NEURARCH_TEST_KEEP:-}" ] || rm -rf "$1"
}

# --- Inside: what is written --------------------------------------------------------------------------------------

write_accounts() {
  cp /etc/group etc/group
  # '*', not '!': sshd without PAM takes '!' for a locked account and refuses its keys too.
  { cat /etc/passwd && echo "pilot:x:64123:64123::/mnt/node:/bin/bash"; } >etc/passwd
  echo "pilot:x:64123:" >>etc/group
  { cat /etc/shadow && echo "pilot:*:19000:0:99999:7:::"; } >etc/shadow
  chmod 600 etc/shadow
  # sshd's own user, where the package's set-up did not make it.
  grep -q '^sshd:' etc/passwd || echo "sshd:x:64124:65534::/run/sshd:/usr/sbin/nologin" >>etc/passwd
  printf '127.0.0.1 localhost rig a10g1 a10g2 mi300x1\n' >etc/hosts
}

# SkyPilot fetches an installer of uv with curl, and with uv a Python and its own packages. On the nodes both are
# answered here: uv makes a virtual environment over the packages of PYTHON's, SkyPilot's own among them, which are the
# ones that the wheel it is to install was made of.
write_installer() { # PYTHON-VERSION PREFIX
  cat >bin/curl <<'SH'
#!/bin/sh
case "$*" in
  */uv/install.sh*) echo 'mkdir -p "$UV_INSTALL_DIR" && cp /mnt/bin/node-uv "$UV_INSTALL_DIR/uv"' ;;
  *) exec /usr/bin/curl "$@" ;;
esac
SH
  cat >bin/node-uv <<SH
#!/bin/sh
installed=\${VIRTUAL_ENV:-}/skypilot
case "\$*" in
  "venv --seed "*)
    "$2/bin/python$1" -m venv --without-pip "\$3" && echo /mnt/packages >"\$3/lib/python$1/site-packages/rig.pth" ;;
  "pip list") [ ! -e "\$installed" ] || echo "skypilot 0.13.0" ;;
  "pip uninstall "*) rm -f "\$installed" ;;
  "pip install "*skypilot-*.whl*) : >"\$installed" ;;
  "run "*) shift && exec "\$@" ;;
esac
SH
  chmod 755 bin/*
}

write_slurm() {
  local port=7000 row name gres index minor=0
  cat >etc/slurm.conf <<'CONF'
ClusterName=rig
SlurmctldHost=rig(127.0.0.1)
SlurmctldPort=6900
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/mnt/run/munge
StateSaveLocation=/mnt/state
SlurmdSpoolDir=/mnt/spool/%n
SlurmctldPidFile=/mnt/run/slurmctld.pid
SlurmdPidFile=/mnt/run/slurmd-%n.pid
SlurmctldLogFile=/mnt/log/slurmctld.log
SlurmdLogFile=/mnt/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=2
# A node that is dead is noticed in seconds, not in five minutes.
SlurmdTimeout=12
SchedulerParameters=sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
  : >etc/gres.conf
  for row in a10g1:gpu:a10g:4 a10g2:gpu:a10g:4 mi300x1:gpu:4; do
    name=${row%%:*} gres=${row#*:}
    echo "NodeName=$name NodeHostname=rig NodeAddr=127.0.0.1 Port=$((port++)) CPUs=32 RealMemory=200000 Gres=$gres" >>etc/slurm.conf
    for index in 0 1 2 3; do
      mknod "dev/$name-$index" c 240 "$((minor++))" 2>/dev/null || : >"dev/$name-$index"
    done
    [ "$gres" = gpu:4 ] && gres= || gres=Type=a10g
    echo "NodeName=$name Name=gpu $gres File=/mnt/dev/$name-[0-3]" >>etc/gres.conf
    mkdir -p "spool/$name"
  done
  cat >>etc/slurm.conf <<'CONF'
PartitionName=gpu Nodes=a10g1,a10g2 Default=YES MaxTime=08:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=a10g1,a10g2 MaxTime=08:00:00 PriorityTier=10 PreemptMode=OFF
PartitionName=mi300 Nodes=mi300x1 MaxTime=08:00:00
CONF
  if [ "$(printf '%s\n23.11\n' "$(slurmd -V | tr -dc 0-9.)" | sort -V | head -n 1)" = 23.11 ]; then
    echo CgroupPlugin=disabled >etc/cgroup.conf
  else
    printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/mnt/none\n' >etc/cgroup.conf
  fi
  : >etc/plugstack.conf
  (umask 077 && head -c 256 /dev/urandom >etc/munge.key)
}

write_ssh() {
  ssh-keygen -q -t ed25519 -N '' -f etc/host_key
  mkdir -m 700 home/.ssh
  ssh-keygen -q -t ed25519 -N '' -f home/.ssh/key
  cp home/.ssh/key.pub etc/authorized_keys
  cat >etc/sshd_config <<'CONF'
ListenAddress 127.0.0.1
Port 2222
HostKey /mnt/etc/host_key
PidFile /mnt/run/sshd.pid
AllowUsers pilot
AuthorizedKeysFile /mnt/etc/authorized_keys .ssh/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
UseDNS no
MaxStartups 200
MaxSessions 200
Subsystem sftp internal-sftp
SetEnv "SLURM_CONF=/mnt/etc/slurm.conf" "PATH=/mnt/bin:/usr/local/bin:/usr/bin:/bin"
CONF
  # Login shells read /etc/profile, which sets PATH anew; SkyPilot's set-up ends without a ~/.bashrc.
  echo 'export PATH=/mnt/bin:/usr/local/bin:/usr/bin:/bin' | tee node/.bash_profile >node/.bashrc
  chown -R pilot: node
  mkdir -p -m 755 /run/sshd
}

write_sky() { # CATALOGUE-VERSION
  local catalogue=home/.sky/catalogs/$1
  mkdir -p "$catalogue"/{common,slurm} home/.slurm
  cat >home/.slurm/config <<'CONF'
Host lab
  HostName 127.0.0.1
  Port 2222
  User pilot
  IdentityFile /mnt/home/.ssh/key
  IdentitiesOnly yes
CONF
  cat >home/.sky/config.yaml <<'CONF'
allowed_clouds: [slurm]
provision: {install_conda: false}
slurm:
  cluster_configs:
    lab:
      gpu_partition_map: {MI300A: mi300}
CONF
  # The catalogue is not in the package and would be downloaded; a file that is there is never looked for.
  printf '%s\n' AcceleratorName,Clouds "A10G,['Slurm']" "MI300A,['Slurm']" >"$catalogue/common/accelerators.csv"
  printf '%s\n' GPU,MemoryGB,Manufacturer A10G,24,NVIDIA MI300A,128,AMD >"$catalogue/common/metadata.csv"
  printf '%s\n' Region,Zone,PricePerVCPU,PricePerMemoryGB,AcceleratorName,PricePerAccelerator ,,0.0,0.0,,0.0 \
    >"$catalogue/slurm/pricing.csv"
  cat >bin/sky <<'SH'
#!/bin/sh
exec /mnt/venv/bin/python /mnt/venv/bin/sky "$@"
SH
  chmod 755 bin/sky
}

# A Python that was built for its place looks for its library there: a folder above it that is closed to the nodes' user
# is covered by an empty one in which only that place is.
open_up() { # FOLDER
  local above=$1
  setpriv --reuid 64123 --regid 64123 --clear-groups test -x "$1" && return
  while [ "$(dirname "$above")" != / ]; do above=$(dirname "$above"); done
  mount -t tmpfs -o mode=755 tmpfs "$above" && mkdir -p "$1" && mount --bind python "$1"
}

# --- Inside: what is started --------------------------------------------------------------------------------------

launch() { # NAME COMMAND...
  local name=$1
  shift
  (cd log && exec setsid "$@" </dev/null >>"/mnt/log/$name.out" 2>&1) &
  echo $! >"run/$name.id"
  disown
}
# The cluster's machines have a /tmp of their own.
on_cluster() {
  local name=$1
  shift
  launch "$name" unshare --mount --propagation private sh -c 'mount --bind /mnt/cluster-tmp /tmp && exec "$@"' sh "$@"
}
sky_environment() {
  env -i PATH="/mnt/bin:$PATH" HOME=/mnt/home USER=root LANG=C.UTF-8 SKYPILOT_DISABLE_USAGE_COLLECTION=1 "$@"
}
nodes_idle() { [ "$(sinfo -h -N -o '%N %t' | sort -u | grep -c ' idle$')" -eq 3 ]; }
node_up() { sinfo -h -n "$1" -o '%t' | grep -qE '^(idle|mix|alloc)$'; }
login() {
  ssh -F none -p 2222 -i home/.ssh/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o LogLevel=ERROR pilot@127.0.0.1 "$@" </dev/null
}
api_healthy() { curl -fsS -m 5 --noproxy '*' http://127.0.0.1:46580/api/health; }

start_munged() {
  launch munged munged --foreground --force --socket=/mnt/run/munge --key-file=/mnt/etc/munge.key \
    --pid-file=/mnt/run/munged.pid --log-file=/mnt/log/munged.log --seed-file=/mnt/state/munge.seed
  until_ok 120 munge -S /mnt/run/munge -n
}
start_slurmctld() { launch slurmctld slurmctld -D && until_ok 120 controller_up; }
controller_up() { scontrol ping | grep -q ' UP'; }
start_slurmd() { on_cluster "slurmd-$1" slurmd -D -N "$1"; }
# sshd executes itself anew for each connection, so it is called by its whole name.
start_sshd() { on_cluster sshd "$(command -v sshd)" -D -f /mnt/etc/sshd_config -E /mnt/log/sshd.log && until_ok 120 login true; }
start_api() {
  launch api env -i PATH="/mnt/bin:$PATH" HOME=/mnt/home USER=root LANG=C.UTF-8 SKYPILOT_DISABLE_USAGE_COLLECTION=1 \
    IS_SKYPILOT_SERVER=true /mnt/venv/bin/python -u -m sky.server.server --host=127.0.0.1
  until_ok "$PATIENCE_S" api_healthy
}

bring_up() {
  local node
  STAGE=munged && start_munged || return 1
  STAGE=slurm && start_slurmctld || return 1
  for node in a10g1 a10g2 mi300x1; do start_slurmd "$node"; done
  start_api & # the slowest of all
  local api=$!
  STAGE=sshd && start_sshd || return 1
  STAGE=nodes && until_ok 120 nodes_idle || return 1
  STAGE="API server" && wait "$api" || return 1
  STAGE=check && sky_environment timeout "$PATIENCE_S" sky check slurm >log/check.out 2>&1 && grep -q 'lab' log/check.out
}

inside() { # DIR PYTHON PROJECT
  local pid python=$2 version prefix packages catalogue said folder
  # Before /proc is our own: what the machine outside calls this process.
  read -r pid _ </proc/self/stat
  said=$("$python" - <<'PY'
import sys, sysconfig
import hostlist, grpc
from sky.skylet import constants
print('%d.%d' % sys.version_info[:2], sys.base_prefix, sysconfig.get_paths()['purelib'], constants.CATALOG_SCHEMA_VERSION)
PY
  ) || fail "$python has no skypilot[slurm]"
  read -r version prefix packages catalogue <<<"$said"
  mount --bind "$1" /mnt && cd /mnt || fail "cannot mount $1"
  mkdir -p etc run log dev state spool bin home/.sky node tmp cluster-tmp python packages venv project
  chmod 755 . node && chmod 1777 tmp cluster-tmp
  # The user of the nodes need not be able to get to where these lie.
  mount --bind "$prefix" python && mount --bind "$packages" packages || fail "cannot mount $prefix"
  mount --bind "$(dirname "$(dirname "$python")")" venv && mount --bind "$3" project || fail "cannot mount"
  cp "$SELF" bin/rig.sh
  # Sockets of SkyPilot's ssh connections lie in /tmp, under a name that is the same for every SkyPilot of a user.
  mount --bind tmp /tmp && mount -t tmpfs tmpfs /dev/shm || fail "cannot mount /tmp"
  open_up "$prefix" || fail "cannot mount $prefix anew"
  write_accounts
  for folder in passwd group shadow hosts; do mount --bind "etc/$folder" "/etc/$folder" || fail "cannot mount /etc/$folder"; done
  mount -t proc proc /proc
  hostname rig
  ip link set lo up
  # getaddrinfo, as Slurm calls it, answers only where there is an address that is not 127.0.0.1.
  ip address add 10.64.0.1/32 dev lo
  write_installer "$version" "$prefix"
  write_slurm
  write_ssh
  write_sky "$catalogue"
  export SLURM_CONF=/mnt/etc/slurm.conf
  if ! bring_up; then
    tail -n 12 log/* >&2
    fail "did not come up: $STAGE"
  fi
  echo "ready $pid"
  # Whoever holds the other end is there as long as this does not end.
  while read -r _; do :; done
}

# --- Acts of a test -----------------------------------------------------------------------------------------------

# named PATTERN: ids of the rig's own processes whose command line begins like that; there are no others in here
named() {
  local proc line
  for proc in /proc/[0-9]*; do
    line=$(tr '\0' ' ' 2>/dev/null <"$proc/cmdline") || continue
    # shellcheck disable=SC2254
    case $line in $1) echo "${proc#/proc/}" ;; esac
  done
}
end() { # SIGNAL PATTERN...
  local signal=$1 pattern pids
  shift
  for pattern; do
    pids=$(named "$pattern")
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill "-$signal" $pids 2>/dev/null
  done
  for pattern; do until_ok 20 none_named "$pattern" || fail "still there: $pattern"; done
}
none_named() { [ -z "$(named "$1")" ]; }
# The listener and all sessions; what was started over one goes on.
stop_sshd() { end KILL 'sshd: *'; }
# Its queue is a process of its own, which keeps its port where only the others are ended.
stop_api() { end KILL '*sky.server.server*' 'SkyPilot:*' '/mnt/venv/bin/python -c from multiprocessing*'; }
stop_slurmctld() { end KILL 'slurmctld -D*' ': slurmscriptd*'; }
stop_slurmd() { end KILL "slurmd -D -N $1*"; }

case ${1-} in
  hold) shift && hold "$@" ;;
  inside) shift && inside "$@" ;;
  do)
    cd /mnt || exit 1
    export SLURM_CONF=/mnt/etc/slurm.conf
    shift
    "$@"
    ;;
  *) sed -n '5,7s/^# *//p' "$0" >&2 && exit 2 ;;
esac
