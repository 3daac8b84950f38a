import { InvalidArgumentError, type Command } from 'commander';
import type { ClientIo } from '../batches/client-io';
import { EXIT, type ExitCode } from '../batches/exit-codes';
import { examples } from '../help';
import { gatewayAccess, withGatewayFlags, type GatewayFlags } from './gateway-flags';
import { openLiveAudio } from './live-audio';
import { transcribeLive } from './live-client';
import { liveWriter } from './live-writer';
import { runAudio } from './run-audio';

/** Flags of `nightshift audio stream`. */
interface StreamFlags extends GatewayFlags {
  readonly model: string;
  readonly language?: string;
  readonly speed: number;
  readonly rate: number;
  readonly json?: boolean;
}

/** Adds `nightshift audio stream`. */
export function addStream(audio: Command, makeIo: () => ClientIo): void {
  const command = audio
    .command('stream')
    .description('transcribe live audio: text appears while it is heard')
    .argument('<file>', 'WAV file, or raw 16-bit PCM of one channel; - for standard input')
    .option('--model <name>', 'model that transcribes', 'whisper-1')
    .option('--language <code>', 'spoken language as ISO 639-1, such as en')
    .option('--speed <factor>', 'times the speed of the audio; 0: as fast as possible', factor, 1)
    .option('--rate <hz>', 'samples per second of raw PCM', hertz, 24_000);
  withGatewayFlags(command)
    .option('--json', 'print every event as a line of JSON')
    .addHelpText(
      'after',
      examples([
        'nightshift audio stream talk.wav',
        'arecord -f S16_LE -r 24000 -c 1 -t raw | nightshift audio stream -',
      ]),
    )
    .action((file: string, flags: StreamFlags) => {
      const io = makeIo();
      return runAudio(io, (signal) => stream(io, file, { flags, signal }));
    });
}

async function stream(
  { stdout, env }: ClientIo,
  file: string,
  { flags, signal }: { readonly flags: StreamFlags; readonly signal: AbortSignal },
): Promise<ExitCode> {
  const { model, language = null, speed, rate, json = false } = flags;
  const audio = await openLiveAudio(file, rate);
  const writer = liveWriter(stdout, json);
  const { url, apiKey } = gatewayAccess(flags, env);
  await transcribeLive(audio, {
    ...{ url, model, language, apiKey, speed, signal },
    onEvent: (event) => writer.take(event),
  });
  return writer.hasFailed ? EXIT.failed : EXIT.completed;
}

function factor(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 1_000) return value;
  throw new InvalidArgumentError('expected a number between 0 and 1000');
}

function hertz(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 8_000 && value <= 48_000) return value;
  throw new InvalidArgumentError('expected an integer between 8000 and 48000');
}
