import { createAnswerMeter } from '../../../inference/proxy/answer-meter';

const STREAM = ['content-type', 'text/event-stream; charset=utf-8'];
const TEXT =
  ': comment\r\nevent: a\r\ndata: {"x":"data: no"}\r\n\r\ndata:{}\n\ndatum: no\n\ndata: \n\n' +
  'data: {"usage":{"prompt_tokens":3}}\n\ndata: [DONE]\n\n';

function end(headers: string[], chunks: readonly Buffer[]) {
  const meter = createAnswerMeter(headers);
  for (const chunk of chunks) meter.add(chunk);
  return meter.end();
}

describe('the meter of an answer', () => {
  it.each([1, 2, 3, 5, 7, 1_000])('counts events in pieces of %d bytes', (size) => {
    const bytes = Buffer.from(TEXT);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    expect(end(STREAM, chunks)).toMatchObject({ events: 4, usage: { inputTokens: 3 } });
  });

  it('reads the usage at the end of a long answer, however it is cut', () => {
    const text = JSON.stringify({ text: 'x'.repeat(100_000), usage: { prompt_tokens: 3 } });
    const bytes = Buffer.from(text);
    for (const size of [1, 1_000, 60_000, 200_000]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      const found = end(['Content-Type', 'application/json'], chunks);
      expect(found).toMatchObject({ events: 0, usage: { inputTokens: 3 } });
    }
  });

  it.each([
    ['packed', ['content-type', 'application/json', 'Content-Encoding', 'gzip']],
    ['not JSON', ['content-type', 'text/plain']],
    ['of an unknown type', []],
  ])('finds nothing in an answer that is %s', (_, headers) => {
    expect(end(headers, [Buffer.from('{"usage":{"prompt_tokens":3}}')])).toEqual({
      events: 0,
      usage: null,
    });
  });
});
