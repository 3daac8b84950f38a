import { fnv32a } from '../../core/names/fnv';
import { toHeaderText } from '../../core/openai/tenant-name';
import type { Chunk } from './chunk';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';

type Headers = Readonly<Record<string, string>>;

/** What the headers of a chunk's requests are made from. */
export interface GatewayHeadersOptions {
  readonly chunk: Chunk;
  readonly ledger: ChunkLedger;
  /** `send_fairness_header` of the gateway: whether it divides its service among tenants. */
  readonly divides: boolean;
  /** Headers of the create call, with lower-case names. */
  readonly given: Headers;
}

/**
 * The headers of requests that depend on batch and line, beyond those that every gateway gets. They tell a
 * gateway that divides its service among tenants whose request it is, how urgent it is, and which requests
 * share its prefix (docs/design/execution.md#requests-to-a-gateway).
 */
export class GatewayHeaders {
  readonly #o: GatewayHeadersOptions;
  readonly #ofChunk: Headers;
  /** Neighbours mostly have the same headers, so those of the last line are kept. */
  #ofRun: Headers;
  #runStart = -1;

  constructor(options: GatewayHeadersOptions) {
    this.#o = options;
    const { chunk, divides, given } = options;
    this.#ofChunk = divides
      ? {
          ...given,
          'x-gateway-inference-fairness-id': toHeaderText(chunk.tenant),
          'x-nightshift-priority': String(chunk.priority),
        }
      : given;
    this.#ofRun = this.#ofChunk;
  }

  /** The headers of a request of this line. */
  of({ position }: Pick<ChunkLine, 'position'>): Headers {
    const { divides, ledger } = this.#o;
    if (!divides) return this.#ofChunk;
    const start = ledger.runStart(position - ledger.from);
    if (start === this.#runStart) return this.#ofRun;
    this.#runStart = start;
    this.#ofRun =
      start === -1
        ? this.#ofChunk
        : { ...this.#ofChunk, 'x-nightshift-prefix': this.#group(start) };
    return this.#ofRun;
  }

  /** A name for the run that begins at plan position `start`: 8 hex digits. */
  #group(start: number): string {
    const { batchId, model } = this.#o.chunk;
    const hash = fnv32a(Buffer.from(`${batchId}/${model}/${start}`));
    return hash.toString(16).padStart(8, '0');
  }
}
