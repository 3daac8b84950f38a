import { existsSync, statSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import type { Command } from 'commander';
import { NightshiftError } from '../../core/errors';
import type { ClientIo } from '../batches/client-io';
import { BATCH_EXIT_HELP, EXIT, type ExitCode } from '../batches/exit-codes';
import { makeFolder } from '../batches/make-folder';
import { createReporter } from '../batches/reporter';
import { fileExists, STDOUT } from '../batches/result-targets';
import { saveFile } from '../batches/save-file';
import { withSession } from '../batches/session';
import { examples } from '../help';
import { openGateway } from './gateway-client';
import { gatewayAccess, withGatewayFlags, type GatewayFlags } from './gateway-flags';
import { runAudio } from './run-audio';
import { transcribeBatch, type TranscriptTarget } from './transcribe-batch';
import { showTranscript, transcribeFile } from './transcribe-file';
import {
  extensionOf,
  TRANSCRIPT_FORMATS,
  transcriptFormat,
  type TranscriptFormat,
} from './transcript-format';

/** Flags of `nightshift audio transcribe`. */
interface TranscribeFlags extends GatewayFlags {
  readonly model: string;
  readonly format: TranscriptFormat;
  readonly language?: string;
  readonly prompt?: string;
  readonly out?: string;
  readonly force?: boolean;
  readonly realtime?: boolean;
  readonly batch?: boolean;
  readonly baseUrl?: string;
}

/** How long the API may be away while a batch is watched. */
const PATIENCE_MS = 10 * 60_000;

/** Adds `nightshift audio transcribe`. */
export function addTranscribe(audio: Command, makeIo: () => ClientIo): void {
  const command = audio
    .command('transcribe')
    .description('transcribe recordings: one at once, several as a durable batch')
    .argument('<files...>', 'recordings: flac, m4a, mp3, mp4, ogg, wav, webm')
    .option('--model <name>', 'model that transcribes', 'whisper-1')
    .option('--format <name>', TRANSCRIPT_FORMATS, transcriptFormat, 'text' as const)
    .option('--language <code>', 'spoken language as ISO 639-1, such as en')
    .option('--prompt <text>', 'words that may occur, such as names')
    .option('-o, --out <path>', 'file for one transcript (default: stdout); folder for several')
    .option('--force', 'overwrite existing files')
    .option('--realtime', 'go before recordings that may wait')
    .option('--batch', 'run a batch also for one file; results are written beside the recordings')
    .option('--base-url <url>', 'base URL of the API, for batches (env OPENAI_BASE_URL)');
  withGatewayFlags(command)
    .addHelpText('after', BATCH_EXIT_HELP)
    .addHelpText(
      'after',
      examples([
        'nightshift audio transcribe talk.mp3',
        'nightshift audio transcribe talk.mp3 --format srt -o talk.srt',
        'nightshift audio transcribe calls/*.wav --language en --out transcripts',
      ]),
    )
    .action((files: string[], flags: TranscribeFlags) => transcribe(makeIo(), files, flags));
}

async function transcribe(io: ClientIo, files: string[], flags: TranscribeFlags): Promise<void> {
  const [only] = files;
  if (files.length === 1 && only !== undefined && flags.batch !== true) {
    return runAudio(io, (signal) => transcribeOne(io, only, { flags, signal }));
  }
  const { force = false } = flags;
  return withSession(io, flags, async (session) => {
    if (flags.realtime === true) throw refusal('A batch may wait: leave out --realtime.');
    const targets = targetsOf(files, flags);
    if (flags.out !== undefined) await makeFolder(flags.out, '--out');
    return transcribeBatch({ ...flags, session, targets, force, patienceMs: PATIENCE_MS });
  });
}

async function transcribeOne(
  io: ClientIo,
  file: string,
  { flags, signal }: { readonly flags: TranscribeFlags; readonly signal: AbortSignal },
): Promise<ExitCode> {
  const { out: target = STDOUT, force = false, format } = flags;
  const { stdout } = io;
  const reporter = createReporter(io.stderr, io.env);
  const client = openGateway(gatewayAccess(flags, io.env), io.env);
  const wish = { ...flags, client, reporter, signal, isRealtime: flags.realtime === true };
  try {
    if (target === STDOUT && format === 'text' && stdout.isTTY === true) {
      await showTranscript(file, wish, io);
      return EXIT.completed;
    }
    if (target !== STDOUT && existsSync(target) && !force) throw fileExists(target);
    const text = await transcribeFile(file, wish);
    await saveFile({ target, force, stdout }, async (sink) => void sink.write(text));
    return EXIT.completed;
  } finally {
    reporter.clear();
  }
}

/** Transcripts are beside their recordings, or in the folder of `--out`. @throws invalid_request if two would be one file */
function targetsOf(files: string[], { out, format, force }: TranscribeFlags): TranscriptTarget[] {
  if (out !== undefined && existsSync(out) && !statSync(out).isDirectory()) {
    throw refusal(`${out} is no folder: name another one with --out`);
  }
  const targets = files.map((recording) => {
    const beside = recording.slice(0, recording.length - extname(recording).length);
    const stem = out === undefined ? beside : join(out, basename(beside));
    return { recording, target: `${stem}.${extensionOf(format)}` };
  });
  const seen = new Set<string>();
  for (const { recording, target } of targets) {
    if (seen.has(target)) throw refusal(`${target} would get two transcripts: rename ${recording}`);
    if (existsSync(target) && force !== true) throw fileExists(target);
    seen.add(target);
  }
  return targets;
}

function refusal(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
