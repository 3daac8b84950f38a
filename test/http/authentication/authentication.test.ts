/** With `auth.mode: api_key` the server asks an authenticator for the owner of a key. */
import { openTestServer, type TestServer } from '../../support/http-server';

let server: TestServer;
const asked: string[] = [];
beforeAll(async () => {
  server = await openTestServer({
    auth: { mode: 'api_key' },
    authenticator: {
      authenticate: async (key) => {
        asked.push(key);
        return key === 'good' ? { tenant: 'Zoë' } : null;
      },
    },
  });
});
afterAll(() => server.close());

const ask = (headers: Record<string, string>, url = '/v1/items') =>
  server.app.inject({ method: 'GET', url, headers });

it('serves a request as the owner of its key', async () => {
  const { statusCode, headers } = await ask({ authorization: 'Bearer good' });
  expect(statusCode).toBe(200);
  expect(Buffer.from(String(headers['openai-organization']), 'latin1').toString()).toBe('Zoë');
});

it('answers 401 to an unknown key without repeating it', async () => {
  const answer = await ask({ authorization: 'Bearer wrong' });
  expect(answer.statusCode).toBe(401);
  expect(answer.headers['www-authenticate']).toBe('Bearer');
  expect(answer.body).toContain('invalid_api_key');
  expect(answer.body).not.toContain('wrong');
});

it('looks up no key for probes and for requests without a key', async () => {
  asked.length = 0;
  expect((await ask({}, '/health')).statusCode).toBe(200);
  expect((await ask({})).statusCode).toBe(401);
  expect(asked).toEqual([]);
});
