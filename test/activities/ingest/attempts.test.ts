import { once } from 'node:events';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { IngestDeps } from '../../../activities/ingest/deps';
import { createIngest } from '../../../activities/ingest/ingest';
import { IngestAttempt, type IngestDetails } from '../../../activities/ingest/ingest-attempt';
import { ScanGate } from '../../../activities/ingest/scan-gate';
import { NightshiftError } from '../../../core/errors';
import { inputErrorsKey } from '../../../core/names/object-names';
import { configSchema } from '../../../platform/config-schema';
import { createMemoryStore } from '../../support/memory-store';

const BATCH = `batch_${'0a'.repeat(16)}`;
const INPUT = 'files/t/file-input';
const LINE = JSON.stringify({
  ...{ custom_id: 'a', method: 'POST', url: '/v1/chat/completions' },
  body: { model: 'm', messages: [] },
});

/** One ingestion and its attempts, each of which reads the last heartbeat of the one before. */
class Attempts {
  readonly store = createMemoryStore();
  last: (IngestDetails & { bytes: number }) | undefined;
  attempt = 0;
  readonly #ingest;

  constructor(changes: Partial<IngestDeps> = {}) {
    this.store.objects.set(INPUT, Buffer.from(LINE));
    const { limits, batch } = configSchema.parse({});
    const row = { endpoint: '/v1/chat/completions', inputObjectKey: INPUT, inputBytes: null };
    this.#ingest = createIngest({
      ...{ store: this.store, limits, batch, announceMs: 1 },
      batches: { input: async () => row },
      isRouted: () => true,
      ...changes,
    });
  }

  /** An attempt whose process dies in the given phase: it never ends, and its last heartbeat is kept. */
  async dies(phase: IngestDetails['phase']): Promise<void> {
    const env = this.#environment();
    const hangs = new Promise<never>(() => undefined);
    const real = this.store.scan;
    if (phase !== 'waiting') this.store.scan = () => void env.emit('reads') as never;
    else this.store.head = () => hangs;
    const reads = once(env, 'reads');
    const head = this.store.head;
    void env.run(this.#ingest, { batchId: BATCH }).catch(() => undefined);
    if (phase !== 'waiting') await reads;
    this.store.scan = real;
    this.store.head = head;
  }

  async run(): Promise<unknown> {
    return this.#environment().run(this.#ingest, { batchId: BATCH });
  }

  errors(): unknown {
    return JSON.parse(this.store.objects.get(inputErrorsKey(BATCH))?.toString() ?? 'null');
  }

  #environment(): MockActivityEnvironment {
    const logger = new DefaultLogger('ERROR');
    const info = { attempt: ++this.attempt, heartbeatDetails: this.last };
    const env = new MockActivityEnvironment(info, { logger });
    env.on('heartbeat', (details: typeof this.last) => (this.last = details));
    return env;
  }
}

const after = (...phases: IngestDetails['phase'][]): IngestAttempt => {
  let details: unknown;
  let attempt = new IngestAttempt({ attempt: 1, heartbeatDetails: undefined });
  for (const [i, phase] of phases.entries()) {
    details = { ...attempt.details, phase };
    attempt = new IngestAttempt({ attempt: i + 2, heartbeatDetails: details });
  }
  return attempt;
};

describe('attempts at an ingestion', () => {
  it('are suspect after a crash while reading, and count crashes while reading exclusively', () => {
    expect(after()).toMatchObject({ isSuspect: false, crashes: 0 });
    expect(after('reading')).toMatchObject({ isSuspect: true, crashes: 0 });
    expect(after('reading', 'alone', 'alone')).toMatchObject({ isSuspect: true, crashes: 2 });
  });

  it('do not count an attempt that ended by itself or died before it read', () => {
    expect(after('left', 'left', 'left')).toMatchObject({ isSuspect: false, crashes: 0 });
    expect(after('reading', 'waiting', 'waiting', 'left')).toMatchObject({ crashes: 0 });
    expect(after('reading', 'alone', 'left', 'waiting')).toMatchObject({ crashes: 1 });
  });

  it('are suspect if the last one died before its first heartbeat', () => {
    const attempt = new IngestAttempt({ attempt: 2, heartbeatDetails: undefined });
    expect(attempt).toMatchObject({ isSuspect: true, crashes: 0 });
  });

  it('ignore heartbeats of a release that reported only bytes', () => {
    const attempt = new IngestAttempt({ attempt: 9, heartbeatDetails: { bytes: 7 } });
    expect(attempt).toMatchObject({ isSuspect: false, crashes: 0 });
  });
});

describe('an input file', () => {
  it('is refused with a reason and not read again if it kills its workers', async () => {
    const attempts = new Attempts();
    await attempts.dies('reading');
    for (let death = 0; death < 3; death++) {
      await attempts.dies('alone');
      expect(attempts.last).toMatchObject({ phase: 'alone', deaths: death });
    }
    attempts.store.scan = () => {
      throw new Error('read once more');
    };
    expect(await attempts.run()).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(attempts.errors()).toMatchObject({ data: [{ code: 'unprocessable_file', line: null }] });
  });

  it('is still read after many failures of PostgreSQL', async () => {
    let isAway = true;
    const row = { endpoint: '/v1/chat/completions', inputObjectKey: INPUT, inputBytes: null };
    const input = () =>
      isAway
        ? Promise.reject(new NightshiftError('postgres_unavailable', 'away'))
        : Promise.resolve(row);
    const attempts = new Attempts({ batches: { input } });
    for (let i = 0; i < 5; i++) {
      await expect(attempts.run()).rejects.toMatchObject({ type: 'postgres_unavailable' });
      expect(attempts.last).toMatchObject({ phase: 'left', deaths: 0 });
    }
    isAway = false;
    expect(await attempts.run()).toMatchObject({ kind: 'planned', lineCount: 1 });
  });

  it('is planned when it is read exclusively, if it was suspect by chance', async () => {
    const attempts = new Attempts();
    await attempts.dies('reading');
    expect(await attempts.run()).toMatchObject({ kind: 'planned', lineCount: 1 });
  });
});

describe('concurrent reading', () => {
  const signal = new AbortController().signal;
  const open = () => {
    let close = (): void => undefined;
    const closed = new Promise<void>((resolve) => (close = resolve));
    return { close, closed };
  };

  it('pauses while a suspect file is read exclusively', async () => {
    const gate = new ScanGate();
    const order: string[] = [];
    const first = open();
    const scan = (name: string, end?: Promise<void>) => async () => {
      order.push(`${name} begins`);
      await end;
      order.push(`${name} ends`);
    };
    const all = [
      gate.run({ exclusive: false, signal }, scan('first', first.closed)),
      gate.run({ exclusive: false, signal }, scan('second', first.closed)),
      gate.run({ exclusive: true, signal }, scan('suspect')),
      gate.run({ exclusive: false, signal }, scan('last')),
    ];
    await new Promise(setImmediate);
    expect(order).toEqual(['first begins', 'second begins']);
    first.close();
    await Promise.all(all);
    expect(order.slice(4)).toEqual(['suspect begins', 'suspect ends', 'last begins', 'last ends']);
  });

  it('goes on when a waiting suspect is cancelled', async () => {
    const gate = new ScanGate();
    const first = open();
    const cancel = new AbortController();
    const running = gate.run({ exclusive: false, signal }, () => first.closed);
    const suspect = gate.run({ exclusive: true, signal: cancel.signal }, () => Promise.resolve());
    const next = gate.run({ exclusive: false, signal }, () => Promise.resolve('read'));
    cancel.abort(new Error('cancelled'));
    await expect(suspect).rejects.toThrow('cancelled');
    expect(await next).toBe('read');
    first.close();
    await running;
  });
});
