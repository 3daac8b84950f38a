import { connect } from 'node:net';
import { until } from '../../support/until';
import { closeAll } from '../gateway-fixtures';
import { answerCall, formOf, startAudioGateway, startWorker, TRANSCRIPT } from './audio-fixtures';
import { FORM_TYPE } from './forms';

afterEach(closeAll);

const PIECE = 'word '.repeat(2_000);
const PIECES = 2_000;

it('joins pieces of a transcript while its client does not read, and loses none', async () => {
  let isAnswered = false;
  const text = PIECE.repeat(PIECES);
  const worker = await startWorker(({ rpc }) => {
    for (let i = 0; i < PIECES; i++) rpc.write({ delta: PIECE });
    answerCall({ rpc }, { ...TRANSCRIPT, text });
    rpc.once('finish', () => (isAnswered = true));
  });
  const gateway = await startAudioGateway([worker]);
  const { hostname, port, host } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  const body = formOf({ stream: 'true' });
  socket.pause();
  socket.write(
    `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n` +
      `content-type: ${FORM_TYPE}\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
  await until(() => isAnswered, 30_000, 'the whole transcript at the gateway', 5);
  const pieces: Buffer[] = [];
  for await (const chunk of socket) pieces.push(chunk as Buffer);
  const answer = Buffer.concat(pieces).toString('latin1');
  const unchunked = answer.slice(answer.indexOf('\r\n\r\n') + 4).replace(/\r\n[0-9a-f]+\r\n/g, '');
  const events = unchunked.split('\n\n').filter((event) => event.includes('transcript.text.delta'));
  const deltas = events.map((event) => {
    const [data = ''] = /\{.*\}/s.exec(event) ?? [];
    return (JSON.parse(data) as { delta: string }).delta;
  });
  expect(deltas.join('') === text).toBe(true);
  expect(deltas.length).toBeLessThan(PIECES);
  expect(unchunked).toContain('data: [DONE]');
}, 60_000);
