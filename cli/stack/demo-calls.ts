import type OpenAI from 'openai';
import { processEnvironment } from '../../platform/config';
import { openOpenAi } from '../batches/openai-client';
import type { DemoAccess } from './demo-access';

/** Calls of a user, one after the other, while the batch of the demo runs. */
export interface DemoCalls {
  /** Waits for the end of the last call. @throws the error of a call that failed */
  stop(): Promise<DemoCallTimes>;
}

/** How soon the calls were answered. */
export interface DemoCallTimes {
  readonly calls: number;
  /** Median time from the call to the first word of its answer, ms. */
  readonly firstWordMs: number;
}

const MODEL = 'nightshift-small';
const CALL_TIMEOUT_MS = 30_000;

/** Starts streaming chat completions from `gateway`, the base URL of a gateway. */
export function startDemoCalls(gateway: string, { key, headers }: DemoAccess): DemoCalls {
  const client = openOpenAi({
    ...{ baseUrl: gateway, apiKey: key, headers, timeoutMs: CALL_TIMEOUT_MS },
    ...{ env: processEnvironment(), usesEnvironment: false },
  });
  let isStopped = false;
  const calling = callUntil(client, () => isStopped);
  // Reported by `stop`, which may come later.
  calling.catch(() => undefined);
  return {
    stop: () => {
      isStopped = true;
      return calling;
    },
  };
}

async function callUntil(client: OpenAI, isStopped: () => boolean): Promise<DemoCallTimes> {
  const times: number[] = [];
  do times.push(await firstWordMs(client, `Question ${times.length + 1}`));
  while (!isStopped());
  times.sort((a, b) => a - b);
  return { calls: times.length, firstWordMs: times[times.length >> 1] ?? 0 };
}

/** Reads the whole answer, and returns when its first word came. */
async function firstWordMs(client: OpenAI, content: string): Promise<number> {
  const startedAtMs = performance.now();
  const messages = [{ role: 'user' as const, content }];
  const stream = await client.chat.completions.create({ model: MODEL, messages, stream: true });
  let firstMs: number | null = null;
  for await (const { choices } of stream) {
    if (choices[0]?.delta.content) firstMs ??= performance.now() - startedAtMs;
  }
  if (firstMs === null) throw new Error('an interactive call got an answer without words');
  return firstMs;
}
