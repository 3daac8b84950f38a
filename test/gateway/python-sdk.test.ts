import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { findPython } from '../e2e/python-client';
import { until } from '../support/until';
import {
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  type TestGateway,
} from './gateway-fixtures';

const WAIT_MS = 20_000;
const python = findPython();
const children: ChildProcess[] = [];

afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));
afterEach(closeAll);

/** Starts a call of the client; what it printed, parsed, when it has. */
function call(gateway: TestGateway, name: 'stream' | 'abort' | 'retry'): Promise<unknown> {
  const env = { ...process.env, OPENAI_BASE_URL: `${gateway.url}/v1`, OPENAI_API_KEY: 'unused' };
  const child = spawn(python ?? '', [join(__dirname, 'sdk.py'), name], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const isDone = () => said.endsWith('\n') || child.exitCode !== null;
  return until(isDone, WAIT_MS, `the ${name} of the client`).then(() => JSON.parse(said));
}

const event = (content: string): string =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] })}\n\n`;

(python === null ? describe.skip : describe)("OpenAI's client for Python", () => {
  it('gets a stream', async () => {
    const backend = await startBackend((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${event('one')}${event('two')}data: [DONE]\n\n`);
    });
    const gateway = await startGateway([backend]);
    expect(await call(gateway, 'stream')).toEqual(['one', 'two']);
  });

  it('frees the backend when it closes a stream', async () => {
    const backend = await startBackend();
    const gateway = await startGateway([backend]);
    const got = call(gateway, 'abort');
    await until(() => backend.held.length === 1, WAIT_MS, 'a request');
    const { response } = backend.held[0]!;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(event('one'));
    expect(await got).toEqual(['one']);
    await until(() => response.destroyed, 5_000, 'an end at the backend', 5);
    await until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'no stock', 5);
  });

  it('tries again after a request was dropped', async () => {
    const backend = await startBackend();
    const gateway = await startGateway([backend], {
      ...ONE_IN_FLIGHT,
      fair_request_queue: { queue_ttl: '100ms' },
    });
    const first = call(gateway, 'retry');
    await until(() => backend.held.length === 1, WAIT_MS, 'a request');
    const second = call(gateway, 'retry');
    const dropped =
      'gateway_dropped_total{band="standard",code="queue_ttl_expired",process="gateway"}';
    await until(async () => (await gateway.metric(dropped)) === 1, WAIT_MS, 'a drop', 5);
    backend.respond({ id: 'a' });
    expect(await first).toEqual(['a']);
    await until(() => backend.held.length === 1, WAIT_MS, 'the second try');
    backend.respond({ id: 'b' });
    expect(await second).toEqual(['b']);
  });
});
