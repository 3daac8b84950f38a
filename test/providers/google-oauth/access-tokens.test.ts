import { createPublicKey, verify } from 'node:crypto';
import type { AccessTokens } from '../../../providers/google-oauth/access-tokens';
import { openAuthorizedHttp } from '../../../providers/google-oauth/authorized-http';
import { parseServiceAccount } from '../../../providers/google-oauth/service-account';
import { readToken, tokenForm } from '../../../providers/google-oauth/token-request';
import { signal } from '../calls';
import { openGoogleHost, type GoogleHost } from '../google-host';
import { privateKey, serviceAccountKey } from '../service-account-key';
import { closeHosts, QUICK } from '../simulated-host';

afterEach(closeHosts);

const WAIT = { signal, timeoutMs: 5_000 };
const SOURCE = { path: 'sa.json', setting: 'api_key_file' };

async function tokenOf(tokens: AccessTokens): Promise<string> {
  const token = await tokens.current(WAIT);
  if (typeof token === 'string') return token;
  throw new Error(JSON.stringify(token));
}

async function issued(host: GoogleHost): Promise<number> {
  return (await host.stats()).calls['tokens.create'] ?? 0;
}

it('signs an assertion with RS256 for the token endpoint of the key', () => {
  const account = parseServiceAccount(serviceAccountKey('k1', 'https://example.test/t'), SOURCE);
  const form = new URLSearchParams(tokenForm(account, 'scope-1', 1_000));
  expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString());
  expect(read(header)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' });
  expect(read(claims)).toEqual({
    iss: 'nightshift@project-1.iam.gserviceaccount.com',
    scope: 'scope-1',
    aud: 'https://example.test/t',
    iat: 1_000,
    exp: 4_600,
  });
  const signed = Buffer.from(`${header}.${claims}`);
  const key = createPublicKey(privateKey('k1'));
  expect(verify('sha256', signed, key, Buffer.from(signature, 'base64url'))).toBe(true);
});

it.each<[unknown, unknown]>([
  [
    { access_token: 't', expires_in: 60 },
    { token: 't', lifetimeMs: 60_000 },
  ],
  [{ access_token: 't' }, { token: 't', lifetimeMs: 0 }],
  [{ access_token: 'a b', expires_in: 60 }, null],
  [{ expires_in: 60 }, null],
  [null, null],
])('reads the answer of a token endpoint: %j', (json, token) => {
  expect(readToken(json)).toEqual(token);
});

it.each<[string, string]>([
  ['{', 'must contain the JSON key of a service account'],
  ['{"type":"authorized_user"}', '(see its member type)'],
  [
    serviceAccountKey('k1', 'x').replace(/BEGIN/g, 'NO'),
    'must contain the JSON key of a service account',
  ],
])('refuses a file that holds no service account, and quotes nothing of it', (text, reason) => {
  const parse = () => parseServiceAccount(text, SOURCE);
  expect(parse).toThrow('api_key_file: sa.json');
  expect(parse).toThrow(reason);
  expect(parse).not.toThrow('nightshift@project-1');
});

it('asks for a token once, and again after it was refused or its key has changed', async () => {
  const host = await openGoogleHost();
  const tokens = host.openTokens();
  const first = await tokenOf(tokens);
  expect([await tokenOf(tokens), await issued(host)]).toEqual([first, 1]);
  tokens.forget('another token');
  expect(await tokenOf(tokens)).toBe(first);
  tokens.forget(first);
  const second = await tokenOf(tokens);
  expect([second === first, await issued(host)]).toEqual([false, 2]);
  host.rotateKey('sk-after');
  expect([await tokenOf(tokens), await issued(host)]).toEqual([
    expect.stringContaining('sk-after'),
    3,
  ]);
});

it('keeps the last key while the file is being written', async () => {
  const host = await openGoogleHost();
  const tokens = host.openTokens();
  const first = await tokenOf(tokens);
  host.writeKey('{"type":');
  expect(await tokenOf(tokens)).toBe(first);
});

it('renews a token before it expires', async () => {
  const host = await openGoogleHost();
  const tokens = host.openTokens();
  const first = await tokenOf(tokens);
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_200_000);
  try {
    expect(await tokenOf(tokens)).toBe(first);
    now.mockReturnValue(Date.now() + 200_000);
    expect(await tokenOf(tokens)).not.toBe(first);
  } finally {
    now.mockRestore();
  }
});

it.each<[string, object, object]>([
  ['a refused key is a refused call', { status: 400 }, { kind: 'answer', status: 401 }],
  ['a wrong address is a refused call', { status: 404 }, { kind: 'answer', status: 401 }],
  ['without an answer nothing was sent', { drop: true }, { kind: 'failure', mayBeSent: false }],
  ['in an outage nothing was sent', { status: 503 }, { kind: 'failure', mayBeSent: false }],
  ['at a limit nothing was sent', { status: 429 }, { kind: 'failure', mayBeSent: false }],
])('sends no call without a token: %s', async (_, fault, end) => {
  const host = await openGoogleHost();
  await host.configure({ faults: [{ call: 'tokens.create', ...fault }] });
  const http = openAuthorizedHttp({ ...QUICK, url: host.api('gcs') }, host.openTokens());
  host.onClose(() => http.close());
  const path = '/storage/v1/b/bucket/o';
  expect(await http.send({ method: 'GET', path, signal })).toMatchObject(end);
  expect((await host.stats()).calls['files.list']).toBeUndefined();
});

it('asks for another token after a call was refused', async () => {
  const host = await openGoogleHost();
  const http = openAuthorizedHttp({ ...QUICK, url: host.api('gcs') }, host.openTokens());
  host.onClose(() => http.close());
  const list = () => http.send({ method: 'GET', path: '/storage/v1/b/bucket/o', signal });
  await list();
  await host.configure({ faults: [{ call: 'files.list', status: 401 }] });
  expect(await list()).toMatchObject({ kind: 'answer', status: 401 });
  expect(await issued(host)).toBe(1);
  await list();
  expect(await issued(host)).toBe(2);
});

it('masks keys and tokens in texts', async () => {
  const host = await openGoogleHost();
  const tokens = host.openTokens();
  const token = await tokenOf(tokens);
  const key = privateKey('sk-before');
  expect(tokens.mask(`a ${token} b ${key} c ${JSON.stringify({ key })}`)).toBe(
    'a *** b *** c {"key":"***"}',
  );
});
