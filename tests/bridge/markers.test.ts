import { expect, test } from "bun:test";
import { type Marker, markerLine, readMarker } from "../../src/bridge/markers.ts";

const NONCE = "0123456789abcdef0123456789abcdef";

test.each<Marker>([
  { kind: "end", exitCode: 0 },
  { kind: "end", exitCode: 137 },
  { kind: "stopped" },
  { kind: "artifact-begin", size: 524_288 },
  { kind: "artifact-end" },
  { kind: "artifact-unsent", reason: "too-big" },
  { kind: "artifact-unsent", reason: "unreadable" },
])("%j is read as it is written", (marker) => {
  const line = markerLine(marker, NONCE);
  expect(readMarker(line, NONCE)).toEqual(marker);
  expect(readMarker(`${line}\r`, NONCE)).toEqual(marker);
  expect(readMarker(line, NONCE.replace("0", "f"))).toBeNull();
  expect(readMarker(` ${line}`, NONCE)).toBeNull();
  expect(readMarker(`${line} `, NONCE)).toBeNull();
  expect(readMarker(`${line}\n`, NONCE)).toBeNull();
});

test.each([
  `__NEURARCH_BRIDGE_END_${NONCE}__`,
  `__NEURARCH_BRIDGE_END_${NONCE}__ exit=-1`,
  `__NEURARCH_BRIDGE_END_${NONCE}__ exit=1000`,
  `__NEURARCH_BRIDGE_STOPPED_${NONCE}__ exit=0`,
  `__NEURARCH_BRIDGE_ARTIFACT_BEGIN_${NONCE}__ size=`,
  `__NEURARCH_BRIDGE_OTHER_${NONCE}__`,
  "",
])("%j is the program's own line", (line) => {
  expect(readMarker(line, NONCE)).toBeNull();
});
