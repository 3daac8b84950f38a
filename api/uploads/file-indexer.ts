import { isAscii, isUtf8 } from 'node:buffer';
import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { IdSet } from '../../core/openai/id-set';
import type { LineIndex } from '../../core/openai/line-index';
import type { LineScanner } from '../../core/openai/line-scanner';
import { scanRules, type ScanSettings } from '../../core/openai/scan-rules';
import type { ScannedRequest, ScanRules } from '../../core/openai/scan-sink';
import { createUsualScanner } from '../../core/openai/usual-scanner';
import { MIN_INDEXED_BYTES, type FileIndexBuilder } from '../../core/plan/file-index';

/** Memory for one file at a time, empty at the start. */
export interface IndexMemory {
  readonly builder: FileIndexBuilder;
  /** Of all `custom_id`s. */
  readonly ids: IdSet;
}

/** What the index of one file is made with. */
export interface FileIndexerOptions {
  readonly index: LineIndex;
  /** Files are indexed for the rules that these settings give. */
  readonly settings: ScanSettings;
  /** The version of the product. */
  readonly release: string;
  readonly memory: IndexMemory;
  /** Called once, when the memory is free again: at the latest by `close`. */
  onClose(): void;
}

/** The scan of a file. */
interface Scan {
  readonly rules: ScanRules;
  readonly scanner: LineScanner;
}

/** Of a line: each upload may hold one. */
const MAX_LINE_BYTES = 1024 * 1024;
const LINE_END = 0x0a;
/** An endpoint is a path; other members of this name may have whole URLs. */
const URL_MEMBER = /"url"[\t ]*:[\t ]*"(\/[^"\\]+)"/;

/** Makes the index of one file. It gives up at the first line that must be parsed, has a fault, or is longer than 1 MiB. */
export class FileIndexer {
  readonly #options: FileIndexerOptions;
  /** What came before the end of the first line. */
  #first: Buffer[] = [];
  #bytes = 0;
  #scan: Scan | null = null;
  #isClosed = false;

  constructor(options: FileIndexerOptions) {
    this.#options = options;
  }

  /** Takes the next bytes of the file. They may be changed after this returns. */
  update(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#isClosed) return;
    try {
      if (this.#scan === null) this.#begin(chunk);
      else this.#scan.scanner.push(chunk);
    } catch {
      this.close();
    }
  }

  /** The index of the file, which has ended, valid until `close`; null if there is none. */
  finish(): Buffer | null {
    const scan = this.#scan;
    if (scan === null || this.#bytes < MIN_INDEXED_BYTES) return null;
    const { rules, scanner } = scan;
    try {
      scanner.end();
      const { release, memory } = this.#options;
      return memory.builder.build({ release, rules, bytes: this.#bytes }, crc32);
    } catch {
      return null;
    }
  }

  /** Frees what it holds. There is no index afterwards. May be called again. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#first = [];
    this.#scan = null;
    this.#options.onClose();
  }

  /** Waits for the first line, which says for which endpoint the others must be. If that is a wrong guess, they are not. */
  #begin(chunk: Buffer): void {
    this.#first.push(Buffer.from(chunk));
    const hasLine = chunk.includes(LINE_END);
    if (!hasLine && this.#bytes <= MAX_LINE_BYTES) return;
    const first = Buffer.concat(this.#first);
    this.#first = [];
    const line = first.toString('latin1', 0, hasLine ? first.indexOf(LINE_END) : 0);
    const endpoint = URL_MEMBER.exec(line)?.[1];
    this.#scan = endpoint === undefined ? null : this.#scanFor(endpoint);
    if (this.#scan === null) this.close();
    else this.#scan.scanner.push(first);
  }

  #scanFor(endpoint: string): Scan | null {
    const { index, settings, memory } = this.#options;
    const rules = scanRules(settings, endpoint);
    const sink = { request: (request: ScannedRequest): void => memory.builder.add(request) };
    const seed = randomInt(2 ** 32);
    const checks = { isAscii, isUtf8 };
    const scanner = createUsualScanner({
      ...{ index, sink, seed, checks, ids: memory.ids },
      rules: { ...rules, maxLineBytes: Math.min(rules.maxLineBytes, MAX_LINE_BYTES) },
    });
    return scanner === null ? null : { rules, scanner };
  }
}
