import { setImmediate as turn } from 'node:timers/promises';
import type { ScannedRequest } from '../../core/openai/scan-sink';
import type { InputFile, InputFiles } from '../../core/plan/input-files';
import type { Ingestion } from './deps';
import type { PlanCollector } from './plan-collector';

/** Ids of one statement. */
const IDS_AT_ONCE = 1_000;
/** Recordings share no prompt. */
const NO_CHAIN = { blocks: new Uint32Array(0), from: 0, length: 0 };

/**
 * Requests that wait until the files that they name have been looked up: the file is scanned without a pause, and a
 * look-up takes a round trip. About 150 bytes for each request
 * (docs/design/batch-path.md#files-of-requests).
 */
export class HeldRequests {
  readonly #requests: ScannedRequest[] = [];

  /** Takes the requests in the order of the input. */
  add({ offset, length, prefixHash, model, fileId }: ScannedRequest): void {
    this.#requests.push({ offset, length, prefixHash, model, fileId, chain: NO_CHAIN });
  }

  /**
   * Looks up all files, and plans the requests that have theirs. The others stay outside all plans, so they are never
   * sent. Returns the files that were found. @throws postgres_unavailable
   */
  async planInto(plan: PlanCollector, ingestion: Ingestion): Promise<InputFiles> {
    const files = await this.#lookUp(ingestion);
    for (const request of this.#requests) {
      if (request.fileId === null || files.has(request.fileId)) plan.add(request);
      else plan.addWithoutFile(request.model);
    }
    return files;
  }

  async #lookUp({ deps, batchId, heartbeat }: Ingestion): Promise<InputFiles> {
    const found = new Map<string, InputFile>();
    const named = this.#requests.flatMap(({ fileId }) => (fileId === null ? [] : [fileId]));
    const ids = [...new Set(named)];
    for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
      const rows = (await deps.pinFiles?.(batchId, ids.slice(from, from + IDS_AT_ONCE))) ?? [];
      for (const { id, objectKey, bytes, filename } of rows) {
        found.set(id, { key: objectKey, bytes, filename });
      }
      heartbeat.check();
      await turn();
    }
    return found;
  }
}
