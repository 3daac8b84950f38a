import type { Command } from 'commander';
import { type ClientIo, processIo } from '../batches/client-io';
import { addSpeak } from './speak-command';
import { addStream } from './stream-command';
import { addTranscribe } from './transcribe-command';
import { addWorkers } from './workers-command';

/** Adds `nightshift audio`: commands for speech. */
export function addAudioCommands(program: Command, makeIo: () => ClientIo = processIo): void {
  const audio = program.command('audio').description('transcribe and speak with the gateway');
  addTranscribe(audio, makeIo);
  addSpeak(audio, makeIo);
  addStream(audio, makeIo);
  addWorkers(audio, makeIo);
}
