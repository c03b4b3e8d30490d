import { assignmentWord, unitWord } from "../lib/systemd.ts";

/**
 * Seconds for what a stop may have to wait for: a submission that is under way, the jobs' cancelling and the release of
 * the allocation, a minute each.
 */
const STOP_TIMEOUT_S = 240;

/**
 * A systemd unit of the operator's own (`systemctl --user`): the daemon needs the operator's sky and ssh, so it runs as
 * that user, with nothing new to be gained (systemd.exec(5)).
 *
 * Only the daemon itself is ever told or killed (`KillMode=process`): a sky call that changes something outlives a killed
 * daemon and is found by the next one, and the API server that sky starts on its first call serves the operator's other
 * shells too. What a restart cannot mend is not restarted (a refused request, usage, a wrong file), and the rest only a
 * few times.
 */
export function bridgeUnit(
  executable: string,
  words: readonly string[],
  place: {
    readonly runId: string;
    readonly path: string | undefined;
    /** Variables that the campaign's evaluations get from the daemon's environment. */
    readonly allow: readonly string[];
  },
): string {
  return `# Enabled, it outlives your login with: loginctl enable-linger
${place.allow.length === 0 ? "" : `# Its evaluations get variables of your own: systemctl --user import-environment ${place.allow.join(" ")}\n`}[Unit]
Description=neurarch-gate bridge: trusted evaluations of run ${place.runId.replaceAll("%", "%%")}
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
Type=exec
ExecStart=${[executable, "bridge", ...words].map(unitWord).join(" ")}
${place.path === undefined ? "" : `Environment=${assignmentWord(`PATH=${place.path}`)}\n`}Restart=on-failure
RestartSec=5
RestartPreventExitStatus=1 2 4
KillMode=process
TimeoutStopSec=${STOP_TIMEOUT_S}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=default.target
`;
}
