# Processors that this machine has not, through qemu's user emulation. Sourced by all.sh.

NEHALEM="qemu-x86_64-static -cpu Nehalem" # 2008: SSE4.2, no AVX
ARM64="qemu-aarch64-static -L /usr/aarch64-linux-gnu"

# The emulation has to tell the difference: a program of one AVX2 instruction (vpaddd ymm0, ymm0, ymm0) and an exit.
knows_avx() {
  python3 - "$work/avx" <<'PY' || return 1
import struct, sys
code = bytes.fromhex("c5fdfec0" "b83c000000" "31ff" "0f05")
base, size = 0x400000, 120 + len(code)
head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
open(sys.argv[1], "wb").write(head + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096) + code)
PY
  chmod +x "$work/avx"
  qemu-x86_64-static -cpu max "$work/avx" && ! $NEHALEM "$work/avx" && echo "AVX2 is an illegal instruction there"
}

emulated() {
  # Emulated roots have this machine's settings: none, and its clock.
  env HOME="$work" HF_HUB_OFFLINE=1 "$@"
}

check "an emulated Nehalem" knows_avx
check "linux-x64-baseline on a Nehalem" asks emulated $NEHALEM "$RELEASE/neurarch-gate-$VERSION-linux-x64-baseline"
check "linux-arm64 on an emulated arm64" asks emulated $ARM64 "$RELEASE/neurarch-gate-$VERSION-linux-arm64"
check "musl for arm64 is unpacked" make_musl arm64 "$KEPT/musl-arm64"
check "linux-arm64-musl on an emulated arm64" \
  asks emulated qemu-aarch64-static -L "$KEPT/musl-arm64" "$RELEASE/neurarch-gate-$VERSION-linux-arm64-musl"
