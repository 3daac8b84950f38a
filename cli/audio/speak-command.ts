import { pipeline } from 'node:stream/promises';
import { InvalidArgumentError, type Command } from 'commander';
import type { SpeechCreateParams } from 'openai/resources/audio/speech';
import { NightshiftError } from '../../core/errors';
import type { ClientIo } from '../batches/client-io';
import { EXIT, PLAIN_EXIT_HELP, type ExitCode } from '../batches/exit-codes';
import { humanBytes } from '../batches/human-format';
import { STDOUT } from '../batches/result-targets';
import { saveFile } from '../batches/save-file';
import { examples } from '../help';
import { askGateway, openGateway } from './gateway-client';
import { gatewayAccess, withGatewayFlags, type GatewayFlags } from './gateway-flags';
import { runAudio } from './run-audio';

/** Flags of `nightshift audio speak`. */
interface SpeakFlags extends GatewayFlags {
  readonly model: string;
  readonly voice: string;
  readonly format?: string;
  readonly speed?: number;
  readonly instructions?: string;
  readonly out: string;
  readonly force?: boolean;
}

const FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'];

/** Adds `nightshift audio speak`. */
export function addSpeak(audio: Command, makeIo: () => ClientIo): void {
  const command = audio
    .command('speak')
    .description('speak a text into a file')
    .argument('<text>', 'what to say')
    .option('--model <name>', 'model that speaks', 'tts-1')
    .option('--voice <name>', 'voice of the model', 'alloy')
    .requiredOption('-o, --out <file>', 'file for the audio; - for stdout')
    .option('--format <name>', `${FORMATS.join(', ')} (default: the extension of --out, else mp3)`)
    .option('--speed <factor>', 'from 0.25 to 4', speed)
    .option('--instructions <text>', 'how to speak, for models that take instructions')
    .option('--force', 'overwrite an existing file');
  withGatewayFlags(command)
    .addHelpText('after', PLAIN_EXIT_HELP)
    .addHelpText(
      'after',
      examples([
        "nightshift audio speak 'Good evening.' -o evening.mp3",
        "nightshift audio speak 'Good evening.' --format wav -o - | aplay",
      ]),
    )
    .action((text: string, flags: SpeakFlags) => {
      const io = makeIo();
      return runAudio(io, (signal) => speak(io, text, { flags, signal }));
    });
}

async function speak(
  { stdout, stderr, env }: ClientIo,
  input: string,
  { flags, signal }: { readonly flags: SpeakFlags; readonly signal: AbortSignal },
): Promise<ExitCode> {
  const { model, voice, out: target, speed: factor, instructions, force = false } = flags;
  const format = formatOf(flags);
  if (target === STDOUT && stdout.isTTY === true) {
    throw new NightshiftError(
      'invalid_request',
      'Audio is not written to a terminal: name a file.',
    );
  }
  const client = openGateway(gatewayAccess(flags, env), env);
  const request: SpeechCreateParams = {
    ...{ model, voice, input, response_format: format as 'mp3' },
    ...(factor === undefined ? {} : { speed: factor }),
    ...(instructions === undefined ? {} : { instructions }),
  };
  let bytes = 0;
  await saveFile({ target, force, stdout }, async (sink) => {
    const { body } = await askGateway(client, () =>
      client.audio.speech.create(request, { signal }),
    );
    const pieces = unbroken((body ?? []) as AsyncIterable<Uint8Array>, (size) => (bytes += size));
    await pipeline(pieces, sink, { end: false, signal });
  });
  if (target !== STDOUT) stderr.write(`nightshift: wrote ${target} (${humanBytes(bytes)})\n`);
  return EXIT.completed;
}

/** The pieces of an answer. @throws unavailable if it breaks off */
async function* unbroken(
  pieces: AsyncIterable<Uint8Array>,
  onPiece: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of pieces) {
      onPiece(piece.length);
      yield piece;
    }
  } catch (cause) {
    const message = 'The gateway broke the speech off: try again.';
    throw new NightshiftError('unavailable', message, { cause });
  }
}

function formatOf({ format, out }: SpeakFlags): string {
  const extension = /\.([a-z0-9]+)$/i.exec(out)?.[1]?.toLowerCase() ?? '';
  const chosen = format ?? (FORMATS.includes(extension) ? extension : 'mp3');
  if (FORMATS.includes(chosen)) return chosen;
  const message = `"${chosen}" is no format of speech: choose one of ${FORMATS.join(', ')}.`;
  throw new NightshiftError('invalid_request', message);
}

function speed(text: string): number {
  const value = Number(text);
  if (value >= 0.25 && value <= 4) return value;
  throw new InvalidArgumentError('expected a number from 0.25 to 4');
}
