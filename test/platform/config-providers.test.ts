import { loadConfig } from '../../platform/config';

function load(settings: object) {
  const one = { url: 'https://acme.test/openai/v1', ...settings };
  const { providers } = loadConfig({ env: {}, needs: [], overrides: { providers: { one } } });
  return providers['one'];
}

it.each([
  ['openai', 50_000],
  ['azure_openai', 100_000],
  ['nightshift', 50_000],
  ['mistral', 50_000],
  ['groq', 50_000],
  ['together', 50_000],
])('a provider of type %s takes %d lines in a job by default', (type, max_lines) => {
  expect(load({ type })).toMatchObject({ type, max_lines, job_timeout: 26 * 3_600_000 });
  expect(load({ type, max_lines: 7 })).toMatchObject({ max_lines: 7 });
});

it('knows where Anthropic is, and which version of its API to ask for', () => {
  const overrides = { providers: { one: { type: 'anthropic' } } };
  const { providers } = loadConfig({ env: {}, needs: [], overrides });
  expect(providers['one']).toMatchObject({
    ...{ url: 'https://api.anthropic.com', api_version: '2023-06-01', exclusive: false },
    ...{ max_lines: 10_000, job_timeout: 26 * 3_600_000 },
  });
  const changes = { exclusive: true, api_version: '2026-10-21', url: 'https://acme.test' };
  expect(load({ type: 'anthropic', ...changes })).toMatchObject(changes);
  expect(() => load({ type: 'anthropic', api_version: 'v1' })).toThrow(/api_version/);
});

it.each([{ drop_params: true }, { default_max_tokens: 7 }, { extra_body: { top_k: 1 } }])(
  'refuses %j of a delegate whose provider translates nothing',
  (translation) => {
    const one = { type: 'openai', url: 'https://acme.test' };
    const overrides = { providers: { one }, delegates: { m: { provider: 'one', ...translation } } };
    const [key = ''] = Object.keys(translation);
    expect(() => loadConfig({ env: {}, needs: [], overrides })).toThrow(
      `delegates.m.${key}: has no`,
    );
  },
);

it.each<[object, string]>([
  [{ type: 'azure' }, 'providers.one.type'],
  [{ type: 'openai', create_lease: '9s' }, 'create_lease: must not be shorter than 10s'],
  [{ type: 'azure_openai', api_version: '2024-10-21' }, 'api_version'],
  [{ type: 'azure_openai', min_lines: 200_000 }, 'min_lines: must not exceed max_lines'],
])('refuses the provider %j', (settings, message) => {
  expect(() => load(settings)).toThrow(message);
});

const AWS = {
  type: 'aws_transcribe',
  region: 'eu-central-1',
  storage: { type: 's3', bucket: 'recordings' },
};

it('derives the address of Amazon Transcribe from its region', () => {
  const overrides = { providers: { one: AWS } };
  const { providers } = loadConfig({ env: {}, needs: [], overrides });
  expect(providers['one']).toMatchObject({
    url: 'https://transcribe.eu-central-1.amazonaws.com',
    max_lines: 1,
    max_open_jobs: 100,
    storage: { bucket: 'recordings', prefix: '' },
  });
  expect(load(AWS)).toMatchObject({ url: 'https://acme.test/openai/v1' });
});

it('derives the address of Amazon Bedrock, and keeps small models away from it', () => {
  const bedrock = { ...AWS, type: 'bedrock', role_arn: 'arn:aws:iam::123456789012:role/r' };
  const read = (one: object) =>
    loadConfig({ env: {}, needs: [], overrides: { providers: { one } } });
  expect(read(bedrock).providers['one']).toMatchObject({
    url: 'https://bedrock.eu-central-1.amazonaws.com',
    min_lines: 100,
  });
  expect(() => read({ ...bedrock, role_arn: undefined })).toThrow('role_arn');
});

const GOOGLE = {
  ...{ project: 'acme', api_key_file: '/key' },
  storage: { type: 'gcs', bucket: 'b' },
};

it.each<[string, string, string]>([
  ['vertex', 'us-central1', 'https://us-central1-aiplatform.googleapis.com'],
  ['vertex', 'global', 'https://aiplatform.googleapis.com'],
  ['vertex', 'eu', 'https://aiplatform.eu.rep.googleapis.com'],
  ['google_speech', 'eu', 'https://eu-speech.googleapis.com'],
  ['google_speech', 'global', 'https://speech.googleapis.com'],
])('derives the address of %s from its location %s', (type, location, url) => {
  const one = { ...GOOGLE, type, location };
  const { providers } = loadConfig({ env: {}, needs: [], overrides: { providers: { one } } });
  expect(providers['one']).toMatchObject({
    url,
    storage: { url: 'https://storage.googleapis.com', bucket: 'b', prefix: '' },
    ...(type === 'vertex'
      ? { max_lines: 200_000, job_timeout: 98 * 3_600_000 }
      : { max_lines: 15, max_open_jobs: 100, locales: ['en-US'] }),
  });
});

it('refuses services of Google without a project or a bucket', () => {
  const one = { ...GOOGLE, type: 'vertex', location: 'eu' };
  expect(() => load({ ...one, project: undefined })).toThrow('project');
  expect(() => load({ ...one, storage: { type: 'gcs' } })).toThrow('storage.bucket');
  expect(() => load({ ...one, storage: { type: 's3', bucket: 'b' } })).toThrow('storage.type');
});

const AZURE = {
  type: 'azure_speech',
  url: 'https://eastus.api.cognitive.microsoft.com',
  storage: { type: 'azure_container', url: 'https://acme.test/calls', api_key_name: 'sas' },
};

it('gives Azure Speech its version, its language and its limits', () => {
  expect(load(AZURE)).toMatchObject({
    ...{ api_version: '2024-11-15', locales: ['en-US'], max_lines: 1_000, max_open_jobs: 100 },
    storage: { url: 'https://acme.test/calls', prefix: '', api_key_name: 'sas' },
  });
});

it.each<[object, string]>([
  [{ url: 'https://acme.test/calls?sig=1' }, 'storage.url: must have no query'],
  [{ api_key_name: undefined }, 'storage.api_key_file: set one of it and api_key_name'],
  [{ api_key_file: '/sas' }, 'storage.api_key_file: set one of it and api_key_name'],
  [{ bucket: 'b' }, 'storage'],
])('refuses %j for the container of Azure Speech', (change, message) => {
  const storage = { ...AZURE.storage, ...change };
  expect(() => load({ ...AZURE, storage })).toThrow(message);
});

it('knows the address of Sarvam AI, and its limits', () => {
  const overrides = { providers: { one: { type: 'sarvam', api_key_file: '/key' } } };
  const { providers } = loadConfig({ env: {}, needs: [], overrides });
  expect(providers['one']).toMatchObject({
    ...{ url: 'https://api.sarvam.ai', max_lines: 20, max_open_jobs: 100 },
  });
});

it('lets recordings drop members, and refuses the settings of chats for them', () => {
  const overrides = (delegate: object) => ({
    providers: { one: AWS },
    delegates: { m: { provider: 'one', ...delegate } },
  });
  const withDrop = loadConfig({ env: {}, needs: [], overrides: overrides({ drop_params: true }) });
  expect(withDrop.delegates['m']?.drop_params).toBe(true);
  const refused = overrides({ default_max_tokens: 7 });
  expect(() => loadConfig({ env: {}, needs: [], overrides: refused })).toThrow(
    'delegates.m.default_max_tokens: has no',
  );
});
