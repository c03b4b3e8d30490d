/** Seconds of a wall time that a profile's reader has let pass (`[D-]HH:MM:SS`). */
export function allocationSeconds(allocationTime: string): number {
  const [days, clock] = allocationTime.includes("-") ? allocationTime.split("-") : ["0", allocationTime];
  const [hours = 0, minutes = 0, seconds = 0] = (clock ?? "").split(":").map(Number);
  return Number(days) * 86_400 + hours * 3600 + minutes * 60 + seconds;
}
