import { FakeBatch } from './fake-batch';
import { type ScenarioPlayer, startScenarioPlayer } from './play-scenario';
import { TEMPORAL_START_MS } from '../support/temporal';

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

const models = (count: number, name: string) =>
  Array.from({ length: count }, (_, i) => ({ model: `${i}${name}`, entries: 1 }));
const start = {
  tenant: 'team-a',
  endpoint: '/v1/chat/completions',
  expiresAtSec: Math.floor(Date.now() / 1000) + 3600,
  inputFileId: 'file-x',
};

// If the server rejected a value, it would reject every retry too. Only a real server shows what it rejects.
it.each([
  ['20 models of 110 characters', start, models(20, 'm'.repeat(108))],
  ['2 models of 255 emoji', start, models(2, '😀'.repeat(255))],
  ['20 models of quotes and backslashes', start, models(20, '"\\'.repeat(127))],
  ['models of control characters', start, models(3, '\0\n\x1f'.repeat(85))],
  ['models with lone surrogates', start, models(3, '\ud83d'.repeat(255))],
  ['a tenant of 256 emoji', { ...start, tenant: '😀'.repeat(256) }, models(1, 'm')],
  ['a tenant of 256 quotes', { ...start, tenant: '"'.repeat(256) }, models(1, '漢'.repeat(255))],
  [
    'an input file id with lone surrogates',
    { ...start, inputFileId: '\ud83d漢'.repeat(127) },
    models(1, 'm'),
  ],
])('a batch with %s completes', async (_what, begun, named) => {
  const batch = new FakeBatch({ models: named });
  const { result } = await player.play({ batch, start: begun });
  expect(result).toMatchObject({ status: 'completed', total: named.length });
});
