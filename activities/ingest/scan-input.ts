import { randomInt } from 'node:crypto';
import { isAscii, isUtf8 } from 'node:buffer';
import { addAbortSignal, type Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import {
  createLineScanner,
  type ScanRules,
  type ScanSink,
  type ScanTotals,
} from '../../core/openai/line-scanner';
import type { Heartbeat } from '../runtime/heartbeat';

/** Other activities of this process get their turn after so much work. */
const TURN_MS = 5;
/** Looked at the clock after each: even lines of a few bytes that are all refused take 0.1 s, not 1. */
const SLICE_BYTES = 64 * 1024;

/** What one pass over an input file takes. */
export interface InputScan {
  readonly stream: Readable;
  readonly rules: ScanRules;
  readonly sink: ScanSink;
  readonly heartbeat: Heartbeat;
}

/**
 * Reads the whole stream through a scanner, which closes it. When the activity is cancelled, also while
 * no byte comes, it fails with what that was cancelled with.
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

async function readThrough({ stream, rules, sink, heartbeat }: InputScan): Promise<ScanTotals> {
  const checks = { isAscii, isUtf8 };
  const scanner = createLineScanner({ rules, checks, seed: randomInt(2 ** 32), sink });
  let turnMs = performance.now();
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      heartbeat.check();
      const slice = chunk.subarray(at, at + SLICE_BYTES);
      scanner.push(slice);
      heartbeat.bytes += slice.length;
      if (performance.now() - turnMs < TURN_MS) continue;
      await turn();
      turnMs = performance.now();
    }
  }
  return scanner.end();
}
