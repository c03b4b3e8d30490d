# Roots with older and other C libraries than this machine's. Sourced by all.sh.

# The oldest that is still served: Ubuntu 18.04 with glibc 2.27, older than Debian 10's 2.28. Its archive is frozen, and no
# Debian machine has its key: the list that everything in it is checked by is known by its digest.
BIONIC=$KEPT/bionic
BIONIC_ARCHIVE=http://archive.ubuntu.com/ubuntu
BIONIC_RELEASE=7552d5ab0c3879756a860aaab8e7c2f8ffb9409ea9ff9e65fc046ba5c519ebe5
make_bionic() {
  [ ! -e "$BIONIC/.ready" ] || { echo "$BIONIC"; return; }
  rm -rf "$BIONIC"
  # Unpacked only: nothing of it is run but its C library.
  debootstrap --foreign --variant=minbase --no-check-gpg bionic "$BIONIC" "$BIONIC_ARCHIVE" || return 1
  list=$(find "$BIONIC" -name '*bionic_Release' | head -n 1)
  [ -n "$list" ] && echo "$BIONIC_RELEASE  $list" | sha256sum -c || { rm -rf "$BIONIC"; return 1; }
  touch "$BIONIC/.ready" && echo "$BIONIC"
}

# Debian 11, whole, for its dpkg.
BULLSEYE=$KEPT/bullseye
make_bullseye() {
  [ ! -e "$BULLSEYE/.ready" ] || { echo "$BULLSEYE"; return; }
  rm -rf "$BULLSEYE"
  debootstrap --variant=minbase bullseye "$BULLSEYE" http://deb.debian.org/debian || return 1
  touch "$BULLSEYE/.ready" && echo "$BULLSEYE"
}

# musl as Alpine has it since 3.20: the library from Debian trixie's package (bookworm's is too old for today's
# libstdc++, whose relocations are packed), libstdc++ as it was built on Alpine from a wheel for musl. No Alpine server
# and no apk is needed.
make_musl() {
  [ ! -e "$2/.ready" ] || { echo "$2"; return; }
  rm -rf "$2"
  mkdir -p "$2/lib" "$2/usr/lib" "$2/parts/apt/lists/partial" "$2/parts/apt/archives/partial" "$2/parts/wheel"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$2/parts/apt/list"
  : >"$2/parts/apt/status"
  set -- "$1" "$2" -o "Dir::Etc::sourcelist=$2/parts/apt/list" -o Dir::Etc::sourceparts=/nonexistent \
    -o "Dir::State::lists=$2/parts/apt/lists" -o "Dir::State::status=$2/parts/apt/status" \
    -o "Dir::Cache=$2/parts/apt" -o "APT::Architecture=$1" -o "APT::Architectures=$1" -o APT::Sandbox::User=root
  arch=$1 box=$2
  shift 2
  apt-get -qq "$@" update && (cd "$box/parts" && apt-get -qq "$@" download musl) || return 1
  dpkg-deb -x "$box"/parts/musl_*.deb "$box/parts/musl" || return 1
  case $arch in amd64) cpu=x86_64 ;; *) cpu=aarch64 ;; esac
  cp "$box/parts/musl/usr/lib/$cpu-linux-musl/libc.so" "$box/lib/ld-musl-$cpu.so.1" || return 1
  ln -s "ld-musl-$cpu.so.1" "$box/lib/libc.musl-$cpu.so.1"
  "$KEPT/python/bin/pip" download -q --no-deps --only-binary :all: --platform "musllinux_1_2_$cpu" --python-version 3.12 \
    --dest "$box/parts" contourpy==1.3.3 || return 1
  python3 -m zipfile -e "$box"/parts/contourpy-*.whl "$box/parts/wheel" || return 1
  cp "$box"/parts/wheel/contourpy.libs/libgcc_s* "$box/usr/lib/" && cp "$box"/parts/wheel/contourpy.libs/libstdc++* "$box/usr/lib/libstdc++.so.6" || return 1
  rm -rf "$box/parts"
  touch "$box/.ready" && echo "$box"
}

# in_box FOLDER EXECUTABLE: copied into a root and asked there.
in_box() {
  cp "$2" "$1/gate" || return 1
  asks in_root "$1" /gate
}

check "Ubuntu 18.04 is unpacked" make_bionic
check "Debian 11 is installed" make_bullseye
check "musl is unpacked" make_musl amd64 "$KEPT/musl-amd64"
for target in linux-x64-baseline linux-x64; do
  check "$target under glibc 2.27" in_box "$BIONIC" "$RELEASE/neurarch-gate-$VERSION-$target"
done
check "linux-x64-baseline under glibc 2.31" in_box "$BULLSEYE" "$RELEASE/neurarch-gate-$VERSION-linux-x64-baseline"
check "linux-x64-musl under musl 1.2.5" in_box "$KEPT/musl-amd64" "$RELEASE/neurarch-gate-$VERSION-linux-x64-musl"
