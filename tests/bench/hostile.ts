import { connect, type Socket } from "node:net";

/** Bodies that are no request, or one that nobody can read. */
const MALFORMED: readonly string[] = [
  "",
  "hello",
  "[".repeat(100_000),
  JSON.stringify("{".repeat(10_000)),
  JSON.stringify(JSON.stringify({ task: "- ".repeat(20_000), skypilot_config: "", request_name: "launch" })),
  JSON.stringify(JSON.stringify({ task: "a: [1, 2\nb: {", skypilot_config: "", request_name: "launch" })),
  JSON.stringify(JSON.stringify({ skypilot_config: "" })),
];

/** Trouble beside a load: clients that send a byte a second, and some twenty malformed bodies a second. */
export class Trouble {
  readonly #slow: Socket[] = [];
  readonly #ticks: ReturnType<typeof setInterval>[] = [];
  malformed = 0;
  /** Answers to malformed bodies other than 400, and 200 for a task that cannot be read. */
  unexpected = 0;

  constructor(url: URL, slowClients: number) {
    for (let count = 0; count < slowClients; count++) {
      const socket = connect(Number(url.port), url.hostname);
      socket.on("error", () => {});
      socket.write("POST / HTTP/1.1\r\nHost: gate\r\nContent-Length: 100000\r\n\r\n");
      this.#slow.push(socket);
    }
    this.#ticks.push(setInterval(() => this.#drip(), 1000));
    this.#ticks.push(setInterval(() => void this.#send(url), 50));
  }

  #drip(): void {
    for (const socket of this.#slow) socket.write("x");
  }

  async #send(url: URL): Promise<void> {
    const body = MALFORMED[this.malformed++ % MALFORMED.length]!;
    const status = await fetch(url, { method: "POST", body }).then(
      async (reply) => {
        await reply.arrayBuffer();
        return reply.status;
      },
      () => 0,
    );
    if (status !== 400 && status !== 200) this.unexpected++;
  }

  end(): void {
    for (const tick of this.#ticks) clearInterval(tick);
    for (const socket of this.#slow) socket.destroy();
  }
}
