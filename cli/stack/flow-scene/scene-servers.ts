import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NightshiftError } from '../../../core/errors';
import { createPortPicker } from '../../../embedded/locks/ports';
import { executable } from '../../../embedded/node-component';
import { ENGINE_FLAGS, ENGINES } from './scene-plan';

/** The processes of the scene. */
export interface SceneServers {
  /** Base URLs. */
  readonly engines: readonly string[];
  readonly gateway: string;
  /** Base URL of the gateway's observability port. */
  readonly observability: string;
  /** With it, a request to the gateway is a line of a batch. */
  readonly workerToken: string;
  /** Process ids of engines and gateway. */
  readonly pids: readonly number[];
  /** Ends all processes. */
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';
const FIRST_PORT = 18_400;
const READY_TIMEOUT_MS = 20_000;
const POLL_MS = 50;
const KILL_AFTER_MS = 2_000;

/** Starts the engines and a gateway in front of them. @throws unavailable if one of them does not start */
export async function startSceneServers(signal: AbortSignal): Promise<SceneServers> {
  const folder = mkdtempSync(join(tmpdir(), 'nightshift-scene-'));
  const children: ChildProcess[] = [];
  const picker = createPortPicker();
  const stop = async (): Promise<void> => {
    await Promise.all(children.map(end));
    picker.release();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const ports: number[] = [];
    for (let i = 0; i < ENGINES + 2; i++) ports.push(await picker.next(HOST, FIRST_PORT));
    const [gatewayPort = 0, observabilityPort = 0, ...enginePorts] = ports;
    const engines = enginePorts.map((port) => `http://${HOST}:${port}`);
    for (const port of enginePorts) {
      children.push(start(['simulator', '--port', String(port), ...ENGINE_FLAGS]));
    }
    const workerToken = randomBytes(16).toString('hex');
    const config = writeConfig(folder, { engines, workerToken, gatewayPort, observabilityPort });
    children.push(start(['gateway', '--config', config]));
    const observability = `http://${HOST}:${observabilityPort}`;
    await ready(`${observability}/ready`, { children, signal });
    const pids = children.map(({ pid }) => pid ?? 0);
    const gateway = `http://${HOST}:${gatewayPort}`;
    return { engines, gateway, observability, workerToken, pids, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface GatewayPlaces {
  readonly engines: readonly string[];
  readonly workerToken: string;
  readonly gatewayPort: number;
  readonly observabilityPort: number;
}

/** JSON is YAML. */
function writeConfig(folder: string, places: GatewayPlaces): string {
  const tokenFile = join(folder, 'worker-token');
  writeFileSync(tokenFile, places.workerToken, { mode: 0o600 });
  const config = join(folder, 'gateway.yaml');
  const gateway = {
    port: places.gatewayPort,
    observability_port: places.observabilityPort,
    worker_token_file: tokenFile,
    pools: { engines: { models: ['*'], backends: places.engines.map((url) => ({ url })) } },
  };
  writeFileSync(config, JSON.stringify({ log: { level: 'warn' }, gateway }), { mode: 0o600 });
  return config;
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [executable(), ...args], { stdio: 'ignore' });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
  await exited;
  clearTimeout(timer);
}

interface Starting {
  readonly children: readonly ChildProcess[];
  readonly signal: AbortSignal;
}

async function ready(url: string, { children, signal }: Starting): Promise<void> {
  const untilMs = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < untilMs) {
    signal.throwIfAborted();
    const isOver = children.some(({ exitCode, pid }) => exitCode !== null || pid === undefined);
    if (isOver) break;
    const response = await fetch(url, { signal }).catch(() => null);
    await response?.arrayBuffer().catch(() => undefined);
    if (response?.ok) return;
    await sleep(POLL_MS, undefined, { signal });
  }
  throw new NightshiftError(
    'unavailable',
    'The engines or the gateway of the scene did not start. Run nightshift gateway to see why.',
  );
}
