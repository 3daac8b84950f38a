import { type Command, Option } from 'commander';
import { configOption } from '../config-flag';
import { examples } from '../help';
import { parsePort } from '../port-flag';
import { runDemo } from './demo';
import { runDev } from './dev';

/** Adds the commands that run everything on one machine. */
export function addStackCommands(program: Command): void {
  program.commandsGroup('Everything on this machine:');
  withStackFlags(program.command('dev'), '8000')
    .description('start everything on this machine and keep it running; Ctrl-C drains and stops')
    .option('--headless', 'start Temporal without its UI, which has no authentication')
    .addHelpText(
      'after',
      examples([
        'nightshift dev',
        'nightshift dev --port 8010 --data-dir /var/tmp/nightshift',
        'nightshift dev --config nightshift.yaml --no-simulator',
        'nightshift dev --store s3 --data-dir .nightshift-s3',
        'TEMPORAL_ADDRESS=temporal:7233 nightshift dev     # uses that server, starts no Temporal',
      ]),
    )
    .action(runDev);
  withStackFlags(program.command('demo'), '8000 or the next free one')
    .description('start everything, run one batch, show the results, stop everything')
    .option('--input <file>', 'JSONL file of requests (default: the 200 requests of examples/)')
    .addHelpText(
      'after',
      examples(['nightshift demo', 'nightshift demo --input my-requests.jsonl']),
    )
    .action(runDemo);
}

function withStackFlags(command: Command, port: string): Command {
  return command
    .addOption(configOption())
    .option('--data-dir <dir>', 'folder for state and logs', '.nightshift')
    .addOption(storeOption())
    .option('--port <n>', `port of the API (default: ${port})`, parsePort)
    .option('--host <address>', 'address that the API listens on (default: 127.0.0.1)')
    .option('--no-simulator', 'do not start the simulated model server if no gateway is configured')
    .option(
      '--no-gateway',
      'do not start the inference gateway: the worker sends to the model servers itself',
    );
}

/** The default depends on the data directory, so the flag has none of its own. */
function storeOption(): Option {
  const text = 'keep objects in a folder, or in an S3 server that is started too';
  return new Option('--store <kind>', `${text} (default: as before, at first filesystem)`).choices([
    'filesystem',
    's3',
  ]);
}
