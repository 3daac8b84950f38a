import { randomInt } from 'node:crypto';
import { isAscii, isUtf8 } from 'node:buffer';
import { addAbortSignal, type Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { createLineScanner } from '../../core/openai/line-scanner';
import type { ScanRules, ScanSink, ScanTotals } from '../../core/openai/scan-sink';
import type { LineIndex } from '../../core/openai/line-index';
import type { Heartbeat } from '../runtime/heartbeat';

/** Work between two turns of the event loop, so that other activities of the process go on. The clock is read between pieces. */
const TURN_MS = 5;

/** What one pass over an input file needs. */
export interface InputScan {
  readonly stream: Readable;
  readonly rules: ScanRules;
  readonly sink: ScanSink;
  /** Null: every line is parsed. */
  readonly index: LineIndex | null;
  readonly heartbeat: Heartbeat;
}

/**
 * Passes the whole stream through a scanner and closes it. If the activity is cancelled, rejects with the
 * cancellation, even while the stream delivers no bytes.
 */
export async function scanInput(scan: InputScan): Promise<ScanTotals> {
  const { stream, heartbeat } = scan;
  addAbortSignal(heartbeat.signal, stream);
  try {
    return await readThrough(scan);
  } catch (error) {
    heartbeat.check();
    throw error;
  }
}

async function readThrough(scan: InputScan): Promise<ScanTotals> {
  const { stream, heartbeat } = scan;
  const checks = { isAscii, isUtf8 };
  const scanner = createLineScanner({ ...scan, checks, seed: randomInt(2 ** 32) });
  let turnMs = performance.now();
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length;) {
      heartbeat.check();
      const to = scanner.pushSome(chunk, at);
      heartbeat.bytes += to - at;
      at = to;
      if (performance.now() - turnMs < TURN_MS) continue;
      await turn();
      turnMs = performance.now();
    }
  }
  return scanner.end();
}
