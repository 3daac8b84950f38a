import { InvalidArgumentError, type Command } from 'commander';
import { isNightshiftError } from '../../core/errors';
import { withoutTrailingSlashes } from '../../platform/http-client/base-url';
import { type ClientIo, processIo } from '../batches/client-io';
import { EXIT, exitCodeOfError, type ExitCode } from '../batches/exit-codes';
import { listenForInterrupts } from '../batches/interrupts';
import { examples } from '../help';
import { openLiveAudio } from './live-audio';
import { transcribeLive } from './live-client';
import { liveWriter } from './live-writer';

const DEFAULT_GATEWAY_URL = 'http://127.0.0.1:8002/v1';

/** Flags of `nightshift audio stream`. */
interface StreamFlags {
  readonly model: string;
  readonly language?: string;
  readonly speed: number;
  readonly rate: number;
  readonly gatewayUrl: string;
  readonly apiKey?: string;
  readonly json?: boolean;
}

/** Adds `nightshift audio`: commands for speech. */
export function addAudioCommands(program: Command, makeIo: () => ClientIo = processIo): void {
  const audio = program.command('audio').description('transcribe speech with the gateway');
  audio
    .command('stream')
    .description('transcribe live audio: text appears while it is heard')
    .argument('<file>', 'WAV file, or raw 16-bit PCM of one channel; - for standard input')
    .option('--model <name>', 'model that transcribes', 'whisper-1')
    .option('--language <code>', 'spoken language as ISO 639-1, such as en')
    .option('--speed <factor>', 'times the speed of the audio; 0: as fast as possible', factor, 1)
    .option('--rate <hz>', 'samples per second of raw PCM', hertz, 24_000)
    .option('--gateway-url <url>', 'base URL of the gateway', DEFAULT_GATEWAY_URL)
    .option('--api-key <key>', 'API key (env OPENAI_API_KEY is safer, for a gateway that you name)')
    .option('--json', 'print every event as a line of JSON')
    .addHelpText(
      'after',
      examples([
        'nightshift audio stream talk.wav',
        'arecord -f S16_LE -r 24000 -c 1 -t raw | nightshift audio stream -',
      ]),
    )
    .action((file: string, flags: StreamFlags) => runStream(makeIo(), file, flags));
}

async function runStream(io: ClientIo, file: string, flags: StreamFlags): Promise<void> {
  const interrupts = listenForInterrupts(io.signals);
  try {
    io.exitWith(await stream(io, file, { flags, signal: interrupts.signal }));
  } catch (error) {
    const isInterrupted = interrupts.pending !== null;
    const text = isNightshiftError(error) ? error.message : String(error);
    io.stderr.write(`nightshift: ${isInterrupted ? 'interrupted' : text}\n`);
    io.exitWith(isInterrupted ? EXIT.interrupted : exitCodeOfError(error));
  } finally {
    interrupts.close();
  }
}

async function stream(
  { stdout, env }: ClientIo,
  file: string,
  { flags, signal }: { readonly flags: StreamFlags; readonly signal: AbortSignal },
): Promise<ExitCode> {
  const { model, language = null, speed, rate, json = false } = flags;
  const audio = await openLiveAudio(file, rate);
  const writer = liveWriter(stdout, json);
  // Any program may listen at the default address, so it gets no key of the environment.
  const isNamed = flags.gatewayUrl !== DEFAULT_GATEWAY_URL;
  const apiKey = flags.apiKey ?? ((isNamed && env['OPENAI_API_KEY']) || null);
  const url = withoutTrailingSlashes(flags.gatewayUrl);
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
