import { MockActivityEnvironment } from '@temporalio/testing';
import type {
  BatchActivities,
  ExecuteChunkInput,
  ExecuteChunkResult,
  FinalizeInput,
  FinalizeResult,
} from '../../../activities/contract';
import { createLastChunk } from '../../../activities/finalize/last-chunk';

const INPUT: ExecuteChunkInput = {
  ...{ batchId: 'batch_1', planNonce: 'n0', tenant: 't', endpoint: '/v1/chat/completions' },
  ...{ inputKey: 'k', model: 'alpha', safe: 'alpha', from: 0, to: 5, boxMs: 15_000 },
  ...{ p95Ms: null, priority: 3, deadlineMs: Date.now() + 3_600_000 },
};
const LAST = { isLast: true };
const DONE: ExecuteChunkResult = {
  ...{ next: 5, completed: 5, failed: 0, answered: 5, worker: 'w' },
  ...{ ratePerSec: null, p95Ms: null, left: 'done', stopCause: null },
};
const END: FinalizeResult = {
  ...{ kind: 'done', status: 'completed', outputFileId: 'file-o', errorFileId: null },
  counts: { total: 5, completed: 5, failed: 0 },
};

/** A process whose chunks end when and how the test says. */
function process({ end = END, isDraining = false }: { end?: unknown; isDraining?: boolean } = {}) {
  const ends: FinalizeInput[] = [];
  const drafted: string[] = [];
  const open: ((result: ExecuteChunkResult | Error) => void)[] = [];
  const steps = {
    executeChunk: () =>
      new Promise<ExecuteChunkResult>((resolve, reject) => {
        open.push((result) => (result instanceof Error ? reject(result) : resolve(result)));
      }),
    finalize: (input: FinalizeInput) => {
      ends.push(input);
      return end instanceof Error ? Promise.reject(end) : Promise.resolve(end);
    },
  };
  const activity = createLastChunk({
    steps: steps as unknown as BatchActivities,
    logger: { warn: () => undefined },
    drafts: {
      advance: ({ batchId }) => drafted.push(`advance ${batchId}`),
      drop: (batchId) => drafted.push(`drop ${batchId}`),
    },
    drain: isDraining ? AbortSignal.abort() : new AbortController().signal,
  });
  return {
    ends,
    /** What was asked of drafts. */
    drafted,
    /** Begins a chunk; it returns what `end` gets. */
    begin: (input: Partial<ExecuteChunkInput> = {}) => {
      const run: Promise<ExecuteChunkResult> = new MockActivityEnvironment().run(activity, {
        ...INPUT,
        ...input,
      });
      const at = open.length - 1;
      return {
        end: (result: Partial<ExecuteChunkResult> | Error = {}) => {
          open[at]?.(result instanceof Error ? result : { ...DONE, ...result });
          return run;
        },
      };
    },
  };
}

describe('the chunk that is done last in its process', () => {
  it('ends the batch', async () => {
    const { begin, ends } = process();
    expect(await begin(LAST).end()).toEqual({ ...DONE, ended: END });
    const limits = { windowMs: 20_000, isBounded: true };
    expect(ends).toEqual([{ batchId: 'batch_1', nonce: 'n0', cause: null, ...limits }]);
  });

  it('ends the batch also if another one was handed out last', async () => {
    const { begin, ends } = process();
    const [first, last] = [begin(), begin(LAST)];
    expect(await last.end()).toEqual(DONE);
    expect(ends).toEqual([]);
    expect(await first.end()).toEqual({ ...DONE, ended: END });
  });

  it('ends nothing while something is left to hand out', async () => {
    const { begin, ends } = process();
    expect(await begin().end()).toEqual(DONE);
    expect(ends).toEqual([]);
  });

  it('knows only its own batch', async () => {
    const { begin } = process();
    begin({ batchId: 'batch_2' });
    expect(await begin(LAST).end()).toEqual({ ...DONE, ended: END });
    expect(await begin().end()).toEqual(DONE);
  });

  it.each<[string, Partial<ExecuteChunkResult> | Error]>([
    ['was not done', { next: 3, left: 'box' }],
    ['saw a stop', { stopCause: 'cancelled' }],
    ['failed', new Error('gone')],
  ])('ends nothing if another one %s', async (_, result) => {
    const { begin, ends } = process();
    const [other, last] = [begin(), begin(LAST)];
    await other.end(result).catch(() => undefined);
    expect(await last.end()).toEqual(DONE);
    expect(ends).toEqual([]);
    // What is begun later has nothing to do with them.
    expect(await begin(LAST).end()).toEqual({ ...DONE, ended: END });
  });

  it('ends the batch if what another one has left is handed out again', async () => {
    const { begin } = process();
    const [other, last] = [begin(), begin(LAST)];
    await other.end({ next: 3, left: 'box' });
    const again = begin({ ...LAST, from: 3 });
    expect(await last.end()).toEqual(DONE);
    expect(await again.end()).toEqual({ ...DONE, ended: END });
  });

  it('fails as the chunk fails', async () => {
    const { begin, ends } = process();
    await expect(begin(LAST).end(new Error('gone'))).rejects.toThrow('gone');
    expect(ends).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['finds lines of other processes without an answer', { kind: 'holes', holes: [] }],
    ['fails', new Error('the store is away')],
  ])('returns its answers if finalization %s', async (_, end) => {
    expect(await process({ end }).begin(LAST).end()).toEqual(DONE);
  });

  it('leaves the end to the workflow near the deadline, and in a process that shuts down', async () => {
    const near = process();
    expect(await near.begin({ ...LAST, deadlineMs: Date.now() + 59_000 }).end()).toEqual(DONE);
    const draining = process({ isDraining: true });
    expect(await draining.begin(LAST).end()).toEqual(DONE);
    expect([near.ends, draining.ends]).toEqual([[], []]);
  });
});

describe('result files', () => {
  it('are begun while the last chunks are at work, and go on when one of them is done', async () => {
    const { begin, drafted } = process();
    const [first, second, last] = [begin(), begin(), begin(LAST)];
    expect(drafted).toEqual([]);
    await second.end();
    await first.end();
    expect(drafted).toEqual(['advance batch_1', 'advance batch_1']);
    await last.end();
    // Finalization has taken the draft; else it is of no use to anyone.
    expect(drafted.slice(2)).toEqual(['drop batch_1']);
  });

  it('are not begun while something is left to hand out', async () => {
    const { begin, drafted } = process();
    const [first, second] = [begin(), begin()];
    await first.end();
    await second.end();
    expect(drafted).not.toContain('advance batch_1');
  });

  it.each<[string, Partial<ExecuteChunkResult> | Error]>([
    ['a stop', { stopCause: 'cancelled' }],
    ['a failure', new Error('gone')],
    ['a rest', { next: 3, left: 'box' }],
  ])('are given up after %s', async (_, result) => {
    const { begin, drafted } = process();
    const [first, second, last] = [begin(), begin(), begin(LAST)];
    await first.end();
    await second.end(result).catch(() => undefined);
    await last.end();
    expect(drafted).toEqual(['advance batch_1', 'drop batch_1', 'drop batch_1']);
  });

  it('are not begun in a process that shuts down', async () => {
    const { begin, drafted } = process({ isDraining: true });
    const [first, last] = [begin(), begin(LAST)];
    await first.end();
    await last.end();
    expect(drafted).not.toContain('advance batch_1');
  });
});
