import type { Command } from 'commander';
import { configOption } from '../config-flag';
import { examples } from '../help';
import { parsePort } from '../port-flag';
import { runApiCommand, runWorkerCommand } from './api-and-worker';
import { runGatewayCommand } from './gateway';
import { runSimulatorCommand, simulatorFlags } from './simulator';

const GATEWAY_HELP = `
The least that the file must have:
  gateway:
    pools:
      main: { models: ['*'], backends: [{ url: http://127.0.0.1:8001 }] }

Clients use it like OpenAI's API, by default at http://127.0.0.1:8002/v1. Its observability port,
9091, has /health, /ready, /metrics and /admin/flow, which nightshift flow shows. SIGTERM drains it:
requests may end for gateway.drain_budget. A second signal ends it at once.`;

/** Adds the commands that run one process of an installation until a signal. */
export function addProcessCommands(program: Command): void {
  program.commandsGroup('Processes of an installation:');
  program
    .command('api')
    .description('run the HTTP API')
    .addOption(configOption())
    .option('--port <n>', 'port to listen on (default: the setting api.port)', parsePort)
    .option('--host <address>', 'address to listen on (default: the setting api.host)')
    .addHelpText('after', examples(['nightshift api --config /etc/nightshift.yaml']))
    .action(runApiCommand);
  program
    .command('worker')
    .description('run a Temporal worker, which executes workflows and activities')
    .addOption(configOption())
    .option(
      '--roles <list>',
      'what the process does: batch, exec or batch,exec (default: the setting worker.roles)',
      (text) => text.split(',').map((name) => name.trim()),
    )
    .option(
      '--processes <n>',
      'processes that share the work and the permits: a number, or auto (default: the setting worker.processes)',
    )
    .addHelpText(
      'after',
      examples([
        'nightshift worker --config /etc/nightshift.yaml',
        'nightshift worker --processes 4 --config /etc/nightshift.yaml',
        'nightshift worker --roles exec --config /etc/nightshift.yaml',
        'NIGHTSHIFT__CONCURRENCY__GLOBAL=500 nightshift worker --config /etc/nightshift.yaml',
      ]),
    )
    .action(runWorkerCommand);
  addGateway(program);
  const simulator = program
    .command('simulator')
    .description('run a model server for tests, with the OpenAI API and random words as answers');
  for (const flag of simulatorFlags()) simulator.addOption(flag);
  simulator
    .addHelpText(
      'after',
      examples([
        'nightshift simulator --port 8001 --latency-ms 200 --error-rate 0.05',
        'nightshift simulator --slots 64 --output-tokens 200 --output-sigma 0.7',
        'curl -X PUT localhost:8001/simulator/config -d \'{"max_concurrency": 20}\'',
        'curl -X PUT localhost:8001/simulator/providers/config -d \'{"running_ms": 60000}\'',
      ]),
    )
    .action(runSimulatorCommand);
}

function addGateway(program: Command): void {
  program
    .command('gateway')
    .description(
      'run the gateway, which holds requests in a queue in front of pools of model servers',
    )
    .addOption(configOption())
    .option('--port <n>', 'port to listen on (default: the setting gateway.port)', parsePort)
    .option('--host <address>', 'address to listen on (default: the setting gateway.host)')
    .addHelpText('after', GATEWAY_HELP)
    .addHelpText(
      'after',
      examples([
        'nightshift gateway --config /etc/nightshift.yaml',
        'nightshift config check --config /etc/nightshift.yaml',
        'nightshift flow',
      ]),
    )
    .action(runGatewayCommand);
}
