import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import { packageRoot } from '../../../platform/package-root';
import { ScriptedBackend } from '../../gateway/black-box/scripted-backend';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { startScrapes } from './scrapes';
import { isSelected, writeRecording } from './write-recording';

const KIB = 1_024;
/** Two bodies of the largest size use all bytes. */
const BYTES = { max_body_bytes: '64KiB', sheddable_bytes: '64KiB', queue_bytes: '128KiB' };

it('records a gateway whose model servers and clients misbehave', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'nightshift-record-'));
  const backend = await ScriptedBackend.start();
  const [port, observabilityPort] = [await freePort(), await freePort()];
  const file = path.join(folder, 'gateway.yaml');
  writeFileSync(file, settings(backend.url, port, observabilityPort));
  const users = startUsers(port, backend);
  let gateway = start(file);
  await isUp(observabilityPort);
  const scrapes = startScrapes(
    [
      {
        job: 'nightshift-gateway',
        instance: 'gateway-1',
        url: () => `http://127.0.0.1:${observabilityPort}/metrics`,
      },
    ],
    isSelected(),
  );
  const phase = async (name: string, steps: number, inject?: () => unknown): Promise<void> => {
    process.stderr.write(`recording: ${name}, ${steps} s\n`);
    scrapes.begin(name);
    await inject?.();
    await scrapes.until(steps);
  };
  /** Each life is scraped at least once. */
  const restart = async (): Promise<void> => {
    gateway.kill('SIGKILL');
    gateway = start(file);
    await isUp(observabilityPort);
    await pause(1_500);
  };

  await phase('healthy', 66);
  await phase('the only model server refuses connections', 10, () => backend.close());
  await phase('it listens again', 14, () => backend.listen());
  await phase('streams begin late', 10, () => (users.delayMs = 800));
  await phase('streams begin at once', 10, () => (users.delayMs = 80));
  await phase('a third of the answers breaks off', 9, () => (users.cutShare = 3));
  await phase('answers are whole', 10, () => (users.cutShare = 0));
  const slow: Socket[] = [];
  await phase('slow senders use all bytes', 6, () => slow.push(sender(port), sender(port)));
  await phase('slow senders are gone', 12, () => slow.forEach((socket) => socket.destroy()));
  await phase('users want more than the model server can do', 10, () => {
    users.delayMs = 2_000;
    users.everyMs = 150;
  });
  await phase('a flood of users', 16, () => (users.everyMs = 40));
  await phase('users want less again', 16, () => {
    users.delayMs = 80;
    users.everyMs = 200;
  });
  await phase('the gateway is gone', 6, () => gateway.kill('SIGKILL'));
  await phase('it is killed three times', 18, async () => {
    for (let i = 0; i < 3; i++) await restart();
  });
  writeRecording('gateway', await scrapes.end());
  users.end();
  gateway.kill('SIGKILL');
  await backend.close();
  rmSync(folder, { recursive: true });
});

function settings(url: string, port: number, observability_port: number): string {
  return stringify({
    log: { level: 'error' },
    gateway: {
      ...{ port, observability_port, ...BYTES },
      pools: { main: { models: ['m'], backends: [{ url }], probe: { interval: '200ms' } } },
      fair_request_queue: {
        ...{ total_capacity: 60, flow_capacity: 60, sheddable_capacity: 50 },
        ...{ queue_ttl: '60s', no_backend_ttl: '2s' },
      },
      adaptive: { initial: 8, min: 8, max: 8 },
    },
  });
}

/** Waits until a scrape of the gateway gets an answer. */
async function isUp(port: number): Promise<void> {
  const answers = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).ok;
  await until(() => answers().catch(() => false), 20_000, 'the gateway', 50);
}

function start(file: string): ChildProcess {
  const main = path.join(packageRoot(), 'dist', 'cli', 'main.js');
  return spawn(process.execPath, [main, 'gateway', '--config', file], { stdio: 'inherit' });
}

/** Streams of users, and how the model server answers them. */
function startUsers(port: number, backend: ScriptedBackend) {
  const users = {
    everyMs: 200,
    /** Until the first byte. */
    delayMs: 80,
    /** Each so manieth answer breaks off; 0 for none. */
    cutShare: 0,
    isOver: false,
    end: (): void => void (users.isOver = true),
  };
  let answers = 0;
  backend.script = ({ response }) => {
    const isCut = users.cutShare > 0 && ++answers % users.cutShare === 0;
    setTimeout(() => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"choices":[]}\n\n');
      if (isCut) setTimeout(() => response.destroy(), 20);
      else response.end('data: [DONE]\n\n');
    }, users.delayMs);
  };
  const url = `http://127.0.0.1:${port}/v1/chat/completions`;
  const body = JSON.stringify({ model: 'm', messages: [], stream: true });
  const headers = { 'content-type': 'application/json' };
  const loop = async (): Promise<void> => {
    while (!users.isOver) {
      void fetch(url, { method: 'POST', headers, body })
        .then((answer) => answer.text())
        .catch(() => undefined);
      await pause(users.everyMs);
    }
  };
  void loop();
  return users;
}

/** A client that has sent more than half of a large body, and sends no more. */
function sender(port: number): Socket {
  const bytes = 64 * KIB;
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.write(`${head}content-length: ${bytes}\r\n\r\n${'x'.repeat(40 * KIB)}`);
  return socket;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
