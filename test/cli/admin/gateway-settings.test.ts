import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { runConfigCheck } from '../../../cli/admin/config';
import { doctorChecks } from '../../../cli/admin/doctor-checks';
import { findDoctorConfig } from '../../../cli/admin/doctor-config';
import { closeAll, startBackend } from '../../gateway/gateway-fixtures';

let folder: string;
let written: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-settings-'));
  written = '';
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written += String(text);
    return true;
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
  await closeAll();
});

function fileOf(settings: unknown): string {
  const file = join(folder, 'settings.yaml');
  writeFileSync(file, stringify(settings));
  return file;
}

const poolsAt = (url: string) => ({ main: { models: ['*'], backends: [{ url }] } });
const POOLS = poolsAt('http://127.0.0.1:9');

it.each([
  ['of a gateway alone', { gateway: { pools: POOLS } }],
  ['of a gateway for audio alone', { gateway: { audio: { workers: [{ address: 'gpu:8003' }] } } }],
  ['of a worker alone', { global_inference_gateway: { url: 'http://127.0.0.1:9' } }],
  [
    'of both',
    { gateway: { pools: POOLS }, global_inference_gateway: { url: 'http://127.0.0.1:9' } },
  ],
])('config check accepts settings %s', (_whose, settings) => {
  runConfigCheck({ config: fileOf(settings) });
  expect(written).toBe('the configuration is valid\n');
});

it.each([
  ['that send nothing anywhere', { api: { port: 1 } }, 'global_inference_gateway: required'],
  [
    'of a gateway with API keys and no database',
    { gateway: { pools: POOLS }, auth: { mode: 'api_key' } },
    'postgres.url: required',
  ],
  [
    'of a gateway that everyone could use',
    { gateway: { pools: POOLS, host: '0.0.0.0' } },
    'gateway.host: auth.mode is none',
  ],
])('config check refuses settings %s', (_what, settings, problem) => {
  expect(() => runConfigCheck({ config: fileOf(settings) })).toThrow(problem);
});

it('the doctor of a gateway checks its ports and model servers, and nothing else', async () => {
  const { url } = await startBackend();
  const audio = { workers: [{ address: new URL(url).host }] };
  const gateway = { port: 0, observability_port: 0, pools: poolsAt(url), audio };
  const { config } = findDoctorConfig({ config: fileOf({ gateway }) });
  if (config === null) throw new Error('no settings');
  const checks = doctorChecks(config);
  const results = await Promise.all(checks.map(async ({ name, run }) => [name, await run()]));
  expect(results).toEqual([
    ['gateway.port', '0 is free'],
    ['gateway.observability_port', '0 is free'],
    ['backend', `${url} accepts connections`],
    ['audio worker', `${new URL(url).host} accepts connections`],
  ]);
  const keys = { ...config, auth: { ...config.auth, mode: 'api_key' as const } };
  expect(doctorChecks(keys).map(({ name }) => name)).toContain('PostgreSQL');
});
