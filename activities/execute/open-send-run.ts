import { NightshiftError } from '../../core/errors';
import type { RequestSpans } from '../../platform/tracing/tracing';
import type { BatchFiles } from './batch-files';
import { openSources } from './chunk-sources';
import type { ChunkRunOptions } from './chunk-run';
import { ChunkRun } from './chunk-run';
import type { ExecuteDeps } from './deps';
import { GatewayHeaders } from './gateway-headers';
import type { LineSenderOptions } from './line-sender';
import { LineSender } from './line-sender';
import type { OpenRun, RunContext } from './open-run';

/** State that all chunks of a process share. */
export type SharedState = Pick<ChunkRunOptions, 'admissionQueue' | 'gate'> &
  Pick<LineSenderOptions, 'blocks' | 'emptyQueues' | 'slices'> & {
    readonly batchFiles: BatchFiles;
  };

/** Opens a run that sends the open lines of a chunk. */
export async function openSendRun(
  context: RunContext,
  deps: ExecuteDeps,
  shared: SharedState,
): Promise<OpenRun> {
  const { chunk } = context;
  const route = deps.registry.route(chunk.model);
  // An admitted chunk has a route, and the configuration of a process does not change. Only a chunk that
  // begins during a shutdown is not checked before, and may fail here.
  if (route === null) throw new NightshiftError('internal', `no route for ${chunk.model}`);
  const headers = new GatewayHeaders({
    ...{ chunk, ledger: context.ledger, given: await readHeaders(context, deps) },
    divides: route.gateway.send_fairness_header,
  });
  const sources = await openSources(context, deps, shared.batchFiles);
  const { costs } = sources;
  const { memory, observer } = deps;
  const spans = requestSpans(chunk, deps);
  const sender = new LineSender({
    ...{ chunk, route, memory, observer, spans, headers },
    ...sources,
    ...shared,
  });
  const run = new ChunkRun({ ...context, deps, route, sender, costs, ...shared });
  return { run, close: () => sources.close() };
}

/** Null unless the attempt is traced, so that requests of other batches cost nothing. */
function requestSpans(
  { model, endpoint }: RunContext['chunk'],
  { tracing }: ExecuteDeps,
): RequestSpans | null {
  if (tracing == null) return null;
  const http = { 'http.request.method': 'POST', 'url.path': endpoint };
  return tracing.requests({ 'gen_ai.request.model': model, ...http });
}

/** Nothing is sent without the headers of the create call, so the chunk waits until it can read them. */
async function readHeaders(
  { chunk: { batchId, passesHeaders }, retry }: RunContext,
  { passThrough }: ExecuteDeps,
): Promise<Readonly<Record<string, string>>> {
  return passesHeaders ? retry('reading headers', () => passThrough(batchId)) : {};
}
