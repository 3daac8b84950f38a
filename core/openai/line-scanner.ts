import { CHAIN_BLOCK_BYTES } from '../plan/prefix-chain';
import { createIdSet } from './id-set';
import type { InputError, InputErrorCode } from './input-errors';
import { kindOf, quoted } from './input-values';
import { createJsonGuard, type JsonLimits } from './json-check';
import { lineOverLimit } from './json-limits';
import { isJsonObject } from './json-object';
import { checkLine, type CheckedLine, type LineRules } from './line-check';
import type { LineIndex } from './line-index';
import { createLineSplitter, type ByteChecks, type RawLine } from './line-splitter';
import { createPlainReader } from './plain-request';
import { createPromptFinder, type PromptBytes } from './prompt-bytes';
import { createPrefixHasher } from './system-prompt';

/**
 * Finds requests and faults in an input file while its bytes arrive, in one pass
 * (docs/design/batch-path.md#line-checks). Memory is bounded: one line of at most `maxLineBytes`, and 20
 * bytes for each `custom_id`.
 */
export interface LineScanner {
  /** Takes the next bytes of the file. They may be changed after this returns. */
  push(chunk: Buffer): void;
  /** The file has ended: reports faults of the whole file. */
  end(): ScanTotals;
}

/** Receives what a scanner finds, in line order; the faults of the whole file come last. */
export interface ScanSink {
  /** A request without a fault. The object is valid until this returns. */
  request(request: ScannedRequest): void;
  fault(error: InputError): void;
}

/** The fields of a request that its plan stores, and the model of that plan. */
export interface ScannedRequest {
  readonly offset: number;
  /** Bytes without the line end. */
  readonly length: number;
  readonly prefixHash: number;
  /** The effective model: the default for a moderation without one. */
  readonly model: string;
  /** The uploaded file that the request names; null if it names none. */
  readonly fileId: string | null;
  /** Valid as long as the request. */
  readonly prompt: PromptBytes;
}

/** What is known when the file has ended. */
export interface ScanTotals {
  /** Lines that are not blank, good or bad. */
  readonly requests: number;
}

/** The rules of single lines and the limits of the whole file. */
export interface ScanRules extends LineRules {
  readonly maxLineBytes: number;
  readonly maxRequests: number;
  /** Embedding inputs over the whole file. */
  readonly maxInputs: number;
  /** Whether a second model is a fault (`mismatched_model`). */
  readonly singleModel: boolean;
  /** Limits on the cost of parsing a line; a line that exceeds them is an `invalid_json_line`. */
  readonly json: JsonLimits;
}

export interface LineScannerOptions {
  readonly rules: ScanRules;
  readonly checks: ByteChecks;
  /** 32 random bits, see `createIdSet`. */
  readonly seed: number;
  readonly sink: ScanSink;
  /** Saves parsing most lines, and changes nothing else. Null: every line is parsed. */
  readonly index: LineIndex | null;
}

/** Each model has a plan, lanes and entries in the workflow history, so their number is bounded. */
const MAX_MODELS = 500;

/** A scanner that checks the cost of parsing each line before it calls `JSON.parse`. */
export function createLineScanner(options: LineScannerOptions): LineScanner {
  const judge = new LineJudge(options);
  const { checks, rules } = options;
  const splitter = createLineSplitter({
    maxLineBytes: rules.maxLineBytes,
    checks,
    consumer: judge,
  });
  return {
    push: (chunk) => {
      splitter.push(chunk);
      options.index?.release();
    },
    end: () => {
      splitter.end();
      options.index?.release();
      return judge.end();
    },
  };
}

const NOT_JSON =
  'This line is not valid JSON. Each line must be one whole JSON object, without line breaks in it.';

class LineJudge {
  readonly #rules: ScanRules;
  readonly #sink: ScanSink;
  readonly #ids;
  readonly #prefixHash = createPrefixHasher();
  readonly #findPrompt = createPromptFinder(CHAIN_BLOCK_BYTES);
  readonly #jsonFault;
  readonly #readPlain;
  readonly #models = new Set<string>();
  #requests = 0;
  #inputs = 0;
  /** Number of the current line, and its faults so far. */
  #number = 0;
  #faults = 0;

  constructor({ rules, sink, seed, index }: LineScannerOptions) {
    this.#rules = rules;
    this.#sink = sink;
    this.#ids = createIdSet(seed);
    this.#jsonFault = createJsonGuard(rules.json);
    this.#readPlain = index === null ? null : createPlainReader(index, rules);
  }

  line(line: RawLine): void {
    if (!this.#begin(line.number)) return;
    const plain = this.#readPlain?.(line) ?? null;
    const checked = plain ?? this.#check(line);
    if (checked === null) return;
    this.#inputs += checked.inputs;
    this.#checkAmongOthers(checked);
    if (this.#faults > 0 || checked.model === null || checked.body === null) return;
    this.#sink.request({
      offset: line.offset,
      length: line.end - line.start,
      prefixHash: plain?.prefixHash() ?? this.#prefixHash(checked.body),
      model: checked.model,
      fileId: checked.fileId,
      prompt: this.#findPrompt(line, checked.body),
    });
  }

  tooLong(number: number): void {
    if (!this.#begin(number)) return;
    const message = `A line can have at most ${this.#rules.maxLineBytes} bytes; this one is longer.`;
    this.#fault('line_too_long', message, null);
  }

  end(): ScanTotals {
    const { maxRequests, maxInputs } = this.#rules;
    const requests = this.#requests;
    if (requests === 0)
      this.#faultOfFile(
        'empty_file',
        'The input file has no requests. Write one JSON object on each line.',
      );
    this.#checkLimit('too_many_tasks', 'requests', [requests, maxRequests]);
    this.#checkLimit('too_many_inputs', 'embedding inputs', [this.#inputs, maxInputs]);
    this.#checkLimit('too_many_models', 'models', [this.#models.size, MAX_MODELS]);
    return { requests };
  }

  /** Counts a request; false beyond the limit: the file has failed, so further lines are not checked. */
  #begin(number: number): boolean {
    this.#number = number;
    this.#faults = 0;
    return ++this.#requests <= this.#rules.maxRequests;
  }

  /** Null if the line is not a JSON object; the fault has been reported. */
  #check(line: RawLine): CheckedLine | null {
    const value = this.#parse(line);
    if (value === undefined) return null;
    if (isJsonObject(value)) return checkLine(value, this.#rules, this.#report);
    const message = `Each line must be one JSON object; this one is ${kindOf(value)}.`;
    this.#fault('invalid_request', message, null);
    return null;
  }

  /** Undefined if the line is not JSON; the fault has been reported. */
  #parse({ bytes, start, end, encoding }: RawLine): unknown {
    if (encoding === 'invalid') {
      this.#fault(
        'invalid_json_line',
        'This line is not valid UTF-8. Save the file in that encoding.',
        null,
      );
      return undefined;
    }
    const overLimit = this.#jsonFault(bytes, start, end);
    if (overLimit !== null && overLimit !== 'invalid') {
      this.#fault('invalid_json_line', lineOverLimit(overLimit, this.#rules.json), null);
      return undefined;
    }
    try {
      // A string with one byte per character is faster to decode and parse: 190 instead of 154 MB/s.
      return JSON.parse(bytes.toString(encoding === 'ascii' ? 'latin1' : 'utf8', start, end));
    } catch {
      this.#fault('invalid_json_line', NOT_JSON, null);
      return undefined;
    }
  }

  #checkAmongOthers({ customId, model }: CheckedLine): void {
    if (customId !== null && !this.#ids.add(customId)) {
      const message = `An earlier line has the same \`custom_id\`, ${quoted(customId)}; each must be unique.`;
      this.#fault('duplicate_custom_id', message, 'custom_id');
    }
    if (model === null || this.#models.has(model)) return;
    if (this.#models.size === 1 && this.#rules.singleModel) {
      const [first] = this.#models;
      const message = `All requests of a batch must name one model: here it is ${quoted(model)}, on the first line ${quoted(first)}.`;
      this.#fault('mismatched_model', message, 'body.model');
    } else if (this.#models.size <= MAX_MODELS) {
      this.#models.add(model);
    }
  }

  readonly #report = (code: InputErrorCode, message: string, param: string): void => {
    this.#fault(code, message, param);
  };

  #fault(code: InputErrorCode, message: string, param: string | null): void {
    this.#faults++;
    this.#sink.fault({ code, message, param, line: this.#number });
  }

  #faultOfFile(code: InputErrorCode, message: string): void {
    this.#sink.fault({ code, message, param: null, line: null });
  }

  #checkLimit(code: InputErrorCode, what: string, [count, max]: readonly [number, number]): void {
    if (count <= max) return;
    const found = code === 'too_many_models' ? 'more' : String(count);
    const message = `A batch can have at most ${max} ${what}; this one has ${found}. Split it into several batches.`;
    this.#faultOfFile(code, message);
  }
}
