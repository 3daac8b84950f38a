import { createIndexedScanner } from './indexed-scanner';
import type { LineIndex } from './line-index';
import { LineJudge } from './line-judge';
import { createLineSplitter, type ByteChecks } from './line-splitter';
import { indexRules } from './plain-request';
import type { ScanRules, ScanSink, ScanTotals } from './scan-sink';

/**
 * Finds requests and faults in an input file while its bytes arrive, in one pass
 * (docs/design/batch-path.md#line-checks). Memory is bounded: one line of at most `maxLineBytes`, and 16 to 32
 * bytes for each `custom_id`.
 */
export interface LineScanner {
  /** Takes the next bytes of the file. They may be changed after this returns. */
  push(chunk: Buffer): void;
  /**
   * Takes bytes of `chunk` from `from` on, as many as take a few milliseconds, or a tenth of a second if they are full of
   * faults. Returns the position after them.
   */
  pushSome(chunk: Buffer, from: number): number;
  /** The file has ended: reports faults of the whole file. */
  end(): ScanTotals;
}

export interface LineScannerOptions {
  readonly rules: ScanRules;
  readonly checks: ByteChecks;
  /** 32 random bits, see `createIdHasher`. */
  readonly seed: number;
  readonly sink: ScanSink;
  /** Saves parsing most lines, and changes nothing else. Null: every line is parsed. */
  readonly index: LineIndex | null;
}

/** Parsing this much takes a few milliseconds. Even tiny invalid lines, the most expensive ones, take 0.1 s. */
const PARSED_BYTES = 64 * 1024;

/** A scanner that checks the cost of parsing each line before it calls `JSON.parse`. */
export function createLineScanner(options: LineScannerOptions): LineScanner {
  const { index, checks, rules, sink, seed } = options;
  const judge = new LineJudge(rules, sink, seed);
  const expected = indexRules(rules, seed);
  const pusher =
    index === null || expected === null
      ? createParsingScanner(judge, options)
      : createIndexedScanner({ index, rules: expected, checks, judge });
  return scannerOf(pusher, judge);
}

/** What gives lines to a judge. */
interface Pusher extends Pick<LineScanner, 'pushSome'> {
  end(): void;
}

/** A scanner of a part that finds lines, and of the judge of these lines. */
export function scannerOf(pusher: Pusher, judge: LineJudge): LineScanner {
  return {
    pushSome: (chunk, from) => pusher.pushSome(chunk, from),
    push: (chunk) => {
      for (let at = 0; at < chunk.length;) at = pusher.pushSome(chunk, at);
    },
    end: () => {
      pusher.end();
      return judge.end();
    },
  };
}

/** Parses every line. */
function createParsingScanner(judge: LineJudge, { rules, checks }: LineScannerOptions) {
  const { maxLineBytes } = rules;
  const splitter = createLineSplitter({ maxLineBytes, checks, consumer: judge });
  return {
    pushSome: (chunk: Buffer, from: number): number => {
      const to = Math.min(chunk.length, from + PARSED_BYTES);
      splitter.push(chunk.subarray(from, to));
      return to;
    },
    end: () => splitter.end(),
  };
}
