/** What was worked out lately, the oldest given up first; kept for `lifeMs`. */
export class Memo<T> {
  readonly #kept = new Map<string, { readonly value: T; readonly atMs: number }>();

  constructor(
    private readonly most: number,
    private readonly lifeMs: number = Number.POSITIVE_INFINITY,
  ) {}

  get(key: string, nowMs = 0): T | undefined {
    const found = this.#kept.get(key);
    if (found === undefined) return undefined;
    if (nowMs - found.atMs < this.lifeMs) return found.value;
    this.#kept.delete(key);
    return undefined;
  }

  drop(key: string): void {
    this.#kept.delete(key);
  }

  set(key: string, value: T, nowMs = 0): T {
    const oldest = this.#kept.size >= this.most ? this.#kept.keys().next().value : undefined;
    if (oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(key, { value, atMs: nowMs });
    return value;
  }
}
