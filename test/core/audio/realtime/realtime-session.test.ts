import fc from 'fast-check';
import { RealtimeSession } from '../../../../core/audio/realtime/realtime-session';
import type { ServerEvent } from '../../../../core/audio/realtime/server-event';

const TRANSCRIPTION = 'conversation.item.input_audio_transcription';

function newSession(hasVad: boolean): RealtimeSession {
  let items = 0;
  return new RealtimeSession({
    ...{ id: 'sess_1', expiresAtSec: 0, model: 'm', resumeBufferMs: 30_000 },
    newItemId: () => `item_${items++}`,
    decode: (text) => new Uint8Array(Buffer.from(text, 'base64')),
    hasVad: () => hasVad,
    check: () => undefined,
  });
}

function workerEvent(kind: string, text = '', stableChars = 0, endMs = 0) {
  return { kind, text, stableChars, startMs: 0, endMs, usage: null };
}

const step = fc.oneof(
  fc.record({ do: fc.constant('audio' as const), n: fc.integer({ min: 0, max: 40 }) }),
  fc.record({
    do: fc.constantFrom('commit', 'clear', 'junk', 'language', 'send', 'send', 'lose'),
    n: fc.nat(9),
  }),
  fc.record({
    do: fc.constant('worker' as const),
    n: fc.nat(2_000),
    kind: fc.constantFrom(
      ...['SPEECH_STARTED', 'PARTIAL', 'FINAL', 'SPEECH_STOPPED', 'ITEM_DONE', 'OTHER'],
    ),
    text: fc.lorem({ maxCount: 3 }),
  }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Plays a session as the gateway drives it, with a worker that says anything at any time. */
function play(steps: readonly Step[], hasVad: boolean): ServerEvent[] {
  const session = newSession(hasVad);
  const events: ServerEvent[] = [];
  let isOpen = false;
  const take = (): void => {
    if (!isOpen && session.hasFrames) {
      expect(session.streamSettings.startMs).toBeGreaterThanOrEqual(0);
      session.onStreamOpened();
      isOpen = true;
    }
    while (isOpen && session.nextFrame() !== null);
  };
  const client = (message: object) => session.onText(JSON.stringify(message));
  for (const one of steps) {
    if (one.do === 'audio') events.push(...session.onAudio(new Uint8Array(one.n)));
    else if (one.do === 'commit') events.push(...client({ type: 'input_audio_buffer.commit' }));
    else if (one.do === 'clear') events.push(...client({ type: 'input_audio_buffer.clear' }));
    else if (one.do === 'junk') events.push(...session.onText('x'.repeat(one.n)));
    else if (one.do === 'language') {
      const input = { transcription: { language: one.n % 2 === 0 ? 'en' : 'de' } };
      events.push(
        ...client({ type: 'session.update', session: { type: 'transcription', audio: { input } } }),
      );
    } else if (one.do === 'send') take();
    else if (one.do === 'lose' && isOpen) {
      session.onStreamLost();
      isOpen = false;
    } else if (one.do === 'worker' && isOpen && 'kind' in one) {
      events.push(...session.onWorkerEvent(workerEvent(one.kind, one.text, one.n % 20, one.n)));
    }
    if (session.isStreamStale) {
      session.onStreamReplaced();
      isOpen = false;
    }
  }
  return [...events, ...session.fail('backend_lost', 'gone')];
}

describe('a realtime session', () => {
  it.each([true, false])('keeps its promises in any order of events (detection %s)', (hasVad) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const events = play(steps, hasVad);
        const items = new Map<string, { text: string; ends: number; isCommitted: boolean }>();
        let lastCommitted: string | null = null;
        for (const event of events) {
          if (!('item_id' in event)) continue;
          const item = items.get(event.item_id) ?? { text: '', ends: 0, isCommitted: false };
          items.set(event.item_id, item);
          // After its end, nothing is said about an item.
          expect(item.ends).toBe(0);
          if (event.type === `${TRANSCRIPTION}.delta`) item.text += event.delta;
          if (event.type === `${TRANSCRIPTION}.completed`) {
            expect(item.isCommitted).toBe(true);
            expect(event.transcript).toBe(item.text);
            item.ends++;
          }
          if (event.type === `${TRANSCRIPTION}.failed`) item.ends++;
          if (event.type === 'input_audio_buffer.committed') {
            expect(item.isCommitted).toBe(false);
            expect(event.previous_item_id).toBe(lastCommitted);
            lastCommitted = event.item_id;
            item.isCommitted = true;
          }
        }
        for (const { isCommitted, ends } of items.values()) {
          if (isCommitted) expect(ends).toBe(1);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it('outlasts three lost workers, and counts none that had nothing to do', () => {
    const session = newSession(false);
    expect(session.onStreamLost()).toBe(true);
    session.onAudio(new Uint8Array(480));
    expect([1, 2, 3, 4].map(() => session.onStreamLost())).toEqual([true, true, true, false]);
  });

  it('ignores an end of an item that answers nothing', () => {
    const session = newSession(true);
    session.onAudio(new Uint8Array(480));
    expect(session.onWorkerEvent(workerEvent('ITEM_DONE'))).toEqual([]);
    session.onWorkerEvent(workerEvent('FINAL', 'hi'));
    expect(session.onWorkerEvent(workerEvent('ITEM_DONE')).map(({ type }) => type)).toEqual([
      'input_audio_buffer.committed',
      `${TRANSCRIPTION}.completed`,
    ]);
  });

  it('lets a client repeat its settings after the first audio, but not change them', () => {
    const session = newSession(true);
    const update = (input: object) =>
      session.onText(
        JSON.stringify({
          type: 'session.update',
          session: { type: 'transcription', audio: { input } },
        }),
      )[0]?.type;
    session.onAudio(new Uint8Array(2));
    expect(update({ turn_detection: { type: 'server_vad' } })).toBe('session.updated');
    expect(update({ format: { type: 'audio/pcm', rate: 24_000 } })).toBe('session.updated');
    expect(update({ turn_detection: null })).toBe('error');
    expect(update({ format: { type: 'audio/pcm', rate: 16_000 } })).toBe('error');
    expect(update({ transcription: { prompt: 'names' } })).toBe('session.updated');
  });
});
