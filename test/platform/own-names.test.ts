import { configSchema } from '../../platform/config-schema';
import { apiOriginRules, originCheck } from '../../platform/own-names';

const NONE = { origin: undefined, fetchSite: undefined };

function check(settings: { api?: object; auth?: object } = {}, listenHost = '127.0.0.1') {
  return originCheck(apiOriginRules(configSchema.parse(settings)), listenHost);
}

describe('the names of a server without authentication', () => {
  it.each([
    ...['localhost', 'LOCALHOST:8000', 'localhost.', '127.0.0.1', '127.0.0.1:9', '127.9.8.7'],
    ...['[::1]', '[::1]:8000'],
  ])('include %s on loopback', (host) => {
    expect(check()({ ...NONE, host })).toBeNull();
  });

  it.each([
    ...['evil.example', 'evil.example:8000', '127.0.0.1.evil.example', 'localhost.evil.example'],
    ...['192.168.0.1', '0.0.0.0', '', 'localhost:8000@evil.example', '[::1', 'a b', '127.0.0.1:x'],
  ])('do not include %j on loopback', (host) => {
    expect(check()({ ...NONE, host })).toContain('api.allowed_hosts');
  });

  it('include the listening address and what the operator lists', () => {
    const listed = check({ api: { allowed_hosts: ['Batch.internal'] } }, 'node-7.internal');
    for (const host of ['batch.internal:80', 'node-7.internal', 'localhost']) {
      expect(listed({ ...NONE, host })).toBeNull();
    }
    expect(listed({ ...NONE, host: 'other.internal' })).not.toBeNull();
  });

  it('include every IP address, but no other name, if others can reach the port', () => {
    const open = check({}, '0.0.0.0');
    for (const host of ['10.0.0.7:8000', '[fd00::7]:8000', 'localhost']) {
      expect(open({ ...NONE, host })).toBeNull();
    }
    expect(open({ ...NONE, host: 'evil.example' })).not.toBeNull();
  });

  it('include all names if the operator lists *', () => {
    const any = check({ api: { allowed_hosts: ['*'] } });
    expect(any({ ...NONE, host: 'evil.example' })).toBeNull();
  });

  it('are not required of a request without a Host header', () => {
    expect(check()({ ...NONE, host: undefined })).toBeNull();
  });
});

describe('the names of a server with authentication', () => {
  it.each(['header', 'api_key'])('are not checked in mode %s unless some are listed', (mode) => {
    const request = {
      host: 'evil.example',
      origin: 'https://evil.example',
      fetchSite: 'cross-site',
    };
    expect(check({ auth: { mode } })(request)).toBeNull();
    const listed = check({ auth: { mode }, api: { allowed_hosts: ['batch.example'] } });
    expect(listed(request)).toContain('"evil.example" is not a name of this server');
    expect(listed({ ...request, host: 'batch.example' })).toBeNull();
  });
});

describe('a web page', () => {
  const host = 'localhost:8000';

  it.each(['cross-site', 'Cross-Site', 'same-origin, cross-site'])(
    'of another site is refused: %s',
    (fetchSite) => {
      expect(check()({ host, origin: undefined, fetchSite })).toContain('another site');
    },
  );

  it.each(['http://localhost:8000', 'https://LOCALHOST:8000'])(
    'of this server itself is served: %s',
    (origin) => {
      expect(check()({ host, origin, fetchSite: 'same-origin' })).toBeNull();
    },
  );

  it.each([
    ...['https://evil.example', 'null', '', 'http://localhost:3000', 'http://localhost'],
    ...['http://localhost:8000.evil.example', 'http://localhost:8000, http://evil.example'],
  ])('of another origin is refused: %j', (origin) => {
    expect(check()({ host, origin, fetchSite: undefined })).toContain('auth.mode none');
  });

  it('of a listed host is served', () => {
    const listed = check({ api: { allowed_hosts: ['batch.example'] } });
    expect(listed({ host, origin: 'https://batch.example', fetchSite: undefined })).toBeNull();
  });

  it('of another site is refused, even without an origin', () => {
    const ask = (fetchSite: string) => check()({ host, origin: undefined, fetchSite });
    expect(ask('Cross-Site')).toContain('Sec-Fetch-Site');
    for (const site of ['same-origin', 'same-site', 'none']) expect(ask(site)).toBeNull();
  });
});

it('repeats only the start of a long host name in the error', () => {
  expect(check()({ ...NONE, host: `${'x'.repeat(10_000)}` })!.length).toBeLessThan(400);
});
