import { once } from 'node:events';
import { connect } from 'node:net';
import OpenAI from 'openai';
import { until } from '../support/until';
import { chat, get, post, put, start, stopSimulators } from './simulators';

afterEach(stopSimulators);

/** Fast steps, so that a test has many of them. */
const ENGINE = { slots: 2, stepBaseMs: 1, stepGrowthMs: 0, prefillMsPerToken: 0 };

/** The data of the events of a stream. */
async function eventsOf(response: Response): Promise<string[]> {
  const text = await response.text();
  return text
    .split('\n\n')
    .flatMap((event) => (event === '' ? [] : [event.slice('data: '.length)]));
}

describe.each([
  ['a simulator with a fixed latency', {}],
  ['a simulator with an engine', ENGINE],
])('%s', (_, options) => {
  it('streams the same texts as it answers at once, with the official OpenAI client', async () => {
    const client = new OpenAI({
      baseURL: `${await start(options)}/v1`,
      apiKey: 'k',
      maxRetries: 0,
    });
    const { messages } = chat() as { messages: OpenAI.ChatCompletionMessageParam[] };
    let [text, role, finish] = ['', '', ''];
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
    for await (const { object, choices } of stream) {
      expect([object, choices.length]).toEqual(['chat.completion.chunk', 1]);
      text += choices[0]!.delta.content ?? '';
      role += choices[0]!.delta.role ?? '';
      finish += choices[0]!.finish_reason ?? '';
    }
    expect([text.split(' ').length, role, finish]).toEqual([16, 'assistant', 'stop']);
    const legacy = await client.completions.create({
      model: 'm',
      prompt: ['a', 'b'],
      max_tokens: 3,
      stream: true,
    });
    const texts = ['', ''];
    for await (const { choices } of legacy) texts[choices[0]!.index] += choices[0]!.text;
    expect(texts.map((one) => one.split(' ').length)).toEqual([3, 3]);
  });

  it('streams the words of the whole answer', async () => {
    const url = await start(options);
    // The seed of an answer is a hash of the body, so the bodies must be equal.
    const body = chat({ stream: true });
    const streamed = await eventsOf(await post(url, '/v1/chat/completions', body));
    const again = await eventsOf(await post(url, '/v1/chat/completions', body));
    expect(again).toEqual(streamed);
    expect(streamed.at(-1)).toBe('[DONE]');
    const words = streamed.slice(0, -1).map((event) => {
      const { choices, usage } = JSON.parse(event) as OpenAI.ChatCompletionChunk;
      expect(usage).toBeUndefined();
      return choices[0]!.delta.content ?? '';
    });
    // The role, one event per token, the finish reason.
    expect(words).toHaveLength(1 + 16 + 1);
    expect(words.slice(1, -1).every((word) => word.trim() !== '')).toBe(true);
  });

  it('reports the usage in the last event of a stream if it is asked to', async () => {
    const body = chat({ stream: true, stream_options: { include_usage: true }, max_tokens: 4 });
    const response = await post(await start(options), '/v1/chat/completions', body);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const events = (await eventsOf(response)).slice(0, -1);
    const chunks = events.map((event) => JSON.parse(event) as OpenAI.ChatCompletionChunk);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 19, completion_tokens: 4, total_tokens: 23 },
    });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe('length');
  });

  it('cuts a stream in the middle', async () => {
    const url = await start({ ...options, cutRate: 1 });
    const response = await post(url, '/v1/chat/completions', chat({ stream: true }));
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    let text = '';
    const read = async (): Promise<void> => {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        text += decoder.decode(value);
      }
    };
    await expect(read()).rejects.toThrow('terminated');
    expect(text.split('"content":').length - 1).toBe(1 + 8);
    expect(text).not.toContain('[DONE]');
    expect(await get(url, '/simulator/stats')).toMatchObject({ aborted: 1, in_flight: 0 });
    await put(url, { cut_rate: 0 });
    const whole = await post(url, '/v1/chat/completions', chat({ stream: true }));
    expect((await eventsOf(whole)).at(-1)).toBe('[DONE]');
  });
});

it('a client that reads slowly gets the tokens of several steps in one event', async () => {
  const url = await start({ ...ENGINE, stepBaseMs: 0.01, outputTokens: 80_000 });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.pause();
  const body = JSON.stringify(chat({ stream: true }));
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`;
  socket.write(head + body);
  await until(
    async () => ((await get(url, '/simulator/stats'))['in_flight'] === 0 ? true : null),
    20_000,
    'the end of the answer',
  );
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.resume();
  await once(socket, 'close');
  const text = Buffer.concat(chunks).toString();
  const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content);
  expect(contents.join('').split(' ')).toHaveLength(80_000);
  // About 17 MB of events with one token each would not fit into the buffers of the kernel.
  expect(contents.length).toBeLessThan(70_000);
  expect(text).toContain('data: [DONE]');
}, 30_000);
