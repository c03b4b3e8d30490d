# The Debian and RPM packages, installed, upgraded, rolled back and removed in roots of their own. Sourced by all.sh.

DEB=$RELEASE/neurarch-gate_${VERSION}_amd64.deb
RPM=$RELEASE/neurarch-gate-$VERSION-1.x86_64.rpm
GATE_TOML=etc/neurarch/gate.toml
mkdir -p "$work/rpm-root/var/lib/rpm" "$work/rpm-root/tmp"
# Debian's rpm has its database elsewhere than the root's.
rpm_in() { rpm --root "$work/rpm-root" --dbpath /var/lib/rpm --nodeps --noscripts --nosignature "$@"; }

# The next version of both, with another default in the site file.
next_packages() { node_modules/.bin/bun packaging/check/next.ts "$work/next" "$RELEASE/neurarch-gate-$VERSION-linux-x64-baseline"; }

deb_installs() {
  cp -a "$BULLSEYE" "$work/box" && cp "$DEB" "$work"/next/*.deb "$work/box/" || return 1
  in_root "$work/box" dpkg -i "/${DEB##*/}" && asks in_root "$work/box" /usr/bin/neurarch-gate &&
    in_root "$work/box" dpkg --verify neurarch-gate || return 1
  # A filter that it prints there names it there.
  in_root "$work/box" /usr/bin/neurarch-gate print-lua | cmp - "$work/box/usr/share/neurarch-gate/cli_filter.lua" &&
    echo "it runs, and prints the filter of the package"
}
deb_upgrades() {
  echo 'mode = "reject"' >"$work/box/$GATE_TOML"
  in_root "$work/box" dpkg --force-confdef --force-confold -i /neurarch-gate_99.0.0_amd64.deb || return 1
  [ "$(cat "$work/box/$GATE_TOML")" = 'mode = "reject"' ] || return 1
  # Back, as a rollback does it.
  in_root "$work/box" dpkg --force-confdef --force-confold -i "/${DEB##*/}" || return 1
  [ "$(cat "$work/box/$GATE_TOML")" = 'mode = "reject"' ] && echo "an edited site file is kept, forth and back"
}
deb_goes() {
  in_root "$work/box" dpkg -r neurarch-gate && [ ! -e "$work/box/usr/bin/neurarch-gate" ] && [ -e "$work/box/$GATE_TOML" ] || return 1
  in_root "$work/box" dpkg -P neurarch-gate && [ ! -e "$work/box/etc/neurarch" ] || return 1
  [ -z "$(find "$work/box" -xdev -iname '*neurarch*' ! -name '*.deb' ! -path '*/dpkg/*' ! -path '*/tmp/.cache/*' -print -quit)" ] && echo "nothing is left"
}

rpm_lists() {
  rpm -qpl --nosignature "$RPM" >"$work/list" || return 1
  for path in /usr/bin/neurarch-gate /etc/neurarch/gate.toml /usr/share/man/man1/neurarch-gate.1.gz /usr/share/neurarch-gate/cli_filter.lua \
    /usr/lib/systemd/system/neurarch-gate.service /usr/lib/systemd/user/neurarch-bridge@.service /usr/share/zsh/site-functions/_neurarch-gate; do
    grep -qx "$path" "$work/list" || { echo "$path is not in it"; return 1; }
  done
  [ "$(rpm -qpc --nosignature "$RPM")" = /etc/neurarch/gate.toml ] || return 1
  # RPMFILE_CONFIG | RPMFILE_NOREPLACE (rpmfiles.h).
  flags=$(rpm -qp --nosignature --qf '[%{FILENAMES} %{FILEFLAGS}\n]' "$RPM" | sed -n 's,^/etc/neurarch/gate.toml ,,p')
  [ "$flags" -eq 17 ] && echo "$(wc -l <"$work/list") files, the site file config(noreplace)"
}
rpm_content() {
  mkdir "$work/cpio" && (cd "$work/cpio" && rpm2cpio "$RPM" | cpio -idm --quiet) || return 1
  cmp "$work/cpio/usr/bin/neurarch-gate" "$RELEASE/neurarch-gate-$VERSION-linux-x64-baseline" || return 1
  asks "$work/cpio/usr/bin/neurarch-gate"
}
rpm_installs() {
  rpm_in -i "$RPM" && rpm_in -V neurarch-gate || return 1
  echo 'mode = "reject"' >"$work/rpm-root/$GATE_TOML"
  rpm_in -U "$work"/next/*.rpm || return 1
  [ "$(cat "$work/rpm-root/$GATE_TOML")" = 'mode = "reject"' ] && [ -e "$work/rpm-root/$GATE_TOML.rpmnew" ] || return 1
  rpm_in -U --oldpackage "$RPM" && [ "$(cat "$work/rpm-root/$GATE_TOML")" = 'mode = "reject"' ] || return 1
  rpm_in -e neurarch-gate && [ ! -e "$work/rpm-root/usr/bin/neurarch-gate" ] && [ -e "$work/rpm-root/$GATE_TOML.rpmsave" ] &&
    echo "an edited site file is kept, forth and back, and saved at the end"
}
units_parse() {
  mkdir -p "$work/run" "$work/units/usr/bin" && cp -a "$work/cpio/usr/lib" "$work/units/usr/" || return 1
  install -m 0755 "$work/cpio/usr/bin/neurarch-gate" /usr/bin/neurarch-gate.checked || return 1
  found=0
  for unit in "$work/units/usr/lib/systemd/system/neurarch-gate.service" "$work/units/usr/lib/systemd/user/neurarch-bridge@.service"; do
    # The executable is where a package would put it, under a name that is no one's.
    sed -i 's,^ExecStart=/usr/bin/neurarch-gate ,ExecStart=/usr/bin/neurarch-gate.checked ,' "$unit"
    case $unit in */user/*) manager=--user ;; *) manager=--system ;; esac
    XDG_RUNTIME_DIR=$work/run systemd-analyze $manager verify "$unit" >"$work/verify" 2>&1 || found=1
    ! grep -q "${unit##*/}" "$work/verify" || found=1
    cat "$work/verify"
  done
  rm -f /usr/bin/neurarch-gate.checked
  [ "$found" -eq 0 ] && echo "systemd-analyze has nothing to say"
}
arm64_packages() {
  dpkg-deb -x "$RELEASE/neurarch-gate_${VERSION}_arm64.deb" "$work/arm64" &&
    cmp "$work/arm64/usr/bin/neurarch-gate" "$RELEASE/neurarch-gate-$VERSION-linux-arm64" &&
    [ "$(dpkg-deb -f "$RELEASE/neurarch-gate_${VERSION}_arm64.deb" Architecture)" = arm64 ] &&
    [ "$(rpm -qp --nosignature --qf '%{ARCH}' "$RELEASE/neurarch-gate-$VERSION-1.aarch64.rpm")" = aarch64 ] &&
    echo "arm64 and aarch64, with the arm64 executable"
}
python_installs() {
  for kind in whl tar.gz; do
    rm -rf "$work/venv" && python3 -m venv "$work/venv" || return 1
    # An sdist is built where it is installed, with what an offline host has.
    [ $kind = whl ] || "$work/venv/bin/python" -m pip install -q setuptools==80.9.0 || return 1
    PIP_NO_INDEX=1 "$work/venv/bin/pip" install -q --no-deps --no-build-isolation "$RELEASE"/neurarch_gate-*."$kind" || return 1
    "$work/venv/bin/pip" show neurarch-gate | grep -qx "Version: $VERSION" || return 1
  done
  echo "wheel and sdist, $VERSION"
}

check "a next version is packed" next_packages
check "the Debian package installs on Debian 11" deb_installs
check "the Debian package upgrades" deb_upgrades
check "the Debian package goes" deb_goes
check "the RPM package's list" rpm_lists
check "the RPM package's content runs" rpm_content
check "the RPM package installs, upgrades and goes" rpm_installs
check "the units" units_parse
check "the packages for arm64" arm64_packages
check "the Python policy installs offline" python_installs
