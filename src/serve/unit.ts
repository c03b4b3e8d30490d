import { assignmentWord, unitWord } from "../lib/systemd.ts";

/**
 * A systemd unit that runs the server as a user of its own, with nothing of the host writable but its run-time and
 * cache folders and the ledger (systemd.exec(5), "Sandboxing").
 */
export function systemdUnit(
  executable: string,
  words: readonly string[],
  ledger: string | null = null,
): string {
  return `[Unit]
Description=neurarch-gate: admin policy for SkyPilot
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=${[executable, "serve", ...words].map(unitWord).join(" ")}
Restart=on-failure
LimitNOFILE=65536
DynamicUser=yes
RuntimeDirectory=neurarch
CacheDirectory=neurarch
Environment=HOME=/var/cache/neurarch XDG_CACHE_HOME=/var/cache/neurarch
NoNewPrivileges=yes
ProtectSystem=strict
${ledger === null ? "" : `ReadWritePaths=${assignmentWord(`-${ledger}`)}\n`}ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
LockPersonality=yes
CapabilityBoundingSet=
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`;
}
