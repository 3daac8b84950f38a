import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseDurationMs } from '../../platform/units';
import { examples } from '../help';
import { runCancel, runList, runResults, runShow, runSubmit, runWatch } from './batch-commands';
import { processIo, type ClientIo } from './client-io';
import { withConnectionFlags, type ConnectionFlags } from './connection-flags';
import { BATCH_EXIT_HELP, PLAIN_EXIT_HELP } from './exit-codes';
import { runJobs, type JobFlags } from './job-commands';
import type { ResultFlags } from './result-targets';
import { runRun, type RunFlags } from './run-command';
import type { SubmitFlags } from './submit-batch';

/** Adds the commands for users of a server. They work with any OpenAI-compatible Batches API. */
export function addBatchCommands(program: Command, makeIo: () => ClientIo = processIo): void {
  program.commandsGroup('Batches (any OpenAI-compatible server):');
  addRun(program, makeIo);
  addSubmit(program, makeIo);
  addReadCommands(program, makeIo);
  addJobs(program, makeIo);
  addCancel(program, makeIo);
  addResults(program, makeIo);
}

function addRun(program: Command, makeIo: () => ClientIo): void {
  const command = program
    .command('run')
    .argument('<input.jsonl>', 'file with one JSON request per line')
    .description('run a batch from file to results: upload, watch, download, summarize');
  withConnectionFlags(withPatience(withResultFlags(withSubmitFlags(command), '<input>')))
    .addHelpText('after', `\n${RUN_TEXT}\n${BATCH_EXIT_HELP}`)
    .addHelpText(
      'after',
      examples([
        'nightshift run requests.jsonl',
        'nightshift run requests.jsonl -o answers.jsonl --metadata team=search --force',
        'nightshift run requests.jsonl -o - | jq -r .response.body.choices[0].message.content',
        'OPENAI_API_KEY=sk-… nightshift run requests.jsonl --base-url https://api.openai.com/v1',
      ]),
    )
    .action((input: string, flags: RunFlags) => runRun(makeIo(), input, flags));
}

const RUN_TEXT = `An input line: {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions",
                "body": {"model": "…", "messages": [{"role": "user", "content": "…"}]}}
Ctrl-C asks whether to cancel the batch or leave it running; without a terminal it leaves it
running and prints the commands to continue. While the server is away, --patience limits the retries.`;

function addSubmit(program: Command, makeIo: () => ClientIo): void {
  const command = program
    .command('submit')
    .argument('<input.jsonl>', 'file with one JSON request per line')
    .description('upload a file, create its batch, print the batch id');
  withConnectionFlags(withSubmitFlags(command))
    .addHelpText('after', PLAIN_EXIT_HELP)
    .addHelpText('after', examples(['id=$(nightshift submit requests.jsonl)']))
    .action((input: string, flags: ConnectionFlags & SubmitFlags) =>
      runSubmit(makeIo(), input, flags),
    );
}

function addReadCommands(program: Command, makeIo: () => ClientIo): void {
  withConnectionFlags(program.command('list'))
    .description('show the newest batches')
    .option('--limit <n>', 'largest number of batches to show', parseCount, 20)
    .addHelpText('after', PLAIN_EXIT_HELP)
    .addHelpText(
      'after',
      examples(['nightshift list --limit 5', "nightshift list --json | jq -r '.[].id'"]),
    )
    .action((flags: ConnectionFlags & { limit: number }) => runList(makeIo(), flags));
  withConnectionFlags(program.command('show'))
    .argument('<id>', 'id of the batch')
    .description('show everything about a batch, including the errors of a rejected file')
    .addHelpText('after', PLAIN_EXIT_HELP)
    .addHelpText('after', examples(['nightshift show batch_…', 'nightshift show batch_… --json']))
    .action((id: string, flags: ConnectionFlags) => runShow(makeIo(), id, flags));
  withConnectionFlags(withPatience(program.command('watch')))
    .argument('<id>', 'id of the batch')
    .description('show the progress of a batch until it ends')
    .addHelpText('after', BATCH_EXIT_HELP)
    .addHelpText('after', examples(['nightshift watch batch_… && nightshift results batch_…']))
    .action((id: string, flags: ConnectionFlags & { patience: number }) =>
      runWatch(makeIo(), id, flags),
    );
}

function addJobs(program: Command, makeIo: () => ClientIo): void {
  withConnectionFlags(program.command('jobs'))
    .argument('[id]', 'id of a batch (default: the newest batches)')
    .description('show the jobs of batches at providers (Nightshift only)')
    .option('--limit <n>', 'without an id: number of batches to look at', parseCount, 20)
    .option('--provider-state', 'print the jobs as the provider_state of other batch services')
    .addHelpText('after', PLAIN_EXIT_HELP)
    .addHelpText(
      'after',
      examples(['nightshift jobs', 'nightshift jobs batch_…', 'nightshift jobs batch_… --json']),
    )
    .action((id: string | undefined, flags: JobFlags) => runJobs(makeIo(), id, flags));
}

function addCancel(program: Command, makeIo: () => ClientIo): void {
  withConnectionFlags(program.command('cancel'))
    .argument('<id>', 'id of the batch')
    .description('cancel a batch; finished answers are kept')
    .addHelpText('after', PLAIN_EXIT_HELP)
    .addHelpText('after', examples(['nightshift cancel batch_…']))
    .action((id: string, flags: ConnectionFlags) => runCancel(makeIo(), id, flags));
}

function addResults(program: Command, makeIo: () => ClientIo): void {
  const command = program
    .command('results')
    .argument('<id>', 'id of the batch, which must have ended')
    .description('download the output file and the error file of a batch');
  withConnectionFlags(withResultFlags(command, '<id>'))
    .addHelpText('after', BATCH_EXIT_HELP)
    .addHelpText(
      'after',
      examples([
        'nightshift results batch_… -o answers.jsonl',
        'nightshift results batch_… -o -',
        'nightshift results batch_… --audio spoken',
      ]),
    )
    .action((id: string, flags: ConnectionFlags & ResultFlags) => runResults(makeIo(), id, flags));
}

function withSubmitFlags(command: Command): Command {
  return command
    .option('--endpoint <path>', "endpoint of all requests (default: the first request's url)")
    .option('--window <duration>', 'time until the batch expires, such as 24h', '24h')
    .addOption(
      new Option('--metadata <key=value>', 'metadata of the batch; repeatable').argParser(
        collectPair,
      ),
    );
}

function withResultFlags(command: Command, stem: string): Command {
  return command
    .option(
      '-o, --output <file>',
      `file for successful answers; - for stdout (default: ${stem}.output.jsonl)`,
    )
    .option(
      '--errors <file>',
      `file for failed requests; - for stdout (default: ${stem}.errors.jsonl)`,
    )
    .option('--audio <folder>', 'unpack speech from the output file into files named by custom_id')
    .option('--force', 'overwrite existing files');
}

function withPatience(command: Command): Command {
  const patience = new Option('--patience <duration>', 'how long to retry while the server is away')
    .default(600_000, '10m')
    .argParser(parseDuration);
  return command.addOption(patience);
}

function collectPair(
  text: string,
  previous: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const at = text.indexOf('=');
  if (at > 0) return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
  throw new InvalidArgumentError('expected key=value');
}

function parseDuration(text: string): number {
  const ms = parseDurationMs(text);
  if (ms !== null) return ms;
  throw new InvalidArgumentError('expected a duration with its unit, such as 30s, 10m, 24h');
}

function parseCount(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected a whole number from 1 to 999999');
}
