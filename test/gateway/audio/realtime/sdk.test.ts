import { connect as connectTcp } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { until } from '../../../support/until';
import { closeAll, onClose } from '../../gateway-fixtures';
import { connect, LATE_MS, liveGateway, liveWorker, PCM_100_MS } from './realtime-scene';

jest.setTimeout(60_000);
afterEach(closeAll);

describe("OpenAI's Node SDK", () => {
  it('transcribes live', async () => {
    const worker = await liveWorker();
    const gateway = await liveGateway([worker]);
    (await connect(gateway)).socket.close();
    const { port } = new URL(gateway.url);
    const client = new OpenAI({ apiKey: 'sk-1', baseURL: `https://127.0.0.1:${port}/v1` });
    // The class always uses TLS, which a proxy before the gateway would end.
    const options = { createConnection: () => connectTcp(Number(port), '127.0.0.1') } as object;
    const realtime = new OpenAIRealtimeWS({ model: 'whisper-1', options }, client);
    onClose(async () => realtime.close());
    const seen: string[] = [];
    realtime.on('error', (error) => seen.push(`error: ${error.message}`));
    realtime.on('session.created', () => {
      realtime.send({
        type: 'session.update',
        session: {
          type: 'transcription',
          audio: {
            input: {
              format: { type: 'audio/pcm', rate: 24_000 },
              transcription: { model: 'whisper-1', language: 'en' },
              turn_detection: null,
            },
          },
        },
      });
      const audio = PCM_100_MS.toString('base64');
      realtime.send({ type: 'input_audio_buffer.append', audio });
      realtime.send({ type: 'input_audio_buffer.commit' });
    });
    realtime.on('conversation.item.input_audio_transcription.delta', ({ delta }) => {
      seen.push(delta ?? '');
    });
    realtime.on('conversation.item.input_audio_transcription.completed', (event) => {
      seen.push(`completed: ${event.transcript} ${event.usage.type}`);
    });
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    await until(() => stream.frames.some(({ commit }) => commit), LATE_MS, 'the commit');
    stream.say('FINAL', { text: 'hello' });
    stream.say('ITEM_DONE');
    await until(() => seen.length === 2, LATE_MS, 'the transcript');
    expect(seen).toEqual(['hello', 'completed: hello duration']);
  });
});
