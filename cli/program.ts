import { Command, InvalidArgumentError, Option } from 'commander';
import { version } from '../platform/version';
import { addClientCommands } from './batches/client-commands';
import { runConfigCheck, runConfigPrint } from './config-command';
import { runDemo } from './demo';
import { runDev } from './dev';
import { runDoctor } from './doctor';
import { examples } from './help-examples';
import { runApiCommand, runMigrateCommand, runWorkerCommand } from './processes';
import { addKeyCommands } from './key-commands';
import { runReconcileCommand } from './reconcile-command';
import { runSimulatorCommand, simulatorFlags } from './simulator-command';

/** Every command with its flags and examples; the rooms behind them are loaded when they run. */
export function createProgram(): Command {
  const program = new Command('nightshift')
    .description("Durable batch inference: OpenAI's Files and Batches API on Temporal")
    .version(version(), '-V, --version')
    .showHelpAfterError('(run it with --help to see what it takes)')
    .addHelpText('after', examples(['nightshift demo', 'nightshift dev --port 8010']));
  addStackCommands(program);
  addProcessCommands(program);
  addCareCommands(program);
  addKeyCommands(program);
  addClientCommands(program);
  return program;
}

function addStackCommands(program: Command): void {
  withStackFlags(program.command('dev'), '8000')
    .description('start everything on this machine and stay; Ctrl-C drains and stops')
    .option('--headless', "leave out Temporal's UI, which anyone on this machine may use")
    .addHelpText(
      'after',
      examples([
        'nightshift dev',
        'nightshift dev --port 8010 --data-dir /var/tmp/nightshift',
        'nightshift dev --config nightshift.yaml --no-simulator',
        'TEMPORAL_ADDRESS=temporal:7233 nightshift dev     # that part is not embedded then',
      ]),
    )
    .action(runDev);
  withStackFlags(program.command('demo'), '8000 or the next that is free')
    .description('start everything, run a batch through the OpenAI SDK, show the results, stop')
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
    .option('--data-dir <dir>', 'where state and logs are kept', '.nightshift')
    .option('--port <n>', `port of the API (default: ${port})`, parsePort)
    .option('--host <address>', 'address the API binds to (default: 127.0.0.1)')
    .option('--no-simulator', 'do not stand in for a model server where no gateway is set');
}

function addProcessCommands(program: Command): void {
  program
    .command('api')
    .description('run the HTTP API')
    .addOption(configOption())
    .option('--port <n>', 'port to listen on', parsePort)
    .option('--host <address>', 'address to bind to')
    .addHelpText('after', examples(['nightshift api --config /etc/nightshift.yaml']))
    .action(runApiCommand);
  program
    .command('worker')
    .description('run a Temporal worker: workflows and activities')
    .addOption(configOption())
    .addHelpText(
      'after',
      examples([
        'nightshift worker --config /etc/nightshift.yaml',
        'NIGHTSHIFT__CONCURRENCY__GLOBAL=500 nightshift worker --config /etc/nightshift.yaml',
      ]),
    )
    .action(runWorkerCommand);
  const simulator = program
    .command('simulator')
    .description('run an OpenAI-compatible model server without a model');
  for (const flag of simulatorFlags()) simulator.addOption(flag);
  simulator
    .addHelpText(
      'after',
      examples([
        'nightshift simulator --port 8001 --latency-ms 200 --error-rate 0.05',
        'curl -X PUT localhost:8001/simulator/config -d \'{"max_concurrency": 20}\'',
      ]),
    )
    .action(runSimulatorCommand);
}

function addCareCommands(program: Command): void {
  program
    .command('migrate')
    .description('bring the database and the Temporal namespace up to date; safe to repeat')
    .addOption(configOption())
    .option(
      '--skip-namespace',
      'leave search attributes, retention and schedules to those who administer Temporal',
    )
    .addHelpText(
      'after',
      examples([
        'DATABASE_URL=postgres://… nightshift migrate',
        'nightshift migrate --config /etc/nightshift.yaml --skip-namespace',
      ]),
    )
    .action(runMigrateCommand);
  program
    .command('reconcile')
    .description('start again what lost its workflow; a worker does this every minute')
    .addOption(configOption())
    .option('--dry-run', 'only say what would be done')
    .option('--finalize <id>', 'deliver the files of a batch whose finalization was given up')
    .addHelpText(
      'after',
      examples(['nightshift reconcile --dry-run', 'nightshift reconcile --finalize batch_…']),
    )
    .action(runReconcileCommand);
  program
    .command('doctor')
    .description('check Node, settings, ports, Temporal, PostgreSQL, the object store, the gateway')
    .addOption(configOption())
    .option('--data-dir <dir>', 'check the stack that nightshift dev runs in this directory')
    .addHelpText(
      'after',
      examples(['nightshift doctor', 'nightshift doctor --config /etc/nightshift.yaml']),
    )
    .action(runDoctor);
  const config = program.command('config').description('look at the settings');
  config
    .command('check')
    .description('report every problem of the settings')
    .addOption(configOption())
    .addHelpText('after', examples(['nightshift config check --config nightshift.yaml']))
    .action(runConfigCheck);
  config
    .command('print')
    .description('print all settings as they hold, with defaults, without secrets')
    .addOption(configOption())
    .addHelpText('after', examples(['nightshift config print --config nightshift.yaml']))
    .action(runConfigPrint);
}

/** The flag that names the file of settings. */
function configOption(): Option {
  return new Option(
    '-c, --config <file>',
    'YAML file of settings; environment variables go over it',
  );
}

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('expected a port between 0 and 65535');
}
