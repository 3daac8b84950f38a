import { readFile } from 'node:fs/promises';
import { DefaultLogger, Runtime, Worker, type ReplayWorkerOptions } from '@temporalio/worker';
import type { openClient } from '../client/connection';
import { loadDataConverter } from '../client/data-converter';
import { openHistories, type OpenHistory, type OpenWorkflowQuery } from '../client/open-histories';
import type { Config } from '../platform/config-schema';
import { bundlePath } from './bundle-workflows';
import { temporalTracing } from './temporal-tracing';

/** Which workflows to replay, and against what. */
export interface ReplayOptions extends OpenWorkflowQuery {
  readonly config: Pick<Config, 'temporal'>;
  readonly client: ReturnType<typeof openClient>;
  /** Replays at most this many workflows, the newest ones. */
  readonly limit?: number;
  /** The workflow code; by default the bundle of this build, as a worker would run it. */
  readonly workflowBundle?: NonNullable<ReplayWorkerOptions['workflowBundle']>;
}

/**
 * The outcome for one workflow:
 * - `replays`: the code takes the workflow over
 * - `diverges`: it would not, and the workflow would stand still
 * - `gone`: Temporal has no history of it any more
 */
export interface ReplayVerdict {
  readonly workflowId: string;
  readonly workflowType: string;
  readonly verdict: 'replays' | 'diverges' | 'gone';
  /** Events in its history. */
  readonly events: number;
  /** The first event that the code does not produce, if the SDK names it. */
  readonly divergingEvent: { readonly id: number; readonly type: string } | null;
  /** What the SDK says about a divergence. */
  readonly message: string | null;
}

/**
 * Replays the histories of all running workflows against the workflow code of this release, without a
 * worker that takes tasks (docs/upgrading.md#replay-before-a-deploy). Yields one verdict for each workflow.
 * Holds one history at a time. @throws temporal_unavailable, invalid_request, config_invalid
 */
export async function* replayOpen(options: ReplayOptions): AsyncGenerator<ReplayVerdict> {
  const limit = options.limit ?? Infinity;
  const verdicts: ReplayVerdict[] = [];
  // The replay asks for one history, then yields its result. `current` is that history.
  let current: OpenHistory | null = null;
  async function* histories() {
    let taken = 0;
    for await (const open of openHistories(options.client, options)) {
      if (open.history === null) verdicts.push(verdictOn(open, 'gone'));
      else {
        current = open;
        yield { workflowId: open.workflowId, history: open.history };
      }
      if (++taken >= limit) return;
    }
  }
  const replays = Worker.runReplayHistories(await replayWorker(options), histories());
  for await (const { error } of replays) {
    yield* verdicts.splice(0);
    if (current !== null) yield judged(current, error);
  }
  yield* verdicts;
}

async function replayWorker({
  config,
  workflowBundle,
}: ReplayOptions): Promise<ReplayWorkerOptions> {
  silenceRuntime();
  const dataConverter = loadDataConverter(config.temporal);
  return {
    workflowBundle: workflowBundle ?? { code: await readFile(bundlePath(), 'utf8') },
    plugins: [temporalTracing()],
    ...(dataConverter === null ? {} : { dataConverter }),
  };
}

/** The SDK logs every divergence with a stack. The verdict says the same in one line. */
function silenceRuntime(): void {
  if (Runtime._instance !== undefined) return;
  const telemetryOptions = { logging: { forward: {}, filter: 'ERROR' } } as const;
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [], telemetryOptions });
}

function judged(open: OpenHistory, error: Error | undefined): ReplayVerdict {
  if (error === undefined) return verdictOn(open, 'replays');
  const message = error.message.split('\n', 1)[0] ?? '';
  const divergingEvent = eventIn(message, open.history?.events ?? []);
  return { ...verdictOn(open, 'diverges'), divergingEvent, message };
}

/** As in `HistoryEvent(id: 8, ActivityTaskScheduled)`. */
const EVENT = /HistoryEvent\(id: (\d+), (\w+)\)/;
/** As in `Activity type of scheduled event 'ingest' does not match …`; it may also quote the activity id. */
const SCHEDULED = /^.*scheduled event '([^']+)'/;

type HistoryEvents = NonNullable<NonNullable<OpenHistory['history']>['events']>;

/** The event that the SDK's message names by its number, else the first scheduled activity that it quotes. */
function eventIn(message: string, events: HistoryEvents): ReplayVerdict['divergingEvent'] {
  const [, id, type = ''] = EVENT.exec(message) ?? [];
  if (id !== undefined) return { id: Number(id), type };
  const quoted = SCHEDULED.exec(message)?.[1];
  const event = events.find(({ activityTaskScheduledEventAttributes: scheduled }) => {
    return scheduled?.activityType?.name === quoted || scheduled?.activityId === quoted;
  });
  if (quoted === undefined || event === undefined) return null;
  return { id: Number(event.eventId), type: 'ActivityTaskScheduled' };
}

function verdictOn(open: OpenHistory, verdict: ReplayVerdict['verdict']): ReplayVerdict {
  const { workflowId, workflowType, history } = open;
  const events = history?.events?.length ?? 0;
  return { workflowId, workflowType, verdict, events, divergingEvent: null, message: null };
}
