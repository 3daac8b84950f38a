import { isAscii, isUtf8 } from 'node:buffer';
import type { InputError } from '../../../core/openai/input-errors';
import { createLineScanner, type LineScanner } from '../../../core/openai/line-scanner';
import type { ScannedRequest, ScanRules, ScanTotals } from '../../../core/openai/scan-sink';

export const RULES: ScanRules = {
  endpoint: '/v1/chat/completions',
  moderationDefaultModel: 'omni-moderation-latest',
  maxLineBytes: 1024 * 1024,
  maxRequests: 50_000,
  maxInputs: 50_000,
  singleModel: false,
  json: { maxDepth: 10_000, maxTokens: 10_000_000 },
};

/** A request without its chain, which is valid for a moment only. */
type Found = Omit<ScannedRequest, 'chain'>;

export interface Scanned extends ScanTotals {
  readonly found: Found[];
  readonly errors: InputError[];
}

/** A scanner and the lists that it fills. */
export function openScan(rules: Partial<ScanRules> = {}): {
  scanner: LineScanner;
  found: Found[];
  errors: InputError[];
} {
  const found: Found[] = [];
  const errors: InputError[] = [];
  const scanner = createLineScanner({
    rules: { ...RULES, ...rules },
    checks: { isAscii, isUtf8 },
    seed: 7,
    index: null,
    sink: {
      request: ({ offset, length, prefixHash, model, fileId }) =>
        void found.push({ offset, length, prefixHash, model, fileId }),
      fault: (e) => void errors.push(e),
    },
  });
  return { scanner, found, errors };
}

/** Scans chunks, and overwrites each one after the scanner has taken it. */
export function scanChunks(chunks: Iterable<Buffer>, rules: Partial<ScanRules> = {}): Scanned {
  const { scanner, found, errors } = openScan(rules);
  for (const chunk of chunks) {
    const lent = Buffer.from(chunk);
    scanner.push(lent);
    lent.fill(0x0a);
  }
  return { ...scanner.end(), found, errors };
}

export function scan(file: Buffer | string, rules: Partial<ScanRules> = {}): Scanned {
  return scanChunks([Buffer.from(file as string)], rules);
}

/** A good line for chat completions, with changes. */
export function line(changes: Record<string, unknown> = {}, body: object = {}): string {
  return JSON.stringify({
    custom_id: 'a',
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body },
    ...changes,
  });
}
