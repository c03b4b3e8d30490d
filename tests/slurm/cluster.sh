#!/usr/bin/env bash
# A private Slurm cluster for the tests: real munged, slurmctld and slurmd daemons with GPUs that are not there.
#
#   cluster.sh start  DIR [--accounting|--accounting-memory]
#                                          write the configuration, start everything, wait until jobs can run
#   cluster.sh env    DIR                  print what to eval so that sbatch, srun and salloc talk to it
#   cluster.sh status DIR                  say which daemons live; exit 1 unless all do
#   cluster.sh stop   DIR                  end its jobs and its daemons, and nothing else
#
# Everything lies below DIR (at most 60 characters, as socket paths are short): nothing in /etc, /run or /var is
# read or written, and all ports are on the loopback address. Needs root, as slurmd starts jobs as their user.
# The filter in force is DIR/etc/cli_filter.lua; commands read it anew each time, so a test may replace it.
# --accounting adds MariaDB and slurmdbd, for sacct; with -memory jobs are watched and killed above their --mem.
set -u
PATH=$PATH:/usr/sbin:/sbin

# name, cards (type:count), other generic resources
NODES=(
  "ga10  a10g:4           shard:16"
  "ga100 a100:8           -"
  "gh1   h100:8           -"
  "gh2   h100:8           -"
  "gmig  a100_3g.20gb:2   -"
)
PATIENCE_S=20

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

# until_ok SECONDS COMMAND...: repeats a command until it succeeds
until_ok() {
  local tries=$(($1 * 20))
  shift
  while ! "$@" >/dev/null 2>&1; do
    ((tries-- > 0)) || return 1
    sleep 0.05
  done
}

# --- Daemons: started in the foreground by us, so their ids are ours to know -----------------------------------

# The kernel's start time makes an id unmistakable: a number that was given to another process since has another.
born() {
  local stat
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  stat=${stat##*) }
  # shellcheck disable=SC2086
  set -- $stat
  [ "$1" != Z ] && echo "${20}"
}

# launch NAME COMMAND...: runs a daemon in a session of its own and writes down who it is
launch() {
  local name=$1 pid
  shift
  (cd "$DIR/log" && exec setsid "$@" </dev/null >>"$DIR/log/$name.out" 2>&1) &
  pid=$!
  disown
  echo "$name $pid $(born "$pid")" >>"$DIR/run/daemons"
}

# alive NAME-PATTERN: "name pid" of each daemon of this cluster that still runs, last started first
alive() {
  local name pid start
  [ -e "$DIR/run/daemons" ] || return 0
  tac "$DIR/run/daemons" | while read -r name pid start; do
    # shellcheck disable=SC2254
    case $name in $1) [ "$(born "$pid")" = "$start" ] && echo "$name $pid" ;; esac
  done
}
none_alive() { [ -z "$(alive "$1")" ]; }

# Job step daemons leave their parent; they keep its working directory, which is ours alone.
step_daemons() {
  local proc comm
  for proc in /proc/[0-9]*; do
    read -r comm 2>/dev/null <"$proc/comm" && [ "$comm" = slurmstepd ] || continue
    [ "$(readlink "$proc/cwd")" = "$DIR/log" ] && born "${proc#/proc/}" >/dev/null && echo "${proc#/proc/}"
  done
}
no_steps() { [ -z "$(step_daemons)" ]; }

# end NAME-PATTERN: asks these daemons to stop, waits for all, and kills what does not listen
end() {
  local pid
  alive "$1" | while read -r _ pid; do kill -TERM "$pid"; done
  until_ok "$PATIENCE_S" none_alive "$1" && return
  alive "$1" | while read -r _ pid; do kill -KILL "$pid"; done
  until_ok 5 none_alive "$1"
}

# --- Configuration ----------------------------------------------------------------------------------------------

port_is_free() { ! (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The first of N neighbouring free ports below the range that the kernel hands out itself
find_ports() {
  local attempt first offset
  for attempt in {1..100}; do
    first=$((11000 + (RANDOM * 7 + attempt) % 20000))
    for ((offset = 0; offset < $1; offset++)); do port_is_free $((first + offset)) || continue 2; done
    echo "$first"
    return
  done
  return 1
}

# Character devices without a driver, so that jobs are given CUDA_VISIBLE_DEVICES; plain files where that is refused
make_devices() { # NODE COUNT
  local index
  for ((index = 0; index < $2; index++)); do
    rm -f "$DIR/dev/$1-$index"
    mknod "$DIR/dev/$1-$index" c 241 "$((MINOR++))" 2>/dev/null || : >"$DIR/dev/$1-$index"
  done
}

write_slurm_conf() { # FIRST-PORT
  local host port=$(($1 + 3)) node cards extra
  host=$(hostname -s 2>/dev/null || hostname)
  cat <<-CONF
	ClusterName=gatetest
	SlurmctldHost=$host(127.0.0.1)
	SlurmctldPort=$1
	SlurmUser=root
	SlurmdUser=root
	AuthType=auth/munge
	AuthInfo=socket=$DIR/run/munge
	StateSaveLocation=$DIR/state
	SlurmdSpoolDir=$DIR/spool/%n
	SlurmctldPidFile=$DIR/run/slurmctld.pid
	SlurmdPidFile=$DIR/run/%n.pid
	SlurmctldLogFile=$DIR/log/slurmctld.log
	SlurmdLogFile=$DIR/log/%n.log
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	JobAcctGatherType=jobacct_gather/${GATHER:-none}
	MpiDefault=none
	SwitchType=switch/none
	ReturnToService=2
	KillWait=2
	SelectType=select/cons_tres
	SelectTypeParameters=CR_CPU_Memory
	DefMemPerCPU=64
	SchedulerParameters=sched_interval=1,bf_interval=1
	SlurmdParameters=config_overrides
	GresTypes=gpu,shard
	CliFilterPlugins=cli_filter/lua
	CONF
  [ -z "$GATHER" ] || printf 'JobAcctGatherParams=OverMemoryKill\nJobAcctGatherFrequency=1\n'
  if [ -n "$ACCOUNTING" ]; then
    cat <<-CONF
	AccountingStorageType=accounting_storage/slurmdbd
	AccountingStorageHost=127.0.0.1
	AccountingStoragePort=$(($1 + 1))
	AccountingStoragePass=$DIR/run/munge
	AccountingStoreFlags=job_comment
	AccountingStorageTRES=gres/gpu
	CONF
  fi
  for row in "${NODES[@]}"; do
    read -r node cards extra <<<"$row"
    [ "$extra" = - ] && extra= || extra=,$extra
    echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$port Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=200000 Gres=gpu:$cards$extra"
    port=$((port + 1))
  done
  echo "PartitionName=gpu Nodes=ALL Default=YES MaxTime=7-0 DefaultTime=30"
  echo "PartitionName=short Nodes=ga10 MaxTime=30"
}

write_gres_conf() {
  local row node cards extra count
  for row in "${NODES[@]}"; do
    read -r node cards extra <<<"$row"
    count=${cards##*:}
    make_devices "$node" "$count"
    echo "NodeName=$node Name=gpu Type=${cards%:*} File=$DIR/dev/$node-[0-$((count - 1))]"
    [ "$extra" = - ] || echo "NodeName=$node Name=${extra%:*} Count=${extra##*:}"
  done
}

write_accounting() { # FIRST-PORT
  local secret
  secret=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
  umask 077
  cat >"$DIR/etc/slurmdbd.conf" <<-CONF
	AuthType=auth/munge
	AuthInfo=socket=$DIR/run/munge
	DbdHost=localhost
	DbdAddr=127.0.0.1
	DbdPort=$(($1 + 1))
	SlurmUser=root
	PidFile=$DIR/run/slurmdbd.pid
	LogFile=$DIR/log/slurmdbd.log
	StorageType=accounting_storage/mysql
	StorageHost=127.0.0.1
	StoragePort=$(($1 + 2))
	StorageUser=slurm
	StoragePass=$secret
	StorageLoc=gatetest
	CONF
  cat >"$DIR/etc/database.cnf" <<-CONF
	[mariadbd]
	user=root
	datadir=$DIR/database
	socket=$DIR/run/database
	pid-file=$DIR/run/database.pid
	bind-address=127.0.0.1
	port=$(($1 + 2))
	skip-name-resolve
	init-file=$DIR/etc/database.sql
	innodb_buffer_pool_size=64M
	innodb_lock_wait_timeout=900
	CONF
  cat >"$DIR/etc/database.sql" <<-SQL
	CREATE DATABASE IF NOT EXISTS gatetest;
	CREATE OR REPLACE USER 'slurm'@'127.0.0.1' IDENTIFIED BY '$secret';
	GRANT ALL ON gatetest.* TO 'slurm'@'127.0.0.1';
	SQL
}

configure() {
  local first cgroup version
  first=$(find_ports $((${#NODES[@]} + 3))) || fail "no free ports on 127.0.0.1"
  mkdir -p "$DIR"/{etc,run,log,dev,state,spool}
  chmod 755 "$DIR" "$DIR"/{etc,run,log,dev,spool}
  MINOR=0
  write_slurm_conf "$first" >"$DIR/etc/slurm.conf"
  write_gres_conf >"$DIR/etc/gres.conf"
  # slurmd starts a cgroup plugin and, unless one is named, looks for a mounted hierarchy, which a container need not
  # have. From 23.11 it can do without.
  cgroup="CgroupPlugin=cgroup/v1 CgroupMountpoint=$DIR/none"
  version=$(slurmd -V | tr -dc '0-9.')
  [ "$(printf '%s\n23.11\n' "$version" | sort -V | head -n 1)" = 23.11 ] && cgroup=CgroupPlugin=disabled
  tr ' ' '\n' <<<"$cgroup" >"$DIR/etc/cgroup.conf"
  : >"$DIR/etc/plugstack.conf"
  (umask 077 && head -c 256 /dev/urandom >"$DIR/etc/munge.key")
  if [ -n "$ACCOUNTING" ]; then (write_accounting "$first"); fi
  # A filter that does nothing, until a test puts its own in place.
  local hook
  for hook in setup_defaults pre_submit post_submit; do
    echo "function slurm_cli_$hook() return slurm.SUCCESS end"
  done >"$DIR/etc/cli_filter.lua"
}

# --- Commands ---------------------------------------------------------------------------------------------------

nodes_idle() { [ "$(sinfo -h -N -o '%N %t' | sort -u | grep -c ' idle$')" -eq "${#NODES[@]}" ]; }
controller_up() { scontrol ping | grep -q ' UP'; }
database_up() { mariadb-admin --no-defaults --socket="$DIR/run/database" ping; }
registered() { sacctmgr -n show cluster || return 1; }

bring_up() {
  local row node
  launch munged munged --foreground --force --socket="$DIR/run/munge" --key-file="$DIR/etc/munge.key" \
    --pid-file="$DIR/run/munged.pid" --log-file="$DIR/log/munged.log" --seed-file="$DIR/state/munge.seed"
  until_ok "$PATIENCE_S" munge -S "$DIR/run/munge" -n || { STAGE=munged && return 1; }
  if [ -n "$ACCOUNTING" ]; then
    mariadb-install-db --no-defaults --user=root --datadir="$DIR/database" --skip-test-db --force \
      --auth-root-authentication-method=normal >"$DIR/log/database-install.out" 2>&1
    launch database mariadbd --defaults-file="$DIR/etc/database.cnf"
    until_ok "$PATIENCE_S" database_up || { STAGE=database && return 1; }
    launch slurmdbd slurmdbd -D
    until_ok "$PATIENCE_S" registered || { STAGE=slurmdbd && return 1; }
    sacctmgr -i add cluster gatetest >"$DIR/log/register.out" 2>&1
  fi
  launch slurmctld slurmctld -D
  for row in "${NODES[@]}"; do
    node=${row%% *}
    mkdir -p "$DIR/spool/$node"
    launch "slurmd-$node" slurmd -D -N "$node"
  done
  until_ok "$PATIENCE_S" controller_up || { STAGE=slurmctld && return 1; }
  until_ok "$PATIENCE_S" nodes_idle || { STAGE=nodes && return 1; }
}

start() {
  local program wanted="munged munge slurmctld slurmd sinfo scontrol"
  [ -z "$ACCOUNTING" ] || wanted+=" mariadbd mariadb-install-db mariadb-admin slurmdbd sacctmgr"
  [ "$(id -u)" -eq 0 ] || fail "needs root: slurmd starts jobs as their user"
  [ "${#DIR}" -le 60 ] || fail "$DIR is too long for the sockets below it (60 characters at most)"
  case $DIR in *[[:space:]#,]*) fail "$DIR must not hold blanks, commas or #" ;; esac
  for program in $wanted; do
    command -v "$program" >/dev/null || fail "$program is not installed (Debian: slurm-wlm munge; for --accounting also slurmdbd mariadb-server-core mariadb-client)"
  done
  none_alive '*' || fail "$DIR runs already"
  configure
  rm -rf "$DIR"/run/* "$DIR"/state/* "$DIR"/spool/*
  if ! bring_up; then
    tail -n 8 "$DIR"/log/* >&2
    stop >/dev/null
    fail "did not come up: $STAGE"
  fi
}

stop() {
  local pid
  if ! none_alive slurmctld && ! no_steps; then
    squeue -h -o %A | sort -u | timeout 10 xargs -r scancel 2>/dev/null
    until_ok 6 no_steps
  fi
  for pid in $(step_daemons); do
    # The step's own processes first: they are its children.
    # shellcheck disable=SC2046
    kill -KILL $(cat /proc/"$pid"/task/*/children 2>/dev/null) "$pid" 2>/dev/null
  done
  end 'slurmd-*' && end slurmctld && end slurmdbd && end database && end munged ||
    fail "still there: $(alive '*' | tr '\n' ' ')"
  rm -f "$DIR/run/daemons"
}

status() {
  local name pid start lost=0
  [ -e "$DIR/run/daemons" ] || fail "nothing was started in $DIR"
  while read -r name pid start; do
    if [ "$(born "$pid")" = "$start" ]; then echo "$name $pid"; else echo "$name gone" && lost=1; fi
  done <"$DIR/run/daemons"
  return "$lost"
}

environment() {
  [ -e "$DIR/etc/slurm.conf" ] || fail "nothing was started in $DIR"
  printf 'export SLURM_CONF=%q\n' "$SLURM_CONF"
}

usage() {
  sed -n '4,8s/^# *//p' "$0" >&2
  exit 2
}

[ $# -eq 2 ] || [ $# -eq 3 ] || usage
ACCOUNTING= GATHER=
case ${3-} in
  '') ;;
  --accounting) ACCOUNTING=1 ;;
  --accounting-memory) ACCOUNTING=1 GATHER=linux ;;
  *) usage ;;
esac
mkdir -p "$2" && DIR=$(cd "$2" && pwd -P) || fail "cannot use $2"
# A shell that belongs to another cluster or job must not leak into this one.
for variable in $(compgen -e); do
  case $variable in SLURM* | SBATCH* | SRUN* | SALLOC*) unset "$variable" ;; esac
done
export SLURM_CONF=$DIR/etc/slurm.conf
case $1 in
  start | stop | status) "$1" ;;
  env) environment ;;
  *) usage ;;
esac
