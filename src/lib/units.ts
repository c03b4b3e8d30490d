/** Bytes in one GB. Cards, messages and JSON all use decimal gigabytes. */
export const GB = 1e9;

/** `219.1 GB`: one decimal, as every message prints an amount of memory. */
export function gb(bytes: number): string {
  return `${(bytes / GB).toFixed(1)} GB`;
}

/** `24 GB`, `31.5 GB`: a card's capacity, without a decimal when it is whole. */
export function capacityGb(amountGb: number): string {
  return `${Number.isInteger(amountGb) ? amountGb : amountGb.toFixed(1)} GB`;
}

/** `8,190,735,360`: a count with thousands separators, independent of the locale. */
export function grouped(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}
