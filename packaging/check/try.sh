# What an executable has to do wherever it is tried. Sourced by all.sh.

# asks COMMAND...: its version, its own test, and a refusal with the right figures.
asks() {
  "$@" --version | grep -q "^neurarch-gate $VERSION (" || return 1
  # The clock of an old root is ours; settings and ledger there are none.
  "$@" self-test >"$work/self-test" || { cat "$work/self-test"; return 1; }
  refused=0
  "$@" judge --model Qwen/Qwen3-8B --batch 8 --request A10G:1 >"$work/judged" 2>&1 || refused=$?
  [ "$refused" -eq 1 ] && grep -q 'needs     339.4 GB' "$work/judged" || { cat "$work/judged"; return 1; }
  echo "version, self-test and a refusal"
}

# in_root FOLDER COMMAND...: in a root of its own, with /proc and /dev, and none of this machine's environment.
in_root() {
  box=$1
  shift
  mkdir -p "$box/tmp"
  # A root that was only unpacked has a link from /proc to /proc.
  for name in proc dev; do [ ! -L "$box/$name" ] || rm "$box/$name"; mkdir -p "$box/$name"; done
  BOX=$box unshare --mount --propagation private bash -c '
    mount -t proc proc "$BOX/proc" && mount --bind /dev "$BOX/dev" || exit 99
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp HF_HUB_OFFLINE=1 DEBIAN_FRONTEND=noninteractive \
      "$(command -v chroot)" "$BOX" "$@"' in_root "$@"
}
