import type { Command } from 'commander';
import type { AudioPage, AudioPageWorker } from '../../platform/audio-page';
import type { ClientIo } from '../batches/client-io';
import { EXIT, type ExitCode } from '../batches/exit-codes';
import { humanBytes, humanDuration } from '../batches/human-format';
import { paintFor } from '../batches/paint';
import { fittedTable, type Column, type TableStyle } from '../flow/fitted-table';
import { DEFAULT_OBSERVABILITY_URL, readAdminPage } from '../flow/read-page';
import { examples } from '../help';
import { runAudio } from './run-audio';

/** Flags of `nightshift audio workers`. */
interface WorkersFlags {
  readonly url: string;
  readonly json?: boolean;
}

const PATH = '/admin/audio';

/** Adds `nightshift audio workers`. */
export function addWorkers(audio: Command, makeIo: () => ClientIo): void {
  audio
    .command('workers')
    .description('show the audio workers of the gateway, their models, and what waits for them')
    .option(
      '--url <url>',
      "base URL of the gateway's observability port",
      DEFAULT_OBSERVABILITY_URL,
    )
    .option('--json', 'print the page as one JSON document')
    .addHelpText(
      'after',
      examples([
        'nightshift audio workers',
        "nightshift audio workers --json | jq '.workers[].slots'",
      ]),
    )
    .action((flags: WorkersFlags) => {
      const io = makeIo();
      return runAudio(io, (signal) => showWorkers(io, flags, signal));
    });
}

async function showWorkers(
  { stdout, env }: ClientIo,
  { url, json }: WorkersFlags,
  signal: AbortSignal,
): Promise<ExitCode> {
  const page = await readAdminPage({ url, path: PATH, isPage: isAudioPage }, signal);
  const style = { width: stdout.columns || Infinity, paint: paintFor(stdout, env) };
  const text = json === true ? JSON.stringify(page, null, 2) : audioLines(page, style).join('\n');
  stdout.write(`${text}\n`);
  return EXIT.completed;
}

function isAudioPage(page: object): page is AudioPage {
  return 'workers' in page && Array.isArray(page.workers);
}

function audioLines(page: AudioPage, style: TableStyle): string[] {
  if (page.workers.length === 0) {
    return ['The gateway has no audio workers: name some in gateway.audio.workers.'];
  }
  const { spool, sessions } = page;
  const waits = (['REALTIME', 'BATCH'] as const).map((priority) => {
    const { requests, oldest_ms: oldestMs } = page.waiting[priority];
    const since = oldestMs === null ? '' : ` (oldest ${humanDuration(oldestMs)})`;
    return `${requests} ${priority}${since}`;
  });
  return [
    ...fittedTable(page.workers, WORKER_COLUMNS, style),
    '',
    ...fittedTable(page.models, MODEL_COLUMNS, style),
    '',
    `waiting: ${waits.join(', ')}; live sessions: ${sessions}; spool: ${humanBytes(spool.bytes)} of ${humanBytes(spool.max_bytes)}`,
  ];
}

const WORKER_COLUMNS: readonly Column<AudioPageWorker>[] = [
  { title: 'worker', kind: 'name', cell: ({ address }) => address },
  {
    title: 'state',
    kind: 'word',
    cell: ({ status }) => [status === 'serving' ? 'green' : 'red', status],
  },
  { title: 'slots used', cell: ({ slots }) => `${slots.used} of ${slots.total}` },
  { title: 'blocked', cell: ({ slots }) => String(slots.quarantined) },
  { title: 'streams', cell: ({ streams }) => `${streams.used} of ${streams.total}` },
  { title: 'engine', kind: 'note', cell: ({ engine }) => engine },
  { title: 'reason', kind: 'note', cell: ({ reason }) => reason ?? '' },
];

const MODEL_COLUMNS: readonly Column<AudioPage['models'][number]>[] = [
  { title: 'model', kind: 'name', cell: ({ name }) => name },
  { title: 'worker', kind: 'name', cell: ({ worker }) => worker },
  { title: 'tasks', kind: 'word', cell: ({ tasks }) => listed(tasks).toLowerCase() },
  { title: 'live', kind: 'word', cell: ({ streaming }) => (streaming ? 'yes' : 'no') },
  { title: 'batch', cell: ({ max_batch: size }) => String(size) },
  { title: 'languages', kind: 'note', cell: ({ languages }) => listed(languages) },
  { title: 'voices', kind: 'note', cell: ({ voices }) => listed(voices) },
];

/** An empty list means that there is no limit. */
function listed(values: readonly string[]): string {
  return values.length === 0 ? 'any' : values.join(', ');
}
