import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { Transcription } from '../../core/audio/transcription';
import type { WireBatchEvent, WireBatchPart } from '../../proto/audio-messages';
import type { BatchCall, CallEnd, RunningCall } from './audio-calls';
import { failureOf } from './failures';
import { CallRun } from './running-call';
import { MessageSender } from './send-audio';
import { endOf } from './stream-end';
import { transcriptionOf } from './transcripts';

/**
 * Sends several recordings in one call. Each gets its own outcome; of two outcomes of one recording the first counts
 * (docs/design/audio-calls.md#calls).
 */
export function runBatchCall(
  rpc: ClientDuplexStream<WireBatchPart, WireBatchEvent>,
  call: BatchCall,
): RunningCall<null> {
  const open = new Set(call.items.keys());
  const run = new CallRun({ status: endOf(rpc), cancel: () => rpc.cancel() }, () =>
    // A worker that forgets a recording has not done its part.
    open.size === 0 ? DONE : null,
  );
  rpc.on('data', (event: WireBatchEvent) => {
    const end = endOfItem(event);
    if (end !== null && open.delete(event.item)) run.tell(() => call.onItem(event.item, end));
  });
  const sender = new MessageSender(rpc, run);
  run.send(async () => {
    for (const [item, { options, audio }] of call.items.entries()) {
      if (!(await sender.send({ item, part: { options } }))) return;
      if (!(await sender.sendAudio(audio, (chunk) => ({ item, part: { chunk } })))) return;
      if (!(await sender.send({ item, end: true }))) return;
    }
    rpc.end();
  });
  return { ended: run.ended.then(withoutResult), abort: () => run.abort() };
}

const DONE = true;

function endOfItem({ outcome, event, failure }: WireBatchEvent): CallEnd<Transcription> | null {
  if (outcome === 'failure' && failure !== undefined) {
    return { ok: false, failure: failureOf({ code: failure.code, details: failure.message }) };
  }
  const result = event?.event === 'result' ? event.result : undefined;
  return result === undefined ? null : { ok: true, result: transcriptionOf(result) };
}

function withoutResult(end: CallEnd<boolean>): CallEnd<null> {
  return end.ok ? { ok: true, result: null } : end;
}
