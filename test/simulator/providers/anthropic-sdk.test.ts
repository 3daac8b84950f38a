import Anthropic from '@anthropic-ai/sdk';
import { configureProviders, start, stopSimulators } from '../simulators';

afterEach(stopSimulators);

const request = (id: string, params: object = {}) => ({
  custom_id: id,
  params: {
    ...{ model: 'claude', max_tokens: 50, messages: [{ role: 'user' as const, content: id }] },
    ...params,
  },
});

async function open(settings: object = {}) {
  const url = await start();
  await configureProviders(url, settings);
  const baseURL = `${url}/providers/anthropic`;
  const client = new Anthropic({ apiKey: 'sk-ant', baseURL, maxRetries: 0 });
  const { batches } = client.messages;
  const create = (...requests: ReturnType<typeof request>[]) => batches.create({ requests });
  const results = async (id: string) => {
    const all = new Map<string, Anthropic.Messages.MessageBatchResult>();
    for await (const one of await batches.results(id)) all.set(one.custom_id, one.result);
    return all;
  };
  return { batches, create, results, configure: (to: object) => configureProviders(url, to) };
}

describe('the official client of Anthropic at the simulated provider', () => {
  it('creates, cancels, lists, downloads and deletes', async () => {
    const { batches, create, results, configure } = await open({ hold: true, max_page: 1 });
    const held = await create(request('a'), request('b'));
    expect(held).toMatchObject({
      ...{ type: 'message_batch', processing_status: 'in_progress', results_url: null },
      request_counts: { processing: 2, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    });
    expect(await batches.cancel(held.id)).toMatchObject({
      cancel_initiated_at: expect.any(String),
    });
    expect(await batches.retrieve(held.id)).toMatchObject({ processing_status: 'ended' });
    await configure({ hold: false });
    const { id } = await create(request('a'), request('b', { max_tokens: 0 }));
    const listed: string[] = [];
    for await (const batch of batches.list({ limit: 20 })) listed.push(batch.id);
    expect(listed).toEqual([id, held.id]);
    const batch = await batches.retrieve(id);
    expect(batch).toMatchObject({
      processing_status: 'ended',
      request_counts: { processing: 0, succeeded: 1, errored: 1 },
    });
    expect(Date.parse(batch.expires_at) - Date.parse(batch.created_at)).toBe(24 * 3_600_000);
    const answers = await results(id);
    expect(answers.get('a')).toMatchObject({
      type: 'succeeded',
      message: { role: 'assistant', content: [{ type: 'text' }], usage: { service_tier: 'batch' } },
    });
    expect(answers.get('b')).toMatchObject({
      type: 'errored',
      error: { type: 'error', error: { type: 'invalid_request_error' } },
    });
    expect(await batches.delete(id)).toEqual({ id, type: 'message_batch_deleted' });
    await expect(batches.retrieve(id)).rejects.toMatchObject({ status: 404 });
  });

  it('tells requests that expired or were cancelled from answers', async () => {
    const { create, batches, results } = await open({ ends: ['expired', 'cancelled'] });
    for (const type of ['expired', 'canceled']) {
      const { id } = await create(request('a'), request('b'));
      expect((await batches.retrieve(id)).request_counts).toMatchObject({
        succeeded: 1,
        [type]: 1,
      });
      const answers = await results(id);
      expect([answers.get('a')?.type, answers.get('b')?.type]).toEqual(['succeeded', type]);
    }
  });

  it('is refused as the service refuses', async () => {
    const { create, batches, configure } = await open({ hold: true });
    const refusal = { status: 400, type: 'invalid_request_error' };
    await expect(create(request('not an id'))).rejects.toMatchObject(refusal);
    await expect(create(request('a'), request('a'))).rejects.toMatchObject(refusal);
    const { id } = await create(request('a'));
    await expect(batches.delete(id)).rejects.toMatchObject(refusal);
    await configure({ hold: false });
    await expect(batches.cancel(id)).rejects.toMatchObject(refusal);
    await configure({ keys: ['sk-other'] });
    const wrongKey = { status: 401, type: 'authentication_error' };
    await expect(batches.retrieve(id)).rejects.toMatchObject(wrongKey);
  });

  it('is refused parameters that its version of the API does not have', async () => {
    const { create, results } = await open();
    const { id } = await create(request('a', { temperature: 0.5 }));
    expect((await results(id)).get('a')).toMatchObject({
      error: { error: { message: expect.stringContaining('temperature') } },
    });
  });
});
