import { crc32 } from 'node:zlib';
import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createFinalize } from '../../../activities/finalize/finalize';
import type { FoundDrafts } from '../../../activities/finalize/deps';
import type { TerminalRecord } from '../../../storage/postgres/batches/types';
import type { FinalizeResult } from '../../../activities/contract';
import { NO_USAGE, type Usage } from '../../../core/batch/counts';
import { type BatchStatus, type StopCause, type TerminalStatus } from '../../../core/batch/status';
import { lineId, resultFileId } from '../../../core/names/ids';
import { encodeFrame, FRAME_KIND, type FrameKind } from '../../../core/journal/frame';
import { isPreferred } from '../../../core/journal/merge';
import { fileKey, modelMapKey, planKey } from '../../../core/names/object-names';
import { encodeModelMap, type ModelMap } from '../../../core/plan/model-map';
import { encodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { createFilesystemJournal } from '../../../storage/journal/filesystem-journal';
import type { FrameRef } from '../../../storage/journal/journal-store';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import { objectPath } from '../../../storage/objects/filesystem-layout';
import { tenantHash } from '../../../storage/objects/tenant-hash';
import type { ObjectStore } from '../../../storage/object-store';

export const BATCH = `batch_${'0123456789abcdef'.repeat(2)}`;
export const NONCE = 'aaaabbbbccccdddd';
export const INPUT_KEY = 'files/t/file-input';

/** A line of the input: its model, and whether a backend serves it. */
export interface InputLine {
  readonly model: string;
  readonly unrouted?: boolean;
}

export interface PlannedLine {
  readonly offset: number;
  readonly length: number;
  readonly customId: string;
  readonly model: string;
  readonly unrouted: boolean;
}

export interface Answer {
  readonly kind: FrameKind;
  readonly text: string;
  readonly usage?: Usage;
}

/** Input lines, one for each model. */
export const models = (...names: string[]): InputLine[] => names.map((model) => ({ model }));
/** An answer for the output file. */
export const output = (text: string): Answer => ({ kind: FRAME_KIND.output, text });
/** An answer for the error file. */
export const error = (text: string): Answer => ({ kind: FRAME_KIND.error, text });

/** A batch with its plan in its own store. The test does the work of its chunks. */
export class BatchPlace {
  readonly lines: PlannedLine[] = [];
  readonly records: TerminalRecord[] = [];
  inputKey: string | null = INPUT_KEY;
  rowCause: StopCause | null = null;
  rowStatus: BatchStatus = 'in_progress';
  windowMs: number | null = null;
  /** Whether finalization is asked to write its phase. */
  announces = false;
  /** Whether it is an attempt within another activity. */
  isBounded = false;
  readonly phases: string[] = [];
  /** Called when the phase is written. */
  onPhase: () => Promise<void> = () => Promise.resolve();
  /** Called when the row is read. */
  onRow: () => Promise<void> = () => Promise.resolve();
  path = '';
  /** Where finalization looks for files that were begun. */
  drafts: FoundDrafts = { take: () => Promise.resolve(null) };
  store!: ObjectStore;
  journal!: ReturnType<typeof createFilesystemJournal>;

  static async create(input: readonly InputLine[], options: { bom?: boolean } = {}) {
    const place = new BatchPlace();
    place.path = await mkdtemp(join(tmpdir(), 'nightshift-finalize-'));
    place.store = await openFilesystemStore({ path: place.path });
    place.journal = createFilesystemJournal({ path: place.path, store: place.store });
    await place.#writeInput(input, options.bom === true);
    await place.#writePlan();
    return place;
  }

  async remove(): Promise<void> {
    await this.journal.close();
    await rm(this.path, { recursive: true, force: true });
  }

  /** Plan order of one model: every second line first, so that it differs from the input's order. */
  planOf(model: string): PlannedLine[] {
    const own = this.lines.filter((line) => line.model === model && !line.unrouted);
    return [...own.filter((_, i) => i % 2 === 1), ...own.filter((_, i) => i % 2 === 0)];
  }

  /** Writes answers of plan positions into a new segment, as a chunk over `[from, to)` does. */
  async segment(
    model: string,
    { from, to, answers }: { from: number; to: number; answers: ReadonlyMap<number, Answer> },
  ): Promise<FrameRef[]> {
    const writer = this.journal.openWriter({ batchId: BATCH, safeModel: model }, { from, to });
    const plan = this.planOf(model);
    for (const [position, answer] of answers) {
      const { offset } = plan[position]!;
      const payload = Buffer.from(answer.text);
      const usage = answer.usage ?? { ...NO_USAGE, inputTokens: 2, totalTokens: 5 };
      const header = { offset, kind: answer.kind, status: 200, tries: 1, usage };
      const bytes = encodeFrame(header, payload, crc32);
      writer.append({ ...header, payloadLength: payload.length }, bytes);
    }
    await writer.close();
    return [...writer.frames];
  }

  /** Answers every position of `model` in `[from, to)` with its custom id, and seals them. */
  async answerAll(model: string, from: number, to: number, answer = output): Promise<void> {
    const plan = this.planOf(model);
    const answers = new Map<number, Answer>();
    for (let at = from; at < to; at++) answers.set(at, answer(`${plan[at]!.customId} of ${model}`));
    await this.segment(model, { from, to, answers });
    expect(await this.seal(model, from, to)).toBe(to);
  }

  /** Cuts the last bytes off a segment, as if a power loss had torn the last write. */
  async tear(key: string, bytes: number): Promise<void> {
    const size = (await this.store.head(key))!.size;
    await truncate(objectPath(this.path, key), Math.max(0, size - bytes));
  }

  /** Seals `[from, next)` for the largest `next` up to which everything is answered. Returns `next`. */
  async seal(model: string, from: number, to: number): Promise<number> {
    const scope = { batchId: BATCH, safeModel: model };
    const answers = await this.answers(model, { from, to });
    const plan = this.planOf(model);
    let next = from;
    while (next < to && answers.has(plan[next]!.offset)) next++;
    if (next === from) return from;
    const frames = plan.slice(from, next).map(({ offset }) => answers.get(offset)!);
    frames.sort((a, b) => a.header.offset - b.header.offset);
    await this.journal.writeSeal(scope, { from, to: next }, frames);
    return next;
  }

  /** The journal's answers in a range, by offset. */
  async answers(model: string, range: { from: number; to: number }) {
    const found = new Map<number, FrameRef>();
    for await (const ref of this.journal.scan({ batchId: BATCH, safeModel: model }, range)) {
      if (ref.header.kind === FRAME_KIND.retry) continue;
      const known = found.get(ref.header.offset);
      if (known === undefined || isPreferred(claim(ref), claim(known))) {
        found.set(ref.header.offset, ref);
      }
    }
    return found;
  }

  finalize(
    cause: StopCause | null,
    nonce: string | null = NONCE,
    env = quietEnvironment(),
  ): Promise<FinalizeResult> {
    const run = createFinalize({
      store: this.store,
      journal: this.journal,
      batches: {
        find: async () => {
          await this.onRow();
          const row = { status: this.rowStatus, stopCause: this.rowCause };
          return { tenant: 'someone', inputObjectKey: this.inputKey, ...row };
        },
        recordPhase: async (_, { status }) => {
          this.phases.push(status);
          await this.onPhase();
          return { found: true, status, stopCause: null };
        },
        recordEnd: async (record): Promise<TerminalStatus> => {
          this.records.push(record);
          return this.rowCause ?? record.cause ?? 'completed';
        },
      },
      tenantHash,
      drafts: this.drafts,
    });
    const window = this.windowMs === null ? {} : { windowMs: this.windowMs };
    const announces = this.announces ? { announces: true } : {};
    const bounded = this.isBounded ? { isBounded: true } : {};
    return env.run(run, { batchId: BATCH, nonce, cause, ...window, ...announces, ...bounded });
  }

  /** Lines of a result file; null if there is none. */
  async resultLines(kind: 'output' | 'error'): Promise<string[] | null> {
    const key = this.resultKey(kind);
    if ((await this.store.head(key)) === null) return null;
    const text = (await this.store.read(key)).toString();
    expect(text.endsWith('\n')).toBe(true);
    return text.slice(0, -1).split('\n');
  }

  resultKey(kind: 'output' | 'error'): string {
    return fileKey(tenantHash('someone'), resultFileId(BATCH, kind));
  }

  /** The error line of a request that was never answered, up to its message. */
  unansweredLine(line: PlannedLine, code: string): string {
    const id = lineId(BATCH, line.offset);
    const names = `{"id":"${id}","custom_id":"${line.customId}"`;
    return `${names},"response":null,"error":{"code":"${code}"`;
  }

  async #writeInput(input: readonly InputLine[], bom: boolean): Promise<void> {
    const parts = [bom ? Buffer.from([0xef, 0xbb, 0xbf]) : Buffer.alloc(0)];
    let offset = parts[0]!.length;
    for (const [i, { model, unrouted = false }] of input.entries()) {
      const customId = `request-${i}`;
      const text = JSON.stringify({ custom_id: customId, url: '/v1', body: { model, n: i } });
      const line = Buffer.from(text + (i % 3 === 0 ? '\r\n' : '\n'));
      this.lines.push({ offset, length: Buffer.byteLength(text), customId, model, unrouted });
      const blank = Buffer.from(i % 4 === 0 ? ' \n' : '');
      parts.push(line, blank);
      offset += line.length + blank.length;
    }
    await this.store.putIfAbsent(INPUT_KEY, Buffer.concat(parts));
  }

  async #writePlan(): Promise<void> {
    const routed = [...new Set(this.lines.filter((l) => !l.unrouted).map((l) => l.model))];
    const entries: Record<string, number> = {};
    for (const model of routed) {
      const plan = this.planOf(model);
      const bytes = Buffer.alloc(plan.length * PLAN_ENTRY_BYTES);
      plan.forEach(({ offset, length }, i) =>
        encodePlanEntry(bytes, i * PLAN_ENTRY_BYTES, { offset, length, prefixHash: i % 2 }),
      );
      entries[model] = plan.length;
      await this.store.putIfAbsent(planKey(BATCH, NONCE, model), bytes);
    }
    const names = Object.fromEntries(routed.map((model) => [model, model]));
    const unrouted: Record<string, number> = {};
    for (const line of this.lines) {
      if (line.unrouted) unrouted[line.model] = (unrouted[line.model] ?? 0) + 1;
    }
    const map: ModelMap = {
      version: 1,
      nonce: NONCE,
      line_count: this.lines.length,
      model_to_safe: names,
      safe_to_model: names,
      entries,
      unrouted,
    };
    await this.store.putIfAbsent(modelMapKey(BATCH), encodeModelMap(map));
  }
}

/** An environment that does not show failures that are expected. */
function quietEnvironment(): MockActivityEnvironment {
  return new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
}

function claim({ header, objectKey, position }: FrameRef) {
  return { kind: header.kind, objectKey, position };
}
