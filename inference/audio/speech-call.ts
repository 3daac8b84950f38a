import type { ClientReadableStream } from '@grpc/grpc-js';
import type { WireSpeechChunk } from '../../proto/audio-messages';
import type { CallEnd, RunningCall, SpeechCall } from './audio-calls';
import { CallRun } from './running-call';
import { secondsOf } from './stated-numbers';
import { endOf } from './stream-end';

/**
 * Takes speech piece by piece. While its owner is busy with one, no other is read, so that a slow client slows the
 * worker down (docs/design/audio-calls.md#calls).
 */
export function runSpeechCall(
  rpc: ClientReadableStream<WireSpeechChunk>,
  call: Pick<SpeechCall, 'onChunk'>,
): RunningCall<null> {
  let hasAudio = false;
  const run = new CallRun({ status: endOf(rpc), cancel: () => rpc.cancel() }, () =>
    // Speech without a byte is no speech.
    hasAudio ? true : null,
  );
  rpc.on('data', (chunk: WireSpeechChunk) => {
    hasAudio ||= chunk.audio.length > 0;
    run.tell(() => {
      const taken = call.onChunk(plausible(chunk));
      if (taken === undefined) return;
      rpc.pause();
      // After an error, too: the call has ended when all its messages were read.
      void taken.catch((error: unknown) => run.refuse(error)).finally(() => rpc.resume());
    });
  });
  return {
    ended: run.ended.then((end): CallEnd<null> => (end.ok ? { ok: true, result: null } : end)),
    // What waits to be read is dropped, and the call ends at once.
    abort: () => {
      run.abort();
      rpc.resume();
    },
  };
}

function plausible({ audio, durationS, usage }: WireSpeechChunk): WireSpeechChunk {
  const audioSeconds = secondsOf(usage?.audioSeconds ?? 0);
  return {
    ...{ audio, durationS: secondsOf(durationS) },
    usage: usage === null ? null : { ...usage, audioSeconds },
  };
}
