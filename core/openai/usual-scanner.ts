import type { IdSet } from './id-set';
import { createIndexedScanner } from './indexed-scanner';
import type { LineIndex } from './line-index';
import { LineJudge } from './line-judge';
import { scannerOf, type LineScanner, type LineScannerOptions } from './line-scanner';
import { indexRules } from './plain-request';
import type { ScanSink } from './scan-sink';

/** What a scanner of usual files needs. */
export interface UsualScannerOptions extends Pick<LineScannerOptions, 'rules' | 'checks' | 'seed'> {
  readonly index: LineIndex;
  readonly sink: Pick<ScanSink, 'request'>;
  /** Empty; the scanner fills it. */
  readonly ids: IdSet;
}

/**
 * A scanner of files without a fault whose lines all have the usual shape: it parses none, so no file makes it slow. At any
 * other line it throws, and what it has told its sink so far is of no use. Null if the index cannot read requests of the
 * endpoint.
 */
export function createUsualScanner(options: UsualScannerOptions): LineScanner | null {
  const { index, checks, rules, sink, seed, ids } = options;
  const expected = indexRules(rules, seed);
  if (expected === null) return null;
  const told: ScanSink = { request: (request) => sink.request(request), fault: refuse };
  const judge = new LineJudge(rules, told, seed, ids);
  const pusher = createIndexedScanner({
    ...{ index, checks, rules: expected },
    judge: {
      plain: (number, request) => judge.plain(number, request),
      expect: (words, range) => judge.expect(words, range),
      line: refuse,
      tooLong: refuse,
    },
  });
  return scannerOf(pusher, judge);
}

function refuse(): never {
  throw new Error('a line is not of the usual shape, or has a fault');
}
