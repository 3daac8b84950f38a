import { Command } from 'commander';
import { version } from '../platform/version';
import { addAdminCommands } from './admin/commands';
import { addAudioCommands } from './audio/commands';
import { addBatchCommands } from './batches/commands';
import { examples } from './help';
import { addFlowCommand } from './flow/commands';
import { addProcessCommands } from './processes/commands';
import { addStackCommands } from './stack/commands';

/** Every command with its flags and examples. What a command needs is loaded when it runs. */
export function createProgram(): Command {
  const program = new Command('nightshift')
    .description("Durable batch inference: OpenAI's Files and Batches API on Temporal")
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show what a command does, its flags and examples')
    .showHelpAfterError('(run it with --help to see what it takes)')
    .addHelpText(
      'after',
      examples(['nightshift demo', 'nightshift dev --port 8010', 'nightshift run --help']),
    );
  addStackCommands(program);
  addBatchCommands(program);
  addProcessCommands(program);
  addAdminCommands(program);
  addFlowCommand(program);
  addAudioCommands(program);
  return program;
}
