/**
 * The request of our own client that ends an evaluation, on a connection of its own. The public clients never send it;
 * a connection that closes cancels nothing.
 */
export function cancelRequestLine(invocationId: string): string {
  return `${JSON.stringify({ version: 2, kind: "cancel", invocation_id: invocationId })}\n`;
}

/** The id that a line asks to cancel; null where the line is no such request, exact to the key. */
export function cancelledId(line: Uint8Array): string | null {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(line));
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { version, kind, invocation_id: id, ...rest } = value as Record<string, unknown>;
  const exact = version === 2 && kind === "cancel" && Object.keys(rest).length === 0;
  return exact && typeof id === "string" && /^[0-9a-f]{32}$/.test(id) ? id : null;
}
