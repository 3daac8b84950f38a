import { randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { estimatedTokens } from '../../core/delegation/quota';
import { stagedJobKey } from '../../core/names/object-names';
import type { EncodedLine } from '../../providers/provider';
import type { ObjectReader } from '../../storage/object-store';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { Heartbeat } from '../runtime/heartbeat';
import { readInputLine } from './input-line';
import type { JobAttempt } from './job-attempt';
import { makeRoomFor, type MakeRoom } from './make-room';
import { rowOf } from './job-attempt';
import type { PartLedger } from './part-ledger';
import { openPart } from './part-ledger';

const NEWLINE = Buffer.from('\n');
/** Lines between two turns of the event loop, in which heartbeats get through. */
const LINES_PER_TURN = 256;
/** A store may make one system call for each piece, and a line is small. */
const PIECE_BYTES = 256 * 1024;

/**
 * Writes the job's input into the store: every line of its part without an answer, until the part reaches a
 * limit of the provider. Of several staged inputs the first that is noted counts, and each attempt to create
 * the job sends that one.
 */
export async function stageJob(attempt: JobAttempt, heartbeat: Heartbeat): Promise<JobRow> {
  const { deps, input, provider } = attempt;
  const { batchId, job } = input;
  const ledger = await openPart(deps, input);
  const reader = await deps.store.open(input.inputKey);
  const staged = new StagedLines(attempt, { ledger, reader, heartbeat });
  const key = stagedJobKey(batchId, job.jobId, randomBytes(8).toString('hex'));
  try {
    await deps.store.putIfAbsent(key, staged.pieces());
  } finally {
    await reader.close();
  }
  const { lines, bytes, to } = staged;
  const row = await deps.jobs.recordStaged(job.jobId, {
    ...{ key, lines, bytes, to },
    tokens: estimatedTokens(bytes),
    sentWindow: provider.api.completionWindow(input.giveUpAtMs - Date.now()),
  });
  return row ?? rowOf(attempt);
}

type StagedLine = Extract<EncodedLine, { readonly kind: 'line' }>;

/** The lines of a job, in the order of the plan. */
class StagedLines {
  readonly #attempt: JobAttempt;
  readonly #ledger: PartLedger;
  readonly #reader: ObjectReader;
  readonly #heartbeat: Heartbeat;
  readonly #makeRoom: MakeRoom;
  /** What the lines of the job have in common, as the first of them says. */
  #common: string | undefined;
  lines = 0;
  bytes = 0;
  /** Position after the last line that was looked at. */
  to: number;

  constructor(
    attempt: JobAttempt,
    parts: { ledger: PartLedger; reader: ObjectReader; heartbeat: Heartbeat },
  ) {
    this.#attempt = attempt;
    this.#ledger = parts.ledger;
    this.#reader = parts.reader;
    this.#heartbeat = parts.heartbeat;
    this.#makeRoom = makeRoomFor(attempt.deps);
    this.to = parts.ledger.from;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    let piece: Buffer[] = [];
    let pieceBytes = 0;
    for await (const line of this.#staged()) {
      piece.push(line, NEWLINE);
      pieceBytes += line.length + 1;
      if (pieceBytes < PIECE_BYTES) continue;
      yield Buffer.concat(piece, pieceBytes);
      [piece, pieceBytes] = [[], 0];
    }
    if (pieceBytes > 0) yield Buffer.concat(piece, pieceBytes);
  }

  async *#staged(): AsyncGenerator<Buffer> {
    const { from, to } = this.#ledger;
    for (let position = from; position < to; position++) {
      if (position % LINES_PER_TURN === 0) await this.#breathe();
      const line = this.#ledger.isAnswered(position) ? null : await this.#encode(position);
      if (line !== null && !this.#fits(line)) return;
      this.to = position + 1;
      if (line === null) continue;
      if (this.lines === 0) this.#common = line.common;
      this.lines++;
      this.bytes += line.bytes.length + 1;
      yield line.bytes;
      await this.#makeRoom(line.bytes.length, this.#heartbeat.signal);
    }
  }

  async #breathe(): Promise<void> {
    await turn();
    this.#heartbeat.bytes = this.bytes;
    this.#heartbeat.check();
  }

  /** Null if the provider cannot express the line: it stays open, and collecting keeps the reason. */
  async #encode(position: number): Promise<StagedLine | null> {
    const line = this.#ledger.line(position);
    const { encoded } = await readInputLine(this.#attempt, line, this.#reader);
    return encoded.kind === 'line' ? encoded : null;
  }

  /**
   * A first line is always taken: what the provider does not accept, it refuses by name. A line that differs in
   * what the lines of a job have in common begins another job.
   */
  #fits({ bytes, common }: StagedLine): boolean {
    if (this.lines === 0) return true;
    const { max_lines, max_bytes } = this.#attempt.provider.config;
    const { maxLines, maxBytes } = this.#attempt.provider.api.capabilities;
    const mostLines = Math.min(max_lines, maxLines ?? Infinity);
    const mostBytes = Math.min(max_bytes, maxBytes ?? Infinity);
    const hasRoom = this.lines < mostLines && this.bytes + bytes.length + 1 <= mostBytes;
    return hasRoom && common === this.#common;
  }
}
