import { startSimulator, type Simulator, type SimulatorOptions } from '../../simulator/main';

const running: Simulator[] = [];

/** Starts a simulator without latency on a free port and returns its URL. {@link stopSimulators} ends it. */
export async function start(options: Partial<SimulatorOptions> = {}): Promise<string> {
  const simulator = await startSimulator({ port: 0, latencyMs: 0, latencyJitterMs: 0, ...options });
  running.push(simulator);
  return simulator.url;
}

/** Ends all simulators of this test file; for `afterEach`. */
export async function stopSimulators(): Promise<void> {
  for (const simulator of running.splice(0)) await simulator.close();
}

/** A chat request with a system prompt of one cacheable block. */
export function chat(extra: Record<string, unknown> = {}): Record<string, unknown> {
  const system = 'You are a helpful assistant that answers in very short sentences.';
  return {
    model: 'm',
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: 'hello' },
    ],
    ...extra,
  };
}

export function post(
  url: string,
  path: string,
  body: unknown,
  { requestId, signal }: { requestId?: string; signal?: AbortSignal } = {},
): Promise<Response> {
  const headers = { ...(requestId !== undefined && { 'x-request-id': requestId }) };
  const init = { method: 'POST', body: JSON.stringify(body), headers };
  return fetch(url + path, { ...init, ...(signal !== undefined && { signal }) });
}

export async function get(url: string, path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(url + path)).json()) as Record<string, unknown>;
}

export function put(url: string, settings: unknown): Promise<Response> {
  return fetch(`${url}/simulator/config`, { method: 'PUT', body: JSON.stringify(settings) });
}

/** Changes the settings of the simulated providers. */
export async function configureProviders(url: string, change: object): Promise<void> {
  const init = { method: 'PUT', body: JSON.stringify(change) };
  const answer = await fetch(`${url}/simulator/providers/config`, init);
  if (!answer.ok) throw new Error(await answer.text());
}

/** The value of a series on the metrics page, by the beginning of its line. */
export async function metric(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(series));
  if (line === undefined) throw new Error(`no ${series} in:\n${text}`);
  return Number(line.slice(line.lastIndexOf(' ')));
}
