import { createHash, randomBytes } from 'node:crypto';
import { createMetricsRegistry } from '../../../platform/metrics';
import { createAudioMetrics } from '../../../platform/audio-metrics';
import { audioSection } from '../../../platform/config-audio';
import { configSchema } from '../../../platform/config-schema';
import { createLogger } from '../../../platform/logger';
import { PRIORITY } from '../../../core/chunks/priority';
import { BAND, type Band } from '../../../core/dispatch/queue/band';
import type { AudioNeed } from '../../../core/audio/audio-need';
import type { AudioJob, AudioJobEnd } from '../../../gateway/audio/job';
import { type OpenAudio, openAudioPool } from '../../../gateway/audio/open-audio-pool';
import { type AudioSimulator, startAudioSimulator } from '../../../simulator/audio/audio-worker';
import { audioOf, fileCall, LATE_MS } from '../../inference/audio/worker-scene';
import { until } from '../../support/until';

let simulators: AudioSimulator[] = [];
let open: OpenAudio | null = null;

async function start(settings: readonly object[], audio: object = {}): Promise<OpenAudio> {
  simulators = await Promise.all(
    settings.map((one) => startAudioSimulator({ host: '127.0.0.1', port: 0, settings: one })),
  );
  const config = configSchema.parse({ gateway: { drain_budget: '4s' } });
  const opened = openAudioPool({
    config,
    audio: audioSection.parse({
      workers: simulators.map(({ address }) => ({ address })),
      grpc: { health_interval: '100ms', health_timeout: '5s' },
      ...audio,
    }),
    metrics: createAudioMetrics(createMetricsRegistry('gateway'), {}),
    logger: createLogger({ level: 'fatal', format: 'json' } as never, 'test'),
    now: () => performance.now(),
  });
  open = opened;
  await until(() => opened.pool.readyWorkers === settings.length, LATE_MS, 'ready workers');
  return opened;
}

afterEach(async () => {
  await open?.close();
  for (const simulator of simulators) simulator.close();
});

/** A job for random bytes, and how it ended. */
interface Watched {
  readonly job: AudioJob;
  readonly hash: string;
  readonly ends: AudioJobEnd[];
}

function submit(opened: OpenAudio, id: string, band: Band = BAND.standard): Watched {
  const bytes = randomBytes(2_000);
  const need: AudioNeed = {
    ...{ model: 'whisper-1', task: 'transcribe', language: '', contentType: 'audio/wav' },
    ...{ segments: false, words: false, voice: '', speechFormat: '' },
  };
  const job: AudioJob = {
    ...{ requestId: id, tenant: 't', band, priority: PRIORITY.normal, need, cost: 1, bytes: 0 },
    ...{ durationSec: 1, deadlineMs: Infinity, metadata: {} },
    work: {
      kind: 'file',
      options: { ...fileCall(bytes).options, requestId: id },
      audio: audioOf(bytes),
    },
  };
  const ends: AudioJobEnd[] = [];
  const nothing = () => undefined;
  const onSettled = (end: AudioJobEnd) => void ends.push(end);
  opened.pool.submit(job, { onDispatched: nothing, onDelta: nothing, onAudio: nothing, onSettled });
  return { job, hash: createHash('sha256').update(bytes).digest('hex').slice(0, 12), ends };
}

const allSettled = (jobs: readonly Watched[]) => jobs.every(({ ends }) => ends.length > 0);

function outcome({ ends, hash }: Watched): string {
  const [end] = ends;
  if (end === undefined) return 'open';
  if (end.kind !== 'transcript') return end.kind === 'fault' ? end.code : end.kind;
  return end.transcription.text.includes(hash) ? 'own' : 'of another';
}

it('gives each of 300 requests the answer to its own bytes, while workers crash', async () => {
  const quick = { base_ms: 5, item_ms: 1, slots: 3 };
  const opened = await start([quick, quick, { ...quick, crash_after: 7 }]);
  const jobs: Watched[] = [];
  for (let i = 0; i < 300; i++) {
    jobs.push(submit(opened, `r${i}`, [BAND.critical, BAND.standard, BAND.sheddable][i % 3]));
    // No more than may wait of one tenant and model.
    await until(() => opened.pool.load.waiting < 50, LATE_MS, 'room in the queue');
  }
  await until(() => allSettled(jobs), 60_000, 'all to be settled');
  expect(jobs.map(({ ends }) => ends.length)).toEqual(Array(300).fill(1));
  const counts = groupBy(jobs, outcome);
  expect(counts.get('of another')).toBeUndefined();
  // A request may meet a crash twice.
  const own = counts.get('own')?.length ?? 0;
  expect(own + (counts.get('backend_lost')?.length ?? 0)).toBe(300);
  expect(own).toBeGreaterThan(250);
  // A call ends a moment after its request was answered.
  await until(() => opened.pool.load.running === 0, LATE_MS, 'all calls to end');
  expect(opened.pool.load.waiting).toBe(0);
}, 120_000);

it('settles each of 1,000 requests once whose cancel races its result, and frees every slot', async () => {
  const worker = { base_ms: 2, item_ms: 0, slots: 4 };
  const opened = await start([worker, worker]);
  const jobs: Watched[] = [];
  let cancelled = 0;
  for (let i = 0; i < 1_000; i++) {
    jobs.push(submit(opened, `r${i}`));
    await until(() => opened.pool.load.waiting < 50, LATE_MS, 'room in the queue', 1);
    const id = `r${i - Math.floor(Math.random() * 12)}`;
    setTimeout(() => {
      if (opened.pool.cancel('t', id)) cancelled++;
      // A second one never finds it.
      if (opened.pool.cancel('t', id)) throw new Error(`${id} was cancelled twice`);
    }, Math.random() * 8);
  }
  await until(() => allSettled(jobs), 60_000, 'all to be settled');
  await until(() => opened.pool.load.running === 0, LATE_MS, 'all calls to end');
  expect(jobs.map(({ ends }) => ends.length)).toEqual(Array(1_000).fill(1));
  const counts = groupBy(jobs, outcome);
  expect([...counts.keys()].sort()).toEqual(['cancelled', 'own']);
  expect(counts.get('cancelled')).toHaveLength(cancelled);
  const free = () => opened.pool.slots.workers.map((slots) => slots.free);
  await until(() => free().every((count) => count === 4), LATE_MS, 'all slots to be free');
  expect(simulators.map(({ stats }) => stats.running)).toEqual([0, 0]);
  expect(Math.max(...simulators.map(({ stats }) => stats.max_running))).toBeLessThanOrEqual(4);
}, 120_000);

it('answers a cancel at once whose worker is deaf, ends the call, and blocks its slot', async () => {
  const opened = await start([{ base_ms: 3_600_000, slots: 1, deaf_cancel: true }], {
    scheduler: { cancel_quarantine: '1h' },
  });
  const job = submit(opened, 'r');
  await until(() => simulators[0]?.stats.running === 1, LATE_MS, 'the call to run');
  expect(opened.pool.cancel('t', 'r')).toBe(true);
  expect(outcome(job)).toBe('cancelled');
  await until(() => simulators[0]?.stats.aborted === 1, LATE_MS, 'the worker to see the abort');
  await until(() => opened.pool.load.running === 0, LATE_MS, 'the call to end');
  expect(opened.pool.slots.workers[0]).toMatchObject({ free: 0 });
  expect(opened.pool.slots.workers[0]?.quarantined.size).toBe(1);
});

it('lets the queue end at a drain, refuses newcomers, and cancels what is left', async () => {
  const opened = await start([{ base_ms: 50, item_ms: 0, slots: 1 }], {
    scheduler: { shutdown_grace: '1s' },
    accumulator: { max_batch_size: 1 },
  });
  const jobs = Array.from({ length: 5 }, (_, i) => submit(opened, `r${i}`));
  await until(() => simulators[0]?.stats.running === 1, LATE_MS, 'the first call');
  const drained = opened.drain();
  expect(outcome(submit(opened, 'late'))).toBe('shutting_down');
  await drained;
  expect(jobs.map(outcome)).toEqual(Array(5).fill('own'));
});

it('drops what waits at a drain whose time is over, and cancels what runs', async () => {
  const opened = await start([{ base_ms: 3_600_000, slots: 1 }], {
    scheduler: { shutdown_grace: '1s' },
  });
  const jobs = Array.from({ length: 3 }, (_, i) => submit(opened, `r${i}`, BAND.critical));
  await until(() => simulators[0]?.stats.running === 1, LATE_MS, 'the first call');
  await opened.drain();
  expect(jobs.map(({ ends }) => ends)).toMatchObject([
    [{ code: 'shutting_down', wasDispatched: true }],
    [{ code: 'shutting_down', wasDispatched: false }],
    [{ code: 'shutting_down', wasDispatched: false }],
  ]);
  await until(() => simulators[0]?.stats.running === 0, LATE_MS, 'the call to be cancelled');
}, 60_000);

function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}
