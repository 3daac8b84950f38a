import type { LineResult } from '../../../providers/provider';
import { RESULTS } from '../calls';
import {
  created,
  ended,
  idOf,
  idsOf,
  lineIds,
  ok,
  remainsOf,
  resultsOf,
  signal,
  statusOf,
  uploaded,
  valueOf,
  type CallNames,
  type HostTraits,
  type OpenHost,
} from './steps';

const bodyOf = (result: LineResult) =>
  result.kind === 'answer' ? (JSON.parse(result.body.toString()) as Record<string, unknown>) : null;

/** Jobs of recordings, from their lines to their removal, and how they end. */
export function describeRecordings(names: CallNames, openHost: OpenHost, traits: HostTraits): void {
  describeLife(openHost, traits);
  describeLines(openHost);
  describeStates(openHost, traits);
  describeEnds(names, openHost);
}

function describeLife(openHost: OpenHost, { deletes }: HostTraits): void {
  it('runs a job from its recordings to its transcripts, and leaves nothing behind', async () => {
    const { provider, configure, stats } = await openHost();
    await configure({ hold: true });
    const job = await uploaded(provider);
    expect(await provider.find(job, { signal })).toEqual(ok({ kind: 'none' }));
    const externalId = idOf(await created(provider, job));
    const running = valueOf(await provider.status(externalId, { signal }));
    expect(running).toMatchObject({ externalId, state: 'running', isKnownState: true });
    await configure({ hold: false });
    const status = await ended(provider, externalId);
    const total = lineIds().length;
    expect(status).toMatchObject({
      state: 'completed',
      counts: { total, completed: total, failed: 0 },
      error: null,
      hasAllResults: true,
    });
    const { results, malformed } = await resultsOf(provider, status);
    expect([idsOf(results).sort(), malformed]).toEqual([lineIds(), 0]);
    for (const result of results) {
      expect(bodyOf(result)).toMatchObject({
        task: 'transcribe',
        text: expect.stringMatching(/^(\w+ ){3}\w+\.$/),
        duration: expect.any(Number),
        usage: { type: 'duration', seconds: expect.any(Number) },
      });
    }
    const remains = remainsOf(job, status);
    expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
    if (deletes) expect((await stats()).files).toEqual([]);
    expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
  });
}

function describeLines(openHost: OpenHost): void {
  it('answers each line in the format that it asks for', async () => {
    const { provider } = await openHost();
    const formats = ['json', 'srt', 'vtt', 'text'].slice(0, lineIds().length);
    const job = await uploaded(
      provider,
      formats.map((format) => ({ response_format: format })),
    );
    const status = await ended(provider, idOf(await created(provider, job)));
    const { results } = await resultsOf(provider, status);
    const texts = new Map(results.map((result) => [result.wireId, bodyOf(result)?.['text']]));
    const shapes = [/^(\w+ ){3}\w+\.$/, /^1\n00:00:00,\d{3} --> /, /^WEBVTT\n\n00:/, /\.\n$/];
    lineIds().forEach((id, index) => expect(texts.get(id)).toMatch(shapes[index] ?? /never/));
  });

  it('refuses a job whose recording is gone', async () => {
    const { provider } = await openHost();
    const line = provider.encode({
      wireId: 'n1',
      endpoint: '/v1/audio/transcriptions',
      model: null,
      body: Buffer.from('{"file_id":"file-gone"}'),
      translation: { dropParams: false, defaultMaxTokens: 1, extraBody: {} },
    });
    if (line.kind !== 'line') throw new Error(line.message);
    const input = {
      bytes: line.bytes.length,
      async *open() {
        yield line.bytes;
      },
    };
    const job = { ...(await uploaded(provider)), jobId: `job_${'d'.repeat(32)}` };
    const upload = provider.upload(job, input, { signal, openFile: async () => null });
    expect(await upload).toMatchObject({
      outcome: 'refused',
      failure: { code: 'input_file_not_found' },
    });
  });
}

function describeStates(openHost: OpenHost, { codes, cancels, hasWords }: HostTraits): void {
  const onWords = hasWords ? it : () => undefined;
  onWords('takes an unknown state for running, and says so', async () => {
    const { provider, configure } = await openHost();
    await configure({ hold: true, running_word: 'paused' });
    const externalId = idOf(await created(provider, await uploaded(provider)));
    expect(valueOf(await provider.status(externalId, { signal }))).toMatchObject({
      state: 'running',
      isKnownState: false,
      providerState: 'paused',
    });
  });

  it('is refused with the old key after a rotation, and accepted with the new one', async () => {
    const { provider, configure, rotateKey } = await openHost();
    const job = await uploaded(provider);
    await configure({ keys: ['sk-after'] });
    expect(await created(provider, job)).toMatchObject({
      outcome: 'auth',
      failure: { code: codes.auth },
    });
    rotateKey('sk-after');
    expect((await created(provider, job)).outcome).toBe('accepted');
  });

  it('says that an unknown job is gone, or that no job can be cancelled', async () => {
    const { provider } = await openHost();
    expect((await provider.status('unknown', { signal })).outcome).toBe('gone');
    const cancelled = await provider.cancel('unknown', { signal });
    expect(cancelled).toMatchObject(cancels ? { outcome: 'gone' } : ok('unsupported'));
  });
}

function describeEnds(names: CallNames, openHost: OpenHost): void {
  it('blames a recording that cannot be read, and nothing else, for its failure', async () => {
    const { provider, configure } = await openHost();
    await configure({ ends: ['failed'], failed_lines: [1] });
    const blamed = await ended(provider, idOf(await created(provider, await uploaded(provider))));
    const { results } =
      blamed.state === 'completed' ? await resultsOf(provider, blamed) : { results: [] };
    const refused = results.filter((one) => statusOf(one) === 400).map(({ wireId }) => wireId);
    expect([...refused, ...blamed.lineErrors.map(({ index }) => lineIds()[index])]).toEqual([
      lineIds()[0],
    ]);
    await configure({ failed_lines: [] });
    const job = await uploaded(provider, undefined, `job_${'e'.repeat(32)}`);
    expect(await ended(provider, idOf(await created(provider, job)))).toMatchObject({
      state: 'failed',
      lineErrors: [],
      error: { message: expect.any(String) },
    });
  });

  it('reads slow results whole, and says that those of a broken connection are not', async () => {
    const { provider, configure } = await openHost();
    const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
    await configure({ faults: [{ call: names.content, bytes_per_sec: 20_000 }] });
    expect(idsOf((await resultsOf(provider, status)).results).sort()).toEqual(lineIds());
    await configure({ faults: [{ call: names.content, cut: true }] });
    const take = () => undefined;
    expect((await provider.results(status, take, RESULTS)).outcome).toBe('transient');
  });

  it('counts a transcript that is cut off, and waits for one that appears late', async () => {
    const { provider, configure } = await openHost();
    await configure({ results: ['cut_off'], results_lag_ms: 3_600_000 });
    const externalId = idOf(await created(provider, await uploaded(provider)));
    const early = valueOf(await provider.status(externalId, { signal }));
    expect(early).toMatchObject({ state: 'completed', hasAllResults: false });
    await configure({ results_lag_ms: 0 });
    const late = await ended(provider, externalId);
    expect(late.hasAllResults).toBe(true);
    const { results, malformed } = await resultsOf(provider, late);
    expect([results.length, malformed]).toEqual([lineIds().length - 1, 1]);
  });
}
