import type { Command } from 'commander';
import { configOption } from '../config-flag';
import { examples } from '../help';
import { runConfigCheck, runConfigPrint } from './config';
import { runDoctor } from './doctor';
import { addKeyCommands } from './keys';
import { runMigrateCommand } from './migrate';
import { runReconcileCommand } from './reconcile';
import { runRestoreCommand } from './restore';
import { parseLimit, REPLAY_EXIT_HELP, runReplayCommand } from './replay';

/** Adds the commands for operators of an installation. */
export function addAdminCommands(program: Command): void {
  program.commandsGroup('Administration:');
  addMigrate(program);
  addReconcile(program);
  addReplay(program);
  addRestore(program);
  addDoctor(program);
  addConfig(program);
  addKeyCommands(program);
}

function addMigrate(program: Command): void {
  program
    .command('migrate')
    .description('bring the database and the Temporal namespace up to date; safe to repeat')
    .addOption(configOption())
    .option(
      '--skip-namespace',
      'do not change search attributes, retention and schedules of the namespace',
    )
    .addHelpText(
      'after',
      examples([
        'DATABASE_URL=postgres://… nightshift migrate',
        'nightshift migrate --config /etc/nightshift.yaml --skip-namespace',
      ]),
    )
    .action(runMigrateCommand);
}

function addReconcile(program: Command): void {
  program
    .command('reconcile')
    .description('restart batches that lost their workflow; workers also do this every minute')
    .addOption(configOption())
    .option('--dry-run', 'show what would be done, and change nothing')
    .option('--finalize <id>', 'write the result files of a batch whose finalization was given up')
    .addHelpText(
      'after',
      examples(['nightshift reconcile --dry-run', 'nightshift reconcile --finalize batch_…']),
    )
    .action(runReconcileCommand);
}

function addReplay(program: Command): void {
  program
    .command('replay')
    .description('check that this release can take over the open batches, before it is deployed')
    .addOption(configOption())
    .requiredOption(
      '--open',
      'replay the histories of all open workflows against the code of this release',
    )
    .option('--limit <n>', 'replay only the newest n workflows', parseLimit)
    .option('--query <filter>', "replay only workflows that match this filter of Temporal's lists")
    .addHelpText('after', REPLAY_EXIT_HELP)
    .addHelpText(
      'after',
      examples([
        'nightshift replay --open --config /etc/nightshift.yaml',
        `nightshift replay --open --limit 500 --query "BatchTenant = 'acme'"`,
      ]),
    )
    .action(runReplayCommand);
}

function addRestore(program: Command): void {
  program
    .command('restore')
    .description('bring a database from a backup up to what the object store knows; safe to repeat')
    .addOption(configOption())
    .option('--dry-run', 'show what would be done, and change nothing')
    .addHelpText('after', examples(['nightshift restore --dry-run', 'nightshift restore']))
    .action(runRestoreCommand);
}

function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'check Node, settings, ports, Temporal, PostgreSQL, object store and model servers',
    )
    .addOption(configOption())
    .option('--data-dir <dir>', 'check the stack that nightshift dev runs in this directory')
    .addHelpText(
      'after',
      examples(['nightshift doctor', 'nightshift doctor --config /etc/nightshift.yaml']),
    )
    .action(runDoctor);
}

function addConfig(program: Command): void {
  const config = program.command('config').description('check or print the settings');
  config
    .command('check')
    .description('report every problem in the settings')
    .addOption(configOption())
    .addHelpText('after', examples(['nightshift config check --config nightshift.yaml']))
    .action(runConfigCheck);
  config
    .command('print')
    .description('print the effective settings, defaults included, secrets left out')
    .addOption(configOption())
    .addHelpText('after', examples(['nightshift config print --config nightshift.yaml']))
    .action(runConfigPrint);
}
