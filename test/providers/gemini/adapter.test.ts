import { openHost } from '../conformance/open-host';
import { created, ended, idOf, resultsOf, signal, uploaded, valueOf } from '../conformance/steps';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

const open = () => openHost({ type: 'gemini' }, 'gemini');
const ofJob = (digit: string) => `job_${digit.repeat(32)}`;

it('lists the open jobs of this installation since a time', async () => {
  const { provider, configure } = await open();
  const marked = async (change: object = {}) => {
    const marker = { storeId: 'store-0', sinceMs: Date.now() - 3_600_000, ...change };
    return valueOf((await provider.listMarked?.(marker, { signal }))!);
  };
  await ended(provider, idOf(await created(provider, await uploaded(provider))));
  expect(await marked()).toEqual([]);
  await configure({ hold: true, max_page: 1 });
  const jobs = [];
  for (const jobId of [ofJob('a'), ofJob('b')]) {
    const externalId = idOf(await created(provider, await uploaded(provider, undefined, jobId)));
    jobs.unshift({ externalId, jobId });
  }
  expect(await marked()).toEqual(jobs);
  expect(await marked({ storeId: 'store-1' })).toEqual([]);
  expect(await marked({ sinceMs: Date.now() + 60_000 })).toEqual([]);
});

it('takes a job for complete that has no results, because it has expired', async () => {
  const { provider, configure } = await open();
  await configure({ ends: ['expired'] });
  const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
  expect(status).toMatchObject({ state: 'expired', resultFiles: [], hasAllResults: true });
  expect(await resultsOf(provider, status)).toEqual({ results: [], malformed: 0 });
});

it('says why the model refuses a request', async () => {
  const { provider } = await open();
  const bodies = [{}, { simulate: { status: 400 } }];
  const status = await ended(
    provider,
    idOf(await created(provider, await uploaded(provider, bodies))),
  );
  const [, refused] = (await resultsOf(provider, status)).results;
  expect(refused).toMatchObject({ kind: 'answer', status: 400 });
  const body = refused?.kind === 'answer' ? refused.body.toString() : '';
  expect(JSON.parse(body)).toMatchObject({
    error: { code: 'INVALID_ARGUMENT', message: expect.stringContaining('answered with 400') },
  });
});
