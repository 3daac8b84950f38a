import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStorage } from '../../storage/open-storage';
import { configSchema } from '../../platform/config-schema';
import { type ScriptedS3, startScriptedS3 } from '../support/scripted-s3';

let s3: ScriptedS3;
let folder: string;
beforeAll(async () => {
  s3 = await startScriptedS3();
  folder = mkdtempSync(join(tmpdir(), 'nightshift-storage-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await s3.close();
});

function settings() {
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'b');
  const credentials = { access_key_id: 'a', secret_access_key_file: secret };
  const place = { bucket: 'bucket', endpoint: s3.endpoint, use_path_style: true };
  return configSchema.parse({ object_store: { type: 's3', ...place, ...credentials } })
    .object_store;
}

it('opens a bucket without a warning about the version of Node', async () => {
  const warn = jest.spyOn(process, 'emitWarning');
  const { close } = await openStorage(settings());
  await close();
  expect(warn).not.toHaveBeenCalled();
});
