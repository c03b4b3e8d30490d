/**
 * A daemon's writing, for the test that kills it: `bun journal-writer.ts FOLDER`. Prints `ID BYTES DELIVERED` once
 * a commit has resolved, never before.
 */
import { openJournal } from "../../src/daemon/journal.ts";
import { atRunning, id } from "./journal-fixtures.ts";

const journal = await openJournal(process.argv[2] as string);
const start = journal.all().length;
process.stdout.write("ready\n");
for (let n = start + 1; ; n++) {
  const record = atRunning(n);
  const spool = journal.spool(id(n), record.jobName);
  for (let part = 0; part < 3; part++) {
    spool.append(new TextEncoder().encode(`${n} ${part} ${"x".repeat((n * 37) % 5_000)}\n`));
    journal.put({ ...record, spooledBytes: spool.bytes });
    await journal.commit();
    spool.markDelivered(spool.bytes);
    process.stdout.write(`${n} ${spool.bytes} ${spool.delivered}\n`);
  }
  spool.close();
}
