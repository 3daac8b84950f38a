import { connect } from 'node:net';
import { until } from '../../support/until';
import { closeAll } from '../gateway-fixtures';
import {
  answerCall,
  type AudioGateway,
  formOf,
  sendForm,
  startAudioGateway,
  startWorker,
  untilSpoolEmpty,
} from './audio-fixtures';
import { FORM_TYPE, formBody, type Part, wav } from './forms';

const MIB = 1024 ** 2;
let gateway: AudioGateway;

beforeAll(async () => {
  gateway = await startAudioGateway([await startWorker(answerCall)]);
});
afterAll(closeAll);
afterEach(() => untilSpoolEmpty(gateway));

const file: Part = { name: 'file', filename: 'a.wav', value: wav(100_000) };
const model: Part = { name: 'model', value: 'whisper-1' };
const html = Buffer.from(`<html>${' '.repeat(100_000)}</html>`);

it.each<[string, Buffer, number, string | null, string | null]>([
  ['a wrong container', formOf({}, html), 400, 'file', 'invalid_value'],
  ['an empty file', formOf({}, Buffer.alloc(0)), 400, 'file', 'invalid_value'],
  ['a file of one byte', formOf({}, Buffer.from('R')), 400, 'file', 'invalid_value'],
  ['a file of 26 MiB', formOf({}, wav(26 * MIB)), 413, 'file', 'payload_too_large'],
  ['two files', formBody([model, file, file]), 400, 'file', 'invalid_value'],
  ['no file', formBody([model]), 400, 'file', 'missing_required_parameter'],
  ['no model', formBody([file]), 400, 'model', 'missing_required_parameter'],
  ['an unknown model', formOf({ model: 'x' }), 404, 'model', 'model_not_found'],
  ['a wrong temperature', formOf({ temperature: 'x' }), 400, 'temperature', 'invalid_value'],
  ['a wrong format', formOf({ response_format: 'pdf' }), 400, 'response_format', 'invalid_value'],
  ['an unknown field', formOf({ wat: '1' }), 400, 'wat', 'unknown_parameter'],
  ['101 parts', formBody([file, ...Array<Part>(100).fill(model)]), 400, null, null],
  ['a long field', formOf({ prompt: 'x'.repeat(70_000) }), 400, null, null],
  ['no closing boundary', formOf().subarray(0, -9), 400, null, null],
  ['no form', Buffer.alloc(200_000, 'x'), 400, null, null],
  ['nothing', Buffer.alloc(0), 400, null, null],
])('refuses %s', async (_, body, status, param, code) => {
  const answer = await sendForm(gateway, body);
  expect(answer.status).toBe(status);
  const envelope = { error: { type: 'invalid_request_error', param, code } };
  expect(await answer.json()).toMatchObject(envelope);
});

it('refuses other types of bodies, and encoded ones', async () => {
  const types = ['application/json', 'multipart/form-data', 'multipart/mixed; boundary=b', ''];
  for (const type of types) {
    const answer = await sendForm(gateway, formOf(), { headers: { 'content-type': type } });
    expect([type, answer.status]).toEqual([type, 415]);
  }
  const encoded = await sendForm(gateway, formOf(), { headers: { 'content-encoding': 'gzip' } });
  expect(encoded.status).toBe(415);
});

it('finds the container by the bytes, whatever the file is called', async () => {
  const odd = { ...file, filename: '../../etc/пароль\u0000.exe' };
  const answer = await sendForm(gateway, formBody([odd, model]));
  expect(answer.status).toBe(200);
});

it('refuses a declared length before the body arrives', async () => {
  const head = await firstAnswer(`content-length: ${27 * MIB}`, '');
  expect(head).toContain('413');
});

it('answers a form that never ends, and keeps nothing of it', async () => {
  const start = formBody([file]).subarray(0, 1_000);
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
  const begin = `${start.length.toString(16)}\r\n${start.toString('latin1')}\r\n`;
  const head = await firstAnswer('transfer-encoding: chunked', begin, chunk);
  expect(head).toContain('413');
});

it('keeps nothing of a form that is cut', async () => {
  const body = formOf({}, wav(10 * MIB));
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`${requestHead(`content-length: ${body.length}`)}\r\n\r\n`);
  socket.write(body.subarray(0, 3 * MIB));
  const spool = async () => (await gateway.metric('audio_spool_bytes{process="gateway"}')) ?? 0;
  await until(async () => (await spool()) >= body.length, 10_000, 'bytes in the spool', 5);
  socket.destroy();
});

function requestHead(...fields: string[]): string {
  const { host } = new URL(gateway.url);
  return [
    'POST /v1/audio/transcriptions HTTP/1.1',
    `host: ${host}`,
    `content-type: ${FORM_TYPE}`,
    ...fields,
  ].join('\r\n');
}

/** The first bytes of the answer to a request whose body goes on until then. */
async function firstAnswer(field: string, begin: string, repeated?: string): Promise<string> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  let answer = '';
  socket.on('data', (bytes) => (answer += String(bytes)));
  socket.write(`${requestHead(field)}\r\n\r\n${begin}`, 'latin1');
  const send = (): void => {
    if (repeated === undefined || answer !== '' || socket.destroyed) return;
    if (socket.write(repeated)) setImmediate(send);
    else socket.once('drain', send);
  };
  send();
  await until(() => answer !== '', 30_000, 'an answer', 5);
  socket.destroy();
  return answer.split('\r\n')[0] ?? '';
}
