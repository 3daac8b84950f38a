import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/until';
import { type ClientRun } from './client-run';
import { BATCH_ID, openaiError, startFakeServer } from './fake-server';
import { OUTPUT, IN_PROGRESS, ALL_WELL, SOME_FAILED, useRunFixture } from './run-fixture';

const fixture = useRunFixture();

describe('an interrupt of nightshift run', () => {
  const goesOn = { ...IN_PROGRESS };

  async function watched(client: ClientRun): Promise<void> {
    await until(() => fixture.server.count('GET', /batches\/batch_/) > 1, 10_000, 'the watch');
    client.signals.emit('SIGINT', 'SIGINT');
  }

  it('leaves the batch running without a terminal, and prints commands to continue', async () => {
    fixture.server.script = [goesOn];
    const client = fixture.run();
    await watched(client);
    expect(await client.done).toBe(130);
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID} --base-url ${fixture.server.url}`);
    expect(client.err()).toContain(`nightshift results ${BATCH_ID} -o`);
    expect(fixture.server.count('POST', /cancel/)).toBe(0);
  });

  it('cancels the batch if the user chooses so, and saves the partial results', async () => {
    fixture.server.script = [goesOn];
    fixture.server.afterCancel = [
      { ...SOME_FAILED, status: 'cancelled', cancelled_at: 1_700_000_009 },
    ];
    const client = fixture.run([], { answer: async () => 'c\n' });
    await watched(client);
    expect(await client.done).toBe(4);
    expect(fixture.server.count('POST', /cancel/)).toBe(1);
    expect(readFileSync(join(fixture.folder, 'input.output.jsonl'), 'utf8')).toBe(OUTPUT);
  });

  it.each([['l'], [''], [null]])(
    'leaves the batch running if the user answers %p',
    async (answer) => {
      fixture.server.script = [goesOn];
      const client = fixture.run([], { answer: async () => answer });
      await watched(client);
      expect(await client.done).toBe(130);
      expect(fixture.server.count('POST', /cancel/)).toBe(0);
    },
  );

  it('continues to watch if the user chooses so', async () => {
    fixture.server.script = [goesOn];
    const client = fixture.run([], {
      answer: async () => {
        fixture.server.script = [ALL_WELL];
        return 'w';
      },
    });
    await watched(client);
    expect(await client.done).toBe(0);
  });

  it('by SIGTERM leaves the batch running without a question', async () => {
    fixture.server.script = [goesOn];
    const client = fixture.run([], { answer: async () => 'c' });
    await until(() => fixture.server.count('GET', /batches\/batch_/) > 1, 10_000, 'the watch');
    client.signals.emit('SIGTERM', 'SIGTERM');
    expect(await client.done).toBe(130);
    expect(fixture.server.count('POST', /cancel/)).toBe(0);
  });

  it('saves the results of a batch that ended before the cancel arrived', async () => {
    fixture.server.script = [goesOn];
    fixture.server.react = ({ path }) => {
      if (!path.endsWith('/cancel')) return null;
      fixture.server.script = [ALL_WELL];
      return openaiError(409, 'Cannot cancel a batch with status completed.');
    };
    const client = fixture.run([], { answer: async () => 'c' });
    await watched(client);
    expect(await client.done).toBe(0);
  });

  it('during the upload creates no batch', async () => {
    fixture.server.react = ({ path }) => (path === '/v1/files' ? 'hang' : null);
    const client = fixture.run();
    await until(() => fixture.server.count('POST', /files/) === 1, 10_000, 'the upload');
    client.signals.emit('SIGINT', 'SIGINT');
    expect(await client.done).toBe(130);
    expect(client.err()).toContain('no batch was created');
    expect(fixture.server.count('POST', /batches/)).toBe(0);
  });

  it('works while a request hangs, and leaves no listener behind', async () => {
    fixture.server.script = [goesOn];
    fixture.server.react = ({ path }) =>
      path.includes('/batches/batch_') && fixture.server.count('GET', /batches\/batch_/) > 1
        ? 'hang'
        : null;
    const client = fixture.run();
    await watched(client);
    expect(await client.done).toBe(130);
    expect(client.signals.eventNames()).toEqual([]);
  });
});

describe('a server that fails during nightshift run', () => {
  it('is polled again with a message while it is away, and the watch continues', async () => {
    fixture.server.script = [IN_PROGRESS, ALL_WELL];
    let away = 4;
    fixture.server.react = ({ path }) => {
      if (!path.includes('/batches/batch_') || away-- <= 0) return null;
      return away % 2 === 0 ? 'break' : openaiError(503, 'overloaded');
    };
    const client = fixture.run();
    expect(await client.done).toBe(0);
    expect(client.err().match(/the batch is safe on the server/g)).toHaveLength(1);
    expect(client.err()).toContain('the server answers again');
  });

  it('ends the watch with exit status 6 after --patience, with commands to continue', async () => {
    fixture.server.react = ({ path }) => (path.includes('/batches/batch_') ? 'break' : null);
    const client = fixture.run(['--patience', '100ms']);
    expect(await client.done).toBe(6);
    expect(client.err()).toContain(`nightshift watch ${BATCH_ID}`);
  });

  it('gets the upload again if the connection breaks', async () => {
    fixture.server.script = [ALL_WELL];
    let breaks = 1;
    fixture.server.react = ({ path }) => (path === '/v1/files' && breaks-- > 0 ? 'break' : null);
    const client = fixture.run();
    expect(await client.done).toBe(0);
    const uploads = fixture.server.seen.filter(({ path }) => path === '/v1/files');
    expect(uploads).toHaveLength(2);
    const keys = new Set(uploads.map(({ headers }) => headers['idempotency-key']));
    expect(keys.size).toBe(1);
  });

  it('is named with advice if nothing listens there', async () => {
    await fixture.server.close();
    const client = fixture.run();
    expect(await client.done).toBe(6);
    expect(client.err()).toMatch(/cannot reach http:.* \(connect ECONNREFUSED.*nightshift dev/);
    fixture.server = await startFakeServer();
  });

  it.each([
    [{}, 'requires an API key'],
    [{ OPENAI_API_KEY: 'sk-wrong' }, 'refuses the API key'],
  ])('is reported with advice about keys if it answers 401 (%p)', async (env, words) => {
    fixture.server.react = () => openaiError(401, 'Incorrect API key provided.');
    const client = fixture.run([], { env });
    expect(await client.done).toBe(1);
    expect(client.err()).toContain(words);
    expect(fixture.server.count('POST', /files/)).toBe(0);
  });

  it('is quoted if it refuses the file', async () => {
    fixture.server.react = ({ path }) =>
      path === '/v1/files' ? openaiError(400, 'Invalid file format: .jsonl only.') : null;
    const client = fixture.run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('refused with 400: Invalid file format: .jsonl only');
  });

  it('is recognized by its pages if it is an ordinary web server', async () => {
    fixture.server.react = ({ path }) =>
      path === '/v1/batches' ? { status: 200, raw: '<html></html>' } : null;
    const client = fixture.run();
    expect(await client.done).toBe(1);
    expect(client.err()).toContain('usually ends in /v1');
  });
});
