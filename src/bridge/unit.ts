import { assignmentWord, unitWord } from "../lib/systemd.ts";

/** Seconds that the jobs' cancelling and the release of the allocation get when the service is stopped. */
const STOP_TIMEOUT_S = 180;

/**
 * A systemd unit of the operator's own (`systemctl --user`): the daemon needs the operator's sky and ssh, so it runs as
 * that user, with nothing new to be gained (systemd.exec(5)). On a stop only the daemon is told; its sky calls end by
 * themselves (`KillMode=mixed`).
 */
export function bridgeUnit(
  executable: string,
  words: readonly string[],
  place: { readonly runId: string; readonly path: string | undefined },
): string {
  return `[Unit]
Description=neurarch-gate bridge: trusted evaluations of run ${place.runId.replaceAll("%", "%%")}
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=${[executable, "bridge", ...words].map(unitWord).join(" ")}
${place.path === undefined ? "" : `Environment=${assignmentWord(`PATH=${place.path}`)}\n`}Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec=${STOP_TIMEOUT_S}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=default.target
`;
}
