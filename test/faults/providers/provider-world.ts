import { setTimeout as delay } from 'node:timers/promises';
import { startSimulator, type Simulator } from '../../../simulator/main';
import type { TestStack } from '../../support/stack';
import { startStack } from '../../support/stack';
import { faultsParts, type FaultsParts } from '../round/parts';
import { ADAPTERS, ENVIRONMENT, FAST, type AdapterUnderTest } from './adapters';
import type { ProviderPlan } from './plan';

/** One adapter with a simulated provider of its own. */
export interface PlayedProvider {
  readonly adapter: AdapterUnderTest;
  configure(plan: ProviderPlan): Promise<void>;
  /** Jobs by our key. More than one job of a key was paid twice. */
  creates(): Promise<Readonly<Record<string, number>>>;
}

/** A stack that delegates one model to each provider. */
export interface ProviderWorld {
  readonly providers: readonly PlayedProvider[];
  readonly parts: FaultsParts;
  stack(): TestStack;
  close(): Promise<void>;
}

const CALM: ProviderPlan = {
  ...{ running_ms: 0, list_lag_ms: 0, results_lag_ms: 0, max_page: 100 },
  ...{ ends: ['completed'], results: [], faults: [] },
};
const CALLS = [
  'files.create',
  'batches.create',
  'batches.list',
  'batches.retrieve',
  'files.content',
];
/** Lines of a job, so that a batch has several. */
const MAX_LINES = 15;

export async function openProviderWorld(): Promise<ProviderWorld> {
  const simulators = await Promise.all(ADAPTERS.map(() => startSimulator({ port: 0 })));
  const providers = ADAPTERS.map((adapter, i) => played(adapter, simulators[i]!));
  const entries = ADAPTERS.map((adapter, i) => [adapter.name, entryOf(adapter, simulators[i]!)]);
  let stack = await startStack({
    processes: 1,
    store: 'filesystem',
    env: ENVIRONMENT,
    config: {
      providers: Object.fromEntries(entries) as Record<string, unknown>,
      delegates: Object.fromEntries(ADAPTERS.map(({ name }) => [name, { provider: name }])),
      worker: { heartbeat_timeout: '3s' },
    },
  });
  const parts = faultsParts({
    get stack() {
      return stack;
    },
    restart: async () => void (stack = await stack.restart()),
    modelServer: { cut: (forMs) => outage(providers, forMs) },
    secondWorker: null,
    gateway: null,
  });
  return {
    ...{ providers, parts, stack: () => stack },
    close: async () => {
      await stack.stop();
      stack.remove();
      await Promise.all(simulators.map((simulator) => simulator.close()));
    },
  };
}

function entryOf(adapter: AdapterUnderTest, { url }: Simulator): object {
  return { ...FAST, max_lines: MAX_LINES, ...adapter.settings(url) };
}

/** A provider that remembers its plan, so that an outage can be put before it and taken away. */
interface StrikableProvider extends PlayedProvider {
  plan: ProviderPlan;
  /** Changes the settings that it names. */
  change(settings: Partial<ProviderPlan>): Promise<void>;
}

function played(adapter: AdapterUnderTest, { url }: Simulator): StrikableProvider {
  const control = `${url}/simulator/providers`;
  const provider: StrikableProvider = {
    adapter,
    plan: CALM,
    change: async (settings) => {
      const init = { method: 'PUT', body: JSON.stringify(settings) };
      const answer = await fetch(`${control}/config`, init);
      if (!answer.ok) throw new Error(await answer.text());
    },
    configure: async (plan) => {
      provider.plan = plan;
      await provider.change(plan);
    },
    creates: async () => {
      const stats = (await (await fetch(`${control}/stats`)).json()) as {
        creates: Readonly<Record<string, number>>;
      };
      return stats.creates;
    },
  };
  return provider;
}

/**
 * Resets every connection. What was planned for the calls follows afterwards. The planned ends of jobs are not sent
 * again: they would begin anew, and a second round of jobs has to succeed.
 */
async function outage(providers: readonly PlayedProvider[], forMs: number): Promise<void> {
  const struck = providers as readonly StrikableProvider[];
  const drops = CALLS.map((call) => ({ call, times: 1_000, drop: true }));
  await Promise.all(struck.map((one) => one.change({ faults: drops })));
  await delay(forMs);
  await Promise.all(struck.map((one) => one.change({ faults: one.plan.faults })));
}
