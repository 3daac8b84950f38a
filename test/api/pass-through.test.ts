import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { configSchema } from '../../platform/config-schema';
import { ensureKeyFile, openHeaderVault } from '../../platform/header-vault';
import { createBatchRepository } from '../../storage/postgres/batches/repository';
import { findBatchHeaders } from '../../storage/postgres/batches/headers';
import { NO_USAGE } from '../../core/batch/counts';
import { openTestApi, post, type TestApi } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-headers-'));
const CONFIG = {
  pass_through_headers: ['Authorization', 'X-Team'],
  pass_through_key_file: path.join(folder, 'key'),
};

let api: TestApi;
beforeAll(async () => {
  ensureKeyFile(CONFIG.pass_through_key_file);
  api = await openTestApi({ config: CONFIG });
}, POSTGRES_START_MS);
afterAll(async () => {
  await api.close();
  fs.rmSync(folder, { recursive: true });
});

const BATCH = {
  input_file_id: 'file-none',
  endpoint: '/v1/responses',
  completion_window: '24h',
};
async function create(headers: Record<string, string>): Promise<string> {
  const answer = await api.call(post('/v1/batches', BATCH, headers));
  expect(answer.status).toBe(200);
  return answer.body.id;
}
const records = () => createBatchRepository(api.database.pool, { outputFilesSec: 1 });

it('stores the listed headers and no others, encrypted', async () => {
  const id = await create({ authorization: 'Bearer s3cret', 'x-team': 'blue', 'x-other': 'no' });
  const row = await findBatchHeaders(api.database.pool, id);
  const text = JSON.stringify(await api.database.pool.query('select * from batch_headers'));
  expect(text).not.toMatch(/s3cret|blue/);
  expect(row?.sealed.includes(Buffer.from('s3cret'))).toBe(false);
  const { open } = openHeaderVault(configSchema.parse(CONFIG));
  expect(open(id, row!)).toEqual({ authorization: 'Bearer s3cret', 'x-team': 'blue' });
  expect(await records().find(id)).toMatchObject({ passesHeaders: true });
});

it('stores nothing if none of the listed headers was sent', async () => {
  const id = await create({ 'x-other': 'no' });
  expect(await findBatchHeaders(api.database.pool, id)).toBeNull();
  expect(await records().find(id)).toMatchObject({ passesHeaders: false });
});

it.each(['completed', 'failed', 'unfinalized'])(
  'removes the headers when the batch has ended: %s',
  async (end) => {
    const id = await create({ 'x-team': 'blue' });
    if (end === 'unfinalized') await records().recordUnfinalized(id, 'failed');
    else {
      await records().recordEnd({
        ...{ batchId: id, counts: { total: 0, completed: 0, failed: 0 }, usage: NO_USAGE },
        ...{ cause: null, model: null, outputFile: null, errorFile: null },
        errors: end === 'failed' ? [] : null,
      });
    }
    expect(await findBatchHeaders(api.database.pool, id)).toBeNull();
  },
);
