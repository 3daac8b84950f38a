import { embedAnswer } from '../../../core/openai/answer';
import { answerLine, errorLine, LINE_ERROR_CODES } from '../../../core/openai/result-line';

const lineId = `batch_req_${'0a'.repeat(16)}00000000001f`;
const customId = 'ä"\u2028\ud800';
const spelledId = '"\\u00e4\\"\\u2028\\ud800"';

describe('a result line', () => {
  it('embeds an answer exactly, in ASCII', () => {
    const embedded = embedAnswer(200, Buffer.from('{"n": 1.0}'));
    const line = answerLine({ lineId, customId, status: 200, requestId: 'r-ü', embedded });
    expect(line.toString('latin1')).toBe(
      `{"id":"${lineId}","custom_id":${spelledId},"response":{"status_code":200,` +
        `"request_id":"r-\\u00fc","body":{"n":1.0}},"error":null}`,
    );
  });

  it('uses the line id if the model server sent no request id', () => {
    const embedded = embedAnswer(500, Buffer.from('oops'));
    for (const requestId of [null, '']) {
      const line = answerLine({ lineId, customId: 'a', status: 500, requestId, embedded });
      expect(JSON.parse(line.toString())).toMatchObject({
        response: { status_code: 500, request_id: lineId, body: { error: { message: 'oops' } } },
        error: null,
      });
    }
  });

  it('has an error with code and message, and no response', () => {
    const line = errorLine({ lineId, customId, code: 'batch_expired' });
    expect(line.toString('latin1')).toBe(
      `{"id":"${lineId}","custom_id":${spelledId},"response":null,` +
        `"error":{"code":"batch_expired","message":"${LINE_ERROR_CODES.batch_expired}"}}`,
    );
    const own = errorLine({ lineId, customId, code: 'connection_error', message: 'ECONNRESET é' });
    expect(JSON.parse(own.toString())).toMatchObject({ error: { message: 'ECONNRESET é' } });
    expect(own.toString('latin1')).toMatch(/^[\x20-\x7e]*$/);
  });
});
