/** A job whose verdict is known, as the flags of `judge` tell it. */
export interface KnownJob {
  readonly flags: Readonly<Record<string, string>>;
  readonly decision: "allow" | "warn" | "refuse";
  /** Peak x 1.15, to a tenth of a GB. */
  readonly needGb: number;
}

/** One of each path through the sizer: a full fine-tune of a decoder, an adapter, an encoder. */
export const KNOWN_JOBS: readonly KnownJob[] = [
  { flags: { model: "Qwen/Qwen3-8B", batch: "8", request: "A10G:1" }, decision: "refuse", needGb: 339.4 },
  {
    flags: { model: "Qwen/Qwen3-8B", batch: "2", "lora-rank": "16", request: "A100-80GB:1" },
    decision: "allow",
    needGb: 58.3,
  },
  {
    flags: { model: "google-bert/bert-base-uncased", batch: "32", "seq-len": "128", request: "T4:1" },
    decision: "allow",
    needGb: 5.4,
  },
];
