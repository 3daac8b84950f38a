import { StringDecoder } from 'node:string_decoder';
import { createJsonGuard } from '../../core/openai/json-check';
import { shortened } from './human-format';

/** One error code in an error file. */
export interface FailureKind {
  /** `batch_expired`, `HTTP 429 rate_limit_exceeded`. */
  readonly code: string;
  readonly count: number;
  /** Message of the first such line. */
  readonly example: string;
}

/** Counts the lines of an error file by error code while the file is downloaded. */
export interface FailureTally {
  add(chunk: Uint8Array): void;
  /** Most frequent first. */
  kinds(): FailureKind[];
}

const EXAMPLE_CHARACTERS = 100;

/** A tally that keeps at most one line of the file in memory. */
export function createFailureTally(): FailureTally {
  const decoder = new StringDecoder('utf8');
  const found = new Map<string, FailureKind>();
  let rest = '';
  const count = (line: string): void => {
    if (line.trim() === '') return;
    const { code, message } = failureIn(line);
    const { count: before = 0, example = shortened(message, EXAMPLE_CHARACTERS) } =
      found.get(code) ?? {};
    found.set(code, { code, count: before + 1, example });
  };
  return {
    add(chunk) {
      const text = decoder.write(chunk);
      // Splitting at every chunk would scan a long line again and again.
      if (!text.includes('\n')) {
        rest += text;
        return;
      }
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) count(line);
    },
    kinds() {
      count(rest + decoder.end());
      rest = '';
      return [...found.values()].sort((a, b) => b.count - a.count);
    },
  };
}

interface ResultLine {
  readonly response?: {
    readonly status_code?: number;
    readonly body?: { readonly error?: { readonly code?: unknown; readonly message?: unknown } };
  } | null;
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | null;
}

function failureIn(line: string): { code: string; message: string } {
  const parsed = parse(line);
  if (parsed === null) return { code: 'unreadable line', message: line };
  const { response, error } = parsed;
  if (error) return { code: text(error.code) || 'unknown', message: text(error.message) };
  const inner = response?.body?.error;
  const code = `HTTP ${response?.status_code ?? 0} ${text(inner?.code)}`.trim();
  return { code: shortened(code, EXAMPLE_CHARACTERS), message: text(inner?.message) };
}

/** Bounds nesting before JSON.parse, because the line contains an unchecked answer of a model server. */
const faultOf = createJsonGuard({ maxDepth: 10_000, maxTokens: 10_000_000 });

function parse(line: string): ResultLine | null {
  if (faultOf(Buffer.from(line)) !== null) return null;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
