import type { Batch } from 'openai/resources/batches';
import { isNightshiftError, NightshiftError } from '../../core/errors';
import type { ClientIo } from './client-io';
import type { ConnectionFlags } from './connection-flags';
import { EXIT } from './exit-codes';
import { jobTable } from './job-table';
import { stateOf, type ProviderJob } from './provider-job';
import { withSession, type Session } from './session';

/** Flags of `nightshift jobs`. */
export interface JobFlags extends ConnectionFlags {
  readonly limit: number;
  readonly providerState?: boolean;
}

/** `nightshift jobs [ID]`: the jobs of a batch at providers, or of the newest batches. */
export async function runJobs(
  io: ClientIo,
  id: string | undefined,
  flags: JobFlags,
): Promise<void> {
  await withSession(io, flags, async (session) => {
    if (flags.providerState === true) await printState(session, id);
    else {
      const jobs = await (id === undefined
        ? newestJobs(session, flags.limit)
        : jobsOf(session, id));
      const view = { paint: session.paint, nowMs: Date.now(), showsBatch: id === undefined };
      session.print(jobs, () =>
        jobs.length === 0 ? 'no jobs at providers' : jobTable(jobs, view),
      );
    }
    return EXIT.completed;
  });
}

async function printState(session: Session, id: string | undefined): Promise<void> {
  if (id === undefined) {
    throw new NightshiftError('invalid_request', '--provider-state needs the id of a batch');
  }
  const { service, interrupts, io } = session;
  const batch = await service.retrieve(id, { signal: interrupts.signal, retries: 2 });
  const state = stateOf(batch, await jobsOf(session, id));
  io.stdout.write(`${JSON.stringify(state, null, 2)}\n`);
}

async function newestJobs(session: Session, limit: number): Promise<ProviderJob[]> {
  const { batches } = await session.service.list(limit, session.interrupts.signal);
  const jobs: ProviderJob[] = [];
  for (const { id } of batches) jobs.push(...(await jobsOf(session, id)));
  return jobs;
}

function jobsOf({ service, interrupts }: Session, id: string): Promise<ProviderJob[]> {
  return service.jobs(id, interrupts.signal);
}

/** The jobs of a batch that was found; none if the server is not a Nightshift that knows them. */
export async function jobsIfAny(session: Session, { id }: Batch): Promise<ProviderJob[]> {
  try {
    return await jobsOf(session, id);
  } catch (error) {
    if (isNightshiftError(error) && error.code === 'not_found') return [];
    throw error;
  }
}
