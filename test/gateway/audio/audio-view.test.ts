import { BAND } from '../../../core/dispatch/queue/band';
import { audioView } from '../../../gateway/audio/audio-view';
import { AudioScene, FakeLink, MODEL } from './pool-scene';

afterEach(() => jest.restoreAllMocks());

it('shows workers, models, and how long the oldest request of each priority waits', async () => {
  const link = new FakeLink('w:1', { slots: 1, maxStreams: 2 });
  const other = new FakeLink('w:2', {
    ...{ status: 'draining', slots: 3 },
    models: new Map([['m', { ...MODEL, languages: ['en'], voices: ['alloy'], maxBatch: 0 }]]),
  });
  const scene = new AudioScene([link, other], {});
  const view = () =>
    audioView({
      pool: scene.pool,
      table: { usedOf: (address) => (address === 'w:1' ? 1 : 0) },
      ...{ sessions: 1, spool: { bytes: 5, max_bytes: 10 }, nowMs: scene.nowMs },
      limits: { batch_queue_ttl_ms: 7 },
    });
  expect(view().waiting.BATCH).toEqual({ requests: 0, oldest_ms: null });
  // A recording that takes long, so that others wait.
  for (let i = 0; i < 5; i++) scene.submit({ durationSec: 1_000 });
  await scene.pass(2_000);
  scene.submit({ band: BAND.critical });
  await scene.pass(1_000);
  const page = view();
  expect(page.waiting).toEqual({
    REALTIME: { requests: 1, oldest_ms: 1_000 },
    BATCH: { requests: 4, oldest_ms: 3_000 },
  });
  expect(page).toMatchObject({ sessions: 1, spool: { bytes: 5, max_bytes: 10 } });
  expect(page.workers).toMatchObject([
    {
      ...{ address: 'w:1', engine: 'fake', status: 'serving', reason: null, models: ['m'] },
      slots: { total: 1, used: 1, free: 0, quarantined: 0 },
      streams: { total: 2, used: 1 },
    },
    { address: 'w:2', status: 'draining', slots: { total: 3, used: 0, free: 0 } },
  ]);
  expect(page.models[1]).toEqual({
    ...{ name: 'm', worker: 'w:2', tasks: [], languages: ['en'], voices: ['alloy'] },
    ...{ speech_formats: [], max_batch: 1, streaming: false },
  });
});
