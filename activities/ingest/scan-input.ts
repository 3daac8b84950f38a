import { randomInt } from 'node:crypto';
import { isAscii, isUtf8 } from 'node:buffer';
import { setImmediate as turn } from 'node:timers/promises';
import { createLineScanner } from '../../core/openai/line-scanner';
import type { ScanRules, ScanSink, ScanTotals } from '../../core/openai/scan-sink';
import type { LineIndex } from '../../core/openai/line-index';
import type { Heartbeat } from '../runtime/heartbeat';

/** Work between two turns of the event loop, so that other activities of the process go on. The clock is read between pieces. */
const TURN_MS = 5;

/** What one pass over an input file needs. */
export interface InputScan {
  /** Each valid until the next one is asked for. They end with an error if the activity is cancelled. */
  readonly chunks: AsyncIterable<Buffer>;
  readonly rules: ScanRules;
  readonly sink: ScanSink;
  /** Null: every line is parsed. */
  readonly index: LineIndex | null;
  readonly heartbeat: Heartbeat;
}

/**
 * Passes all chunks through a scanner. If the activity is cancelled, rejects with the cancellation.
 */
export async function scanInput(scan: InputScan): Promise<ScanTotals> {
  try {
    return await readThrough(scan);
  } catch (error) {
    scan.heartbeat.check();
    throw error;
  }
}

async function readThrough(scan: InputScan): Promise<ScanTotals> {
  const { chunks, heartbeat } = scan;
  const checks = { isAscii, isUtf8 };
  const scanner = createLineScanner({ ...scan, checks, seed: randomInt(2 ** 32) });
  let turnMs = performance.now();
  for await (const chunk of chunks) {
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
