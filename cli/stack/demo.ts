import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { dataDirHolder } from '../../embedded/locks/data-dir-lock';
import { createStack } from '../../embedded/stack';
import type { StackAddresses } from '../../embedded/start-components';
import { processEnvironment } from '../../platform/config';
import { packageRoot } from '../../platform/package-root';
import { endSummary } from '../batches/end-summary';
import { endpointOf, openInput } from '../batches/input-file';
import { paintFor } from '../batches/paint';
import { say, table } from '../output';
import { type DemoAccess, withAccess } from './demo-access';
import { startDemoCalls, type DemoCalls, type DemoCallTimes } from './demo-calls';
import { runDemoBatch } from './demo-batch';
import { delegatingSettings, modelRows, slowDownProvider } from './demo-providers';
import { sampleAnswers } from './sample-answers';
import { sourcesOf, type StackFlags } from './stack-flags';
import { stackSettings } from './stack-settings';
import { createStackTerminal, type ShownLevels } from './stack-terminal';
import { withStack } from './with-stack';

/** Flags of `demo`. */
export interface DemoFlags extends StackFlags {
  readonly input?: string;
  /** Delegates a model of the sample batch to a simulated provider. */
  readonly providers?: boolean;
}

const SHOWN: ShownLevels = { api: 'error', worker: 'error', simulator: 'error', temporal: 'none' };

/**
 * `nightshift demo`: runs one batch through a stack of its own, even while `dev` is running. The exit
 * status is 0 only if the batch completed and its results were downloaded.
 */
export async function runDemo(flags: DemoFlags): Promise<void> {
  const input = resolve(flags.input ?? join(packageRoot(), 'examples', 'demo.jsonl'));
  const endpoint = await endpointOf(openInput(input).path);
  const dataDir = chooseDataDir(flags.dataDir);
  const terminal = createStackTerminal(SHOWN);
  const stack = createStack({
    ...terminal,
    dataDir: dataDir.path,
    sources: sourcesOf(flags),
    simulator: flags.simulator,
    simulatorSettings: flags.providers === true ? delegatingSettings : undefined,
    gateway: flags.gateway,
    store: flags.store,
    apiPort: flags.port === undefined ? 'next free' : 'exactly',
  });
  const results = join(resolve(flags.dataDir), 'demo');
  try {
    await withStack({
      stack,
      terminal,
      onSignal: 'fail',
      work: async (addresses, signal) => {
        const settings = stackSettings(dataDir.path);
        const { auth } = settings;
        const showsJobs = flags.providers === true;
        if (showsJobs) await slowDownProvider(settings);
        return withAccess({ auth, dataDir: dataDir.path }, (access) =>
          showBatch({ addresses, access, signal, input, endpoint, results, showsJobs }),
        );
      },
    });
  } finally {
    if (dataDir.isTemporary) rmSync(dataDir.path, { recursive: true, force: true });
  }
}

interface DemoRun {
  readonly addresses: StackAddresses;
  readonly access: DemoAccess;
  readonly signal: AbortSignal;
  readonly input: string;
  readonly endpoint: string;
  readonly results: string;
  readonly showsJobs: boolean;
}

const SAMPLES = 4;

/** Runs the batch and prints its results. @throws internal if the batch did not complete */
async function showBatch(run: DemoRun): Promise<void> {
  const { addresses, ...batch } = run;
  const { api, ui, namespace } = addresses;
  say(`the API is at ${api}${ui === null ? '' : `, Temporal's UI at ${ui}`}`);
  const calls = callsOf(run);
  const done = await runDemoBatch({
    ...batch,
    api,
    onCreated: (id) => {
      const link = ui === null ? '' : `: ${ui}/namespaces/${namespace}/workflows/${id}`;
      say(`batch ${id} is a workflow${link}`);
    },
  });
  if (done === null) return;
  const times = await calls?.stop();
  const paint = paintFor(process.stdout, processEnvironment());
  process.stdout.write(`${endSummary(done.batch, { ...done, paint })}\n`);
  if (done.jobs.length > 0) process.stdout.write(`${table(modelRows(done.batch, done.jobs))}\n`);
  if (times !== undefined) process.stdout.write(`${callSummary(times)}\n`);
  const { id, status } = done.batch;
  if (status !== 'completed') {
    throw new NightshiftError('internal', `the batch ${id} ended as ${status}`);
  }
  const output = done.results.output?.target;
  if (output !== undefined) {
    const rows = await sampleAnswers(output, SAMPLES);
    const origin = addresses.simulator ? ' (random words: the simulator has no model)' : '';
    process.stdout.write(`some answers${origin}\n${table(rows).replace(/^/gm, '  ')}\n`);
  }
  process.stdout.write(
    'to keep a stack like this one running: npx nightshift dev (in a clone: npm start)\n',
  );
}

/** Only the simulator is called: calls to a model server of the user may cost money. */
function callsOf({ addresses, access }: DemoRun): DemoCalls | null {
  const { gateway, simulator } = addresses;
  if (gateway === null || !simulator) return null;
  say(`interactive calls go to ${gateway}, the gateway that the batch goes through too`);
  return startDemoCalls(gateway, access);
}

function callSummary({ calls, firstWordMs }: DemoCallTimes): string {
  const median = `${Math.round(firstWordMs)} ms`;
  return `while the batch ran, a user made ${calls} calls, whose answers began after ${median} (median)`;
}

/** The wanted directory, or a temporary one if another stack runs in it. */
function chooseDataDir(wanted: string): { path: string; isTemporary: boolean } {
  const holder = dataDirHolder(resolve(wanted));
  if (holder === null) return { path: wanted, isTemporary: false };
  const path = mkdtempSync(join(tmpdir(), 'nightshift-demo-'));
  // Other users may enter: if we are root, PostgreSQL runs as another user and has its folder in here.
  chmodSync(path, 0o711);
  say(`${wanted} is in use by process ${holder}: this demo uses the temporary directory ${path}`);
  return { path, isTemporary: true };
}
