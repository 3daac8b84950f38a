import { until } from '../../support/until';
import { closeOutside, dropped, Outside, poolOf, refusal, ScriptedBackend } from './outside';

let gateway: Outside;
const backends: Record<string, ScriptedBackend> = {};

beforeAll(async () => {
  for (const name of ['gone', 'lost', 'late', 'stalled', 'refuses', 'takes', 'm']) {
    backends[name] = await ScriptedBackend.start();
  }
  const { gone, lost, late, stalled, refuses, takes, m } = backends;
  // The first probe has time on a busy machine, because the second one would come too late.
  const rarely = { probe: { interval: '60s', timeout: '30s' } };
  gateway = await Outside.start({
    gateway: {
      max_body_bytes: '64KiB',
      pools: {
        ...poolOf('gone', [gone!], rarely),
        ...poolOf('lost', [lost!]),
        ...poolOf('late', [late!], { request_timeout: '400ms', stall_timeout: '300ms' }),
        ...poolOf('stalled', [stalled!], { stall_timeout: '300ms' }),
        ...poolOf('two', [refuses!, takes!]),
        ...poolOf('m', [m!]),
      },
    },
  });
}, 60_000);
afterAll(closeOutside);

/** Lets a backend answer everything with a status. */
const answering = (name: string, status: number, fields: Record<string, string> = {}) => {
  backends[name]!.script = ({ response, name: id }) => {
    response
      .writeHead(status, { 'content-type': 'application/json', ...fields })
      .end(`"${name} ${id}"`);
  };
};

describe('a backend', () => {
  it('that refuses the connection leaves a request unserved: 502, and it may be sent again', async () => {
    await backends['gone']!.close();
    const asked = gateway.ask('gone', 'unreachable');
    expect(await refusal(asked)).toEqual(dropped('backend_unreachable', null, 502));
    expect((await asked.answer).headers['retry-after']).toBe('1');
  });

  it('that breaks the connection may have worked: 502 without a drop', async () => {
    backends['lost']!.script = ({ request }) => request.socket.destroy();
    const answer = await refusal(gateway.ask('lost', 'lost'));
    expect(answer).toMatchObject({
      status: 502,
      code: 'backend_lost',
      dropped: null,
      reason: null,
    });
    expect(backends['lost']!.came).toEqual(['lost']);
  });

  it('that does not answer in request_timeout gets 504 without a drop', async () => {
    const asked = gateway.ask('late', 'late');
    const answer = await refusal(asked);
    expect(answer).toMatchObject({
      status: 504,
      code: 'backend_timeout',
      dropped: null,
      reason: null,
    });
    expect((await asked.answer).afterMs).toBeGreaterThanOrEqual(400);
    await gateway.has('late', 0, 0);
    expect(backends['late']!.aborted).toEqual(['late']);
  });

  it('that stops in an answer for stall_timeout has it cut', async () => {
    backends['stalled']!.script = ({ response }) => response.writeHead(200).write('begin');
    const asked = gateway.ask('stalled', 'stalled');
    await expect(asked.answer).rejects.toThrow();
    expect(asked.text()).toBe('begin');
    await gateway.has('stalled', 0, 0);
  });

  it('that is full has its requests taken by another one, each once', async () => {
    answering('refuses', 429);
    answering('takes', 200);
    for (let i = 0; i < 5; i++) {
      expect((await gateway.ask('two', `r${i}`).answer).text).toBe(`"takes r${i}"`);
    }
    const { came } = backends['refuses']!;
    expect(new Set(came).size).toBe(came.length);
    expect(backends['takes']!.came).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
  });

  it('gives its refusal to the client if all are full, whatever it claims about drops', async () => {
    for (const name of ['refuses', 'takes']) {
      answering(name, 503, { 'retry-after': '7', 'x-nightshift-dropped': 'evicted' });
    }
    const { status, headers, text } = await gateway.ask('two', 'all').answer;
    expect(status).toBe(503);
    expect(text).toMatch(/"(refuses|takes) all"/);
    expect(headers['retry-after']).toBe('7');
    expect(headers).not.toHaveProperty('x-nightshift-dropped');
  });

  it.each([400, 404, 500])('has its own %s passed on', async (status) => {
    answering('m', status);
    const { status: passed, text } = await gateway.ask('m', `s${status}`).answer;
    expect([passed, text]).toEqual([status, `"m s${status}"`]);
  });
});

describe('a request', () => {
  const bodies: readonly (readonly [string, string, number])[] = [
    ['that is no JSON', '{"model":"m"', 400],
    ['that is no object', '["m"]', 400],
    ['with something after its end', '{"model":"m"}x', 400],
    ['without a model', '{"messages":[]}', 400],
    ['whose model is no text', '{"model":7}', 400],
    ['that is not UTF-8', '{"model":"m","x":"\u00ff"}', 400],
    ['that is nested deeply', `{"model":"m","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, 400],
    ['for an unknown model', '{"model":"nobody"}', 404],
    ['beyond the largest body', `{"model":"m","x":"${'x'.repeat(65_536)}"}`, 413],
    ['without a body', '', 400],
  ];
  it.each(bodies)(
    '%s is refused, not dropped, and reaches no backend',
    async (_what, body, status) => {
      const before = backends['m']!.came.length;
      const bytes = Buffer.from(body, 'latin1');
      expect(await refusal(gateway.ask('m', 'bad', {}, bytes))).toMatchObject({
        ...{ status, dropped: null, reason: null, mayRetry: null },
      });
      expect(backends['m']!.came.length).toBe(before);
    },
  );

  const HOST = 'host: localhost\r\n';
  const TYPE = 'content-type: application/json\r\n';
  const heads: readonly (readonly [string, string, number])[] = [
    ['two lengths', `${HOST}${TYPE}content-length: 13\r\ncontent-length: 5\r\n`, 400],
    [
      'a length and chunks',
      `${HOST}${TYPE}content-length: 13\r\ntransfer-encoding: chunked\r\n`,
      400,
    ],
    ['a length that is none', `${HOST}${TYPE}content-length: 0x0d\r\n`, 400],
    ['a NUL', `${HOST}${TYPE}x-a: a\0b\r\ncontent-length: 13\r\n`, 400],
    ['a folded field', `${HOST}${TYPE}x-a: a\r\n b\r\ncontent-length: 13\r\n`, 400],
    ['no host', `${TYPE}content-length: 13\r\n`, 400],
    ['too many bytes', `${HOST}${TYPE}x-a: ${'a'.repeat(16_384)}\r\ncontent-length: 13\r\n`, 431],
    ['the host of a rebound name', `host: evil.example\r\n${TYPE}content-length: 13\r\n`, 403],
    [
      'a foreign origin',
      `${HOST}${TYPE}origin: https://evil.example\r\ncontent-length: 13\r\n`,
      403,
    ],
    [
      'a page of another site',
      `${HOST}${TYPE}sec-fetch-site: cross-site\r\ncontent-length: 13\r\n`,
      403,
    ],
    ['a form of a page', `${HOST}content-type: text/plain\r\ncontent-length: 13\r\n`, 415],
  ];
  it.each(heads)('whose head has %s is refused', async (_what, fields, status) => {
    const before = backends['m']!.came.length;
    const wire = gateway.wire(`POST /v1/chat/completions HTTP/1.1\r\n${fields}\r\n{"model":"m"}`);
    expect(await wire.status()).toBe(status);
    expect(backends['m']!.came.length).toBe(before);
  });

  it('with 1,100 fields reaches the backend with all of them', async () => {
    const fields = Array.from({ length: 1_100 }, (_, i) => `f${i}: ${i}\r\n`).join('');
    answering('m', 200);
    const before = backends['m']!.came.length;
    let last: unknown;
    backends['m']!.script = ({ request, response }) => {
      last = request.headers['f1099'];
      response.end('{}');
    };
    const wire = gateway.wire(
      `POST /v1/chat/completions HTTP/1.1\r\n${HOST}${TYPE}${fields}content-length: 13\r\n\r\n{"model":"m"}`,
    );
    expect(await wire.status()).toBe(200);
    expect(backends['m']!.came.length).toBe(before + 1);
    expect(last).toBe('1099');
  });

  it('whose target names a host goes to the backend with path and query only', async () => {
    let url: unknown;
    backends['m']!.script = ({ request, response }) => {
      url = request.url;
      response.end('{}');
    };
    const target = 'http://elsewhere.example/v1/chat/completions?a=%2F';
    const wire = gateway.wire(
      `POST ${target} HTTP/1.1\r\n${HOST}${TYPE}content-length: 13\r\n\r\n{"model":"m"}`,
    );
    expect(await wire.status()).toBe(200);
    expect(url).toBe('/v1/chat/completions?a=%2F');
  });

  it('that waits for 100 Continue gets it', async () => {
    answering('m', 200);
    const wire = gateway.wire(
      `POST /v1/chat/completions HTTP/1.1\r\n${HOST}${TYPE}expect: 100-continue\r\ncontent-length: 13\r\n\r\n`,
    );
    expect(await wire.status()).toBe(100);
    wire.socket.write('{"model":"m"}');
    await wire.reads('the answer', (text) => text.includes('HTTP/1.1 200'));
  });
});

describe('routes', () => {
  it.each(['chat/completions', 'completions', 'embeddings', 'responses', 'moderations'])(
    'pass POST /v1/%s on to the same path',
    async (path) => {
      let url: unknown;
      backends['m']!.script = ({ request, response }) => {
        url = request.url;
        response.end('{}');
      };
      const answer = await fetch(`${gateway.url}/v1/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"model":"m"}',
      });
      expect([answer.status, url]).toEqual([200, `/v1/${path}`]);
    },
  );

  it.each(['POST /v1/files', 'GET /v1/batches', 'GET /admin/flow', 'GET /metrics'])(
    'do not include %s',
    async (route) => {
      const [method, path] = route.split(' ');
      expect((await fetch(`${gateway.url}${path}`, { method: method! })).status).toBe(404);
    },
  );

  it('list the models of the pools', async () => {
    const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as {
      data: { id: string }[];
    };
    expect(data.map(({ id }) => id).sort()).toEqual([
      'gone',
      'late',
      'lost',
      'm',
      'stalled',
      'two',
    ]);
  });

  it('say that the gateway is ready, and nothing is left in flight', async () => {
    expect((await fetch(`${gateway.adminUrl}/ready`)).status).toBe(200);
    await until(async () => (await gateway.pool('m')).stock.requests === 0, 5_000, 'an idle pool');
  });
});
