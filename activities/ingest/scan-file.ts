import { NightshiftError, isNightshiftError } from '../../core/errors';
import { createInputErrors, type InputErrors } from '../../core/openai/input-errors';
import { scanRules } from '../../core/openai/scan-rules';
import type { ScanSink, ScanTotals } from '../../core/openai/scan-sink';
import { pause } from '../runtime/pause';
import type { IngestDeps, Ingestion } from './deps';
import type { InputFiles } from '../../core/plan/input-files';
import { endpointRule } from '../../core/openai/endpoints';
import { HeldRequests } from './held-requests';
import { createPlanCollector, type PlanCollector } from './plan-collector';
import { scanInput } from './scan-input';
import { tellIndexed } from './tell-indexed';

/** What one pass over the input found. */
export interface ScannedFile {
  readonly plan: PlanCollector;
  readonly errors: InputErrors;
  readonly requests: number;
  /** The files that requests name; null if requests of the endpoint name none. */
  readonly files: InputFiles | null;
}

/** The SDK sends heartbeats at least every 2 s. After this time the server has the latest one. */
const ANNOUNCE_MS = 2_500;

/** An input file, and the endpoint of its batch. */
export interface FileToScan {
  readonly key: string;
  readonly bytes: number;
  readonly endpoint: string;
}

/** Reads the input once, or its index instead. @throws input_missing if the object is gone */
export async function scanFile(
  ingestion: Ingestion,
  { key, bytes, endpoint }: FileToScan,
): Promise<ScannedFile> {
  const { deps, batchId, heartbeat, maxUndecided } = ingestion;
  const errors = createInputErrors();
  const isRouted = (model: string) => deps.isRouted(model);
  const plan = createPlanCollector({ isRouted, maxUndecided });
  const rules = scanRules(deps, endpoint);
  const held = endpointRule(endpoint).namesAudio ? new HeldRequests() : null;
  const sink: ScanSink = {
    request: (request) => {
      if (errors.count === 0) (held ?? plan).add(request);
    },
    fault: (error) => errors.add(error),
  };
  const scan = async (): Promise<ScanTotals> => {
    const indexed = await tellIndexed(ingestion, { key, bytes, rules }, sink);
    const index = deps.lineIndex ?? null;
    if (indexed !== null) return indexed;
    const chunks = deps.store.scan(key, { signal: heartbeat.signal });
    return scanInput({ chunks, rules, heartbeat, sink, index });
  };
  const { requests } = await inTurn(ingestion, scan).catch((error: unknown) => {
    throw isNightshiftError(error, 'object_missing') ? inputMissing(batchId) : error;
  });
  heartbeat.check();
  const files = held === null || errors.count > 0 ? null : await held.planInto(plan, ingestion);
  return { plan, errors, requests, files };
}

/**
 * Reads the announcements of all workers before models without a route are given up. True if one of the
 * models without a plan has a route by now, so that the file must be read again.
 */
export async function hasNewRoutes(
  deps: IngestDeps,
  { plan, errors }: ScannedFile,
): Promise<boolean> {
  const { planned, unplanned } = plan.unknown;
  if (errors.count > 0 || planned.size + unplanned.size === 0) return false;
  await deps.refreshRoutes?.();
  return [...unplanned.keys()].some((model) => deps.isRouted(model));
}

/** The error that ends a batch whose input object does not exist. */
export function inputMissing(batchId: string): NightshiftError {
  return new NightshiftError('input_missing', `the input object of ${batchId} is gone`);
}

/**
 * Waits for the file's turn. A suspect file waits until this process reads no other file, and then until
 * the server has the heartbeat that says so.
 */
function inTurn<T>(
  { deps, attempt, heartbeat, gate }: Ingestion,
  scan: () => Promise<T>,
): Promise<T> {
  const { isSuspect: exclusive } = attempt;
  const { signal } = heartbeat;
  return gate.run({ exclusive, signal }, async () => {
    if (!exclusive) return scan();
    attempt.readsExclusively();
    heartbeat.beat();
    await pause(deps.announceMs ?? ANNOUNCE_MS, signal);
    heartbeat.check();
    return scan();
  });
}
