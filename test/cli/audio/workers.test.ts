import type { AudioPage } from '../../../platform/audio-page';
import { startAudioGateway, startWorker } from '../../gateway/audio/audio-fixtures';
import { closeAll } from '../../gateway/gateway-fixtures';
import { startLocalServer } from '../../inference/local-server';
import { freePort } from '../../support/free-port';
import { runAudioCommand } from './run-audio-command';

afterEach(closeAll);

const PAGE: AudioPage = {
  workers: [
    {
      ...{ address: 'gpu-0:8003', engine: 'whisper', status: 'serving', reason: null },
      slots: { total: 4, used: 3, free: 1, quarantined: 0 },
      ...{ streams: { total: 8, used: 1 }, models: ['whisper-1'] },
    },
    {
      ...{ address: 'gpu-1:8003', engine: '', status: 'unreachable', reason: 'no answer' },
      slots: { total: 1, used: 0, free: 0, quarantined: 0 },
      ...{ streams: { total: 0, used: 0 }, models: [] },
    },
  ],
  models: [
    {
      ...{ name: 'whisper-1', worker: 'gpu-0:8003', tasks: ['TRANSCRIBE'], languages: ['en'] },
      ...{ voices: [], speech_formats: [], max_batch: 8, streaming: true },
    },
  ],
  waiting: { REALTIME: { requests: 0, oldest_ms: null }, BATCH: { requests: 7, oldest_ms: 1_500 } },
  ...{ sessions: 1, spool: { bytes: 2_000_000, max_bytes: 4_000_000_000 } },
  limits: { batch_queue_ttl_ms: 120_000 },
};

async function show(page: object, args: readonly string[] = []) {
  const server = await startLocalServer(({ url }, response) => {
    response.writeHead(url === '/admin/audio' ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(page));
  });
  try {
    return await runAudioCommand(['workers', '--url', server.url, ...args]);
  } finally {
    await server.close();
  }
}

it('shows workers, models, and what waits', async () => {
  const { stdout, code } = await show(PAGE);
  expect(code).toBe(0);
  expect(stdout).toBe(
    [
      'worker      state        slots used  blocked  streams  engine   reason',
      'gpu-0:8003  serving          3 of 4        0   1 of 8  whisper',
      'gpu-1:8003  unreachable      0 of 1        0   0 of 0           no answer',
      '',
      'model      worker      tasks       live  batch  languages  voices',
      'whisper-1  gpu-0:8003  transcribe  yes       8  en         any',
      '',
      'waiting: 0 REALTIME, 7 BATCH (oldest 1.5 s); live sessions: 1; spool: 2.0 MB of 4.0 GB',
      '',
    ].join('\n'),
  );
  expect(JSON.parse((await show(PAGE, ['--json'])).stdout)).toEqual(PAGE);
});

it('says that there are no workers, no gateway, or another server', async () => {
  expect((await show({ ...PAGE, workers: [] })).stdout).toMatch(/no audio workers: name some/);
  expect(await show({})).toMatchObject({ code: 1 });
  const away = await runAudioCommand(['workers', '--url', `http://127.0.0.1:${await freePort()}`]);
  expect(away).toMatchObject({ code: 6 });
  expect(away.stderr).toMatch(/No gateway answers at .*ECONNREFUSED/);
});

it('shows the page of a gateway', async () => {
  const gateway = await startAudioGateway([await startWorker()]);
  const { stdout } = await runAudioCommand(['workers', '--url', gateway.adminUrl]);
  expect(stdout).toMatch(/serving/);
});
