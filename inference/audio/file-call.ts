import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { Transcription } from '../../core/audio/transcription';
import type { WireFileEvent, WireFilePart } from '../../proto/audio-messages';
import type { FileCall, RunningCall } from './audio-calls';
import { CallRun } from './running-call';
import { MessageSender } from './send-audio';
import { endOf } from './stream-end';
import { segmentOf, transcriptionOf } from './transcripts';

/** Sends one recording, and takes its transcript (docs/design/audio-calls.md#calls). */
export function runFileCall(
  rpc: ClientDuplexStream<WireFilePart, WireFileEvent>,
  call: FileCall,
): RunningCall<Transcription> {
  let result: Transcription | null = null;
  const run = new CallRun({ status: endOf(rpc), cancel: () => rpc.cancel() }, () => result);
  rpc.on('data', ({ event, delta, segment, result: transcript }: WireFileEvent) => {
    run.tell(() => {
      if (event === 'delta' && delta !== undefined) call.onDelta?.(delta);
      else if (event === 'segment' && segment !== undefined) call.onSegment?.(segmentOf(segment));
      else if (event === 'result' && transcript !== undefined) result = transcriptionOf(transcript);
    });
  });
  const sender = new MessageSender(rpc, run);
  run.send(async () => {
    if (!(await sender.send({ options: call.options }))) return;
    if (await sender.sendAudio(call.audio, (chunk) => ({ chunk }))) rpc.end();
  });
  return run;
}
