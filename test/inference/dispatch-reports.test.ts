import type { ServerResponse } from 'node:http';
import type { Backend, BackendOutcome } from '../../inference/backend';
import { startTcpProxy } from '../support/tcp-proxy';
import { backendFor, closeAll, expectFailure, never, onClose, serve } from './backend-fixtures';
import { requestOf, until } from './local-server';
import { sendTo } from '../support/promises-of-sending';

afterEach(closeAll);

/** A server that leaves every answer to the test, by request id. */
async function startScripted() {
  const open = new Map<string, ServerResponse>();
  const closed: string[] = [];
  const server = await serve(({ headers }, response) => {
    const id = String(headers['x-request-id']);
    open.set(id, response);
    response.once('close', () => {
      if (!response.writableFinished) closed.push(id);
    });
  });
  const at = async (id: string): Promise<ServerResponse> => {
    await until(() => open.has(id));
    return open.get(id)!;
  };
  return {
    ...{ server, closed, open },
    interim: async (id: string, status: number) => {
      const { socket } = await at(id);
      socket?.write(`HTTP/1.1 ${status} Interim\r\n\r\n`);
    },
    answer: async (id: string) => void (await at(id)).end('{}'),
  };
}

/** Requests of one chunk: they share the signal that aborts when the chunk leaves. */
function chunkOf(backend: Backend) {
  const departure = new AbortController();
  return {
    leave: () => departure.abort(),
    send: (requestId: string): Promise<BackendOutcome> =>
      sendTo(backend, requestOf({ requestId, leaving: departure.signal }), never),
  };
}

/** A backend whose gateway has reported a dispatch, and a request that is dispatched. */
async function startReporting(server: Awaited<ReturnType<typeof startScripted>>, backend: Backend) {
  const { send, leave } = chunkOf(backend);
  const dispatched = send('dispatched');
  await server.interim('dispatched', 102);
  await until(() => backend.reportsDispatch);
  return { send, leave, dispatched };
}

describe('when its chunk leaves, a request to a gateway that reports dispatches', () => {
  it('is closed at once if the gateway holds it, and goes on if it was dispatched', async () => {
    const server = await startScripted();
    const backend = backendFor(server.server.url);
    const { send, leave, dispatched } = await startReporting(server, backend);
    const held = send('held');
    await until(() => server.open.has('held'));
    leave();
    expectFailure(await held, 'held');
    await until(() => server.closed.length === 1);
    expect(server.closed).toEqual(['held']);
    await server.answer('dispatched');
    expect(await dispatched).toMatchObject({ kind: 'answer', status: 200 });
  });

  it('is not sent any more', async () => {
    const server = await startScripted();
    const backend = backendFor(server.server.url);
    const { send, leave } = await startReporting(server, backend);
    leave();
    expectFailure(await send('late'), 'held');
    expect(server.server.received).toHaveLength(1);
    await server.answer('dispatched');
  });

  it('is told from others behind a path that only passes bytes', async () => {
    const server = await startScripted();
    const proxy = await startTcpProxy(server.server.port);
    onClose(() => proxy.close());
    const backend = backendFor(`http://127.0.0.1:${proxy.port}`);
    const { send, leave, dispatched } = await startReporting(server, backend);
    const held = send('held');
    await until(() => server.open.has('held'));
    leave();
    expectFailure(await held, 'held');
    await server.answer('dispatched');
    expect(await dispatched).toMatchObject({ kind: 'answer' });
  });
});

describe('when its chunk leaves, a request goes on', () => {
  it('if its server has reported nothing, or only sent other interim answers', async () => {
    const server = await startScripted();
    const backend = backendFor(server.server.url);
    const { send, leave } = chunkOf(backend);
    const [plain, hinted] = [send('plain'), send('hinted')];
    await server.interim('hinted', 103);
    await server.answer('hinted');
    expect((await hinted).kind).toBe('answer');
    expect(backend.reportsDispatch).toBe(false);
    leave();
    await server.answer('plain');
    expect((await plain).kind).toBe('answer');
  });

  it('if the last success came without a report, because another server answers now', async () => {
    const server = await startScripted();
    const backend = backendFor(server.server.url);
    const { send, leave, dispatched } = await startReporting(server, backend);
    await server.answer('dispatched');
    await dispatched;
    expect(backend.reportsDispatch).toBe(true);
    const silent = [send('first'), send('second')];
    await server.answer('first');
    await silent[0];
    expect(backend.reportsDispatch).toBe(false);
    leave();
    await server.answer('second');
    expect(await silent[1]).toMatchObject({ kind: 'answer' });
  });
});

describe('the time limit of a request', () => {
  const LIMIT_MS = 300;
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  /** Sends a request and has its dispatch reported within the limit. Other timers tell when it ends. */
  async function reportedLate(leaves: boolean) {
    const server = await startScripted();
    const backend = backendFor(server.server.url, { request_timeout: LIMIT_MS });
    const { send, leave } = chunkOf(backend);
    const running = send('slow');
    const fromSend = pause(LIMIT_MS + 20).then(() => 'later');
    await until(() => server.open.has('slow'));
    await pause(LIMIT_MS / 3);
    if (leaves) leave();
    await server.interim('slow', 102);
    // The limit begins anew when the report is read, not when it is written.
    await until(() => backend.reportsDispatch);
    const fromReport = pause(LIMIT_MS + 20).then(() => 'later');
    return { server, running: running.then(() => 'ended'), outcome: running, fromSend, fromReport };
  }

  it('begins anew with the first report of its dispatch, and only with that', async () => {
    const { server, running, outcome, fromSend, fromReport } = await reportedLate(false);
    expect(await Promise.race([running, fromSend])).toBe('later');
    await server.interim('slow', 102);
    expect(await Promise.race([running, fromReport])).toBe('ended');
    expectFailure(await outcome, 'timeout');
  });

  it('ends a request that the gateway holds as held, and one that it answers as timed out', async () => {
    const server = await startScripted();
    const backend = backendFor(server.server.url, { request_timeout: LIMIT_MS });
    const { send } = await startReporting(server, backend);
    const [held, answered] = [send('held'), send('answered')];
    await until(() => server.open.has('answered'));
    server.open.get('answered')?.write('a piece');
    expectFailure(await held, 'held');
    expectFailure(await answered, 'timeout');
    await until(() => server.closed.includes('held'));
  });

  it('does not begin anew while its chunk leaves', async () => {
    const { running, outcome, fromSend } = await reportedLate(true);
    expect(await Promise.race([running, fromSend])).toBe('ended');
    expectFailure(await outcome, 'timeout');
  });
});
