import { setImmediate as turn } from 'node:timers/promises';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import { keptFrame } from '../execute/answer-frames';
import type { Heartbeat } from '../runtime/heartbeat';
import type { JobAttempt } from './job-attempt';
import { readInputLine } from './input-line';
import type { PartJournal } from './part-journal';
import type { PartLedger } from './part-ledger';
import type { ObjectReader } from '../../storage/object-store';

/** Lines between two turns of the event loop, in which heartbeats get through. */
const LINES_PER_TURN = 256;

/** What {@link keepRefused} works with. */
export interface RefusalContext {
  readonly ledger: PartLedger;
  readonly journal: PartJournal;
  /** The input of the batch. */
  readonly reader: ObjectReader;
  readonly heartbeat: Heartbeat;
}

/**
 * Keeps a 400 for each open line that staging has left out because the provider's format cannot express it. The line is
 * encoded once more: staging holds no lease, so it may not write into the journal
 * (docs/design/delegation.md#answers-that-are-kept).
 */
export async function keepRefused(
  attempt: JobAttempt,
  row: JobRow,
  { ledger, journal, reader, heartbeat }: RefusalContext,
): Promise<void> {
  // A line is left out only if it is answered or refused.
  if (row.lines === null || row.lines === row.to - row.from) return;
  for (let position = row.from; position < row.to; position++) {
    if (position % LINES_PER_TURN === 0) {
      await turn();
      heartbeat.check();
    }
    if (ledger.isAnswered(position) || ledger.keptStatus(position) !== null) continue;
    const line = ledger.line(position);
    const { customId, encoded } = await readInputLine(attempt, line, reader);
    if (encoded.kind !== 'refused') continue;
    const { message, param } = encoded;
    const error = { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' };
    const body = Buffer.from(JSON.stringify({ error }));
    const subject = { batchId: attempt.input.batchId, line, customId };
    await journal.keep(line, keptFrame(subject, { status: 400, requestId: null, body }));
  }
}
