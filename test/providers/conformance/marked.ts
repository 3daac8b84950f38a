import type { MarkedJob } from '../../../providers/provider';
import { created, idOf, ok, signal, uploaded, type OpenHost } from './steps';

const RUNNING = [`job_${'a'.repeat(32)}`, `job_${'b'.repeat(32)}`];
const HOUR_MS = 3_600_000;

/** The search for jobs that carry our marker, of adapters that have it. */
export function describeMarked(openHost: OpenHost): void {
  it('lists the open jobs of its own installation', async () => {
    const { provider, configure } = await openHost();
    const ended = await uploaded(provider);
    idOf(await created(provider, ended));
    await configure({ hold: true, max_page: 1 });
    const running: MarkedJob[] = [];
    for (const jobId of RUNNING) {
      const job = await uploaded(provider, undefined, jobId);
      running.unshift({ externalId: idOf(await created(provider, job)), jobId });
    }
    const elsewhere = await uploaded(provider, undefined, `job_${'e'.repeat(32)}`);
    idOf(await created(provider, { ...elsewhere, storeId: 'another' }));
    const { storeId } = ended;
    const list = (sinceMs: number) => provider.listMarked?.({ storeId, sinceMs }, { signal });
    expect(await list(Date.now() - HOUR_MS)).toEqual(ok(running));
    expect(await list(Date.now() + HOUR_MS)).toEqual(ok([]));
    await configure({ faults: [{ call: 'batches.list', status: 500 }] });
    expect(await list(0)).toMatchObject({ outcome: 'transient' });
  });
}
