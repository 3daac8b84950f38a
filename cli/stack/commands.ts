import { type Command, InvalidArgumentError, Option } from 'commander';
import { configOption } from '../config-flag';
import { examples } from '../help';
import { parsePort } from '../port-flag';
import { runDemo, type DemoFlags } from './demo';
import { runDev } from './dev';
import { runFlowScene, type FlowSceneFlags } from './flow-scene/flow-scene';

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
    .addOption(
      new Option('--scene <name>', 'show something else instead: users beside a batch').choices([
        'flow',
      ]),
    )
    .addOption(
      new Option(
        '--providers',
        "delegate one model of the batch to a simulated provider's batch API",
      ).conflicts(['input', 'scene']),
    )
    .option('--seconds <n>', 'of the scene: length of each part (default: 22)', parseSeconds)
    .option('--record <file>', 'of the scene: write every answer to this file, as JSON')
    .addHelpText(
      'after',
      examples([
        'nightshift demo',
        'nightshift demo --input my-requests.jsonl',
        'nightshift demo --providers      # one batch over a local and a delegated model',
        'nightshift demo --scene flow     # users beside a batch, without and with the gateway',
      ]),
    )
    .action((flags: DemoFlags & FlowSceneFlags & { readonly scene?: 'flow' }) =>
      flags.scene === 'flow' ? runFlowScene(flags) : runDemo(flags),
    );
}

/** The first 8 s do not count. */
const MIN_SECONDS = 10;
const MAX_SECONDS = 600;

function parseSeconds(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= MIN_SECONDS && value <= MAX_SECONDS) return value;
  throw new InvalidArgumentError(`expected a whole number from ${MIN_SECONDS} to ${MAX_SECONDS}`);
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
