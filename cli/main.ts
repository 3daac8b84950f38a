import { sayError } from './output';
import { createProgram } from './program';

/** Runs the command in this process's arguments and ends the process with its exit status. */
export async function main(): Promise<void> {
  // `nightshift demo | head` closes the pipe early. The stack must still be stopped in order.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    await createProgram().parseAsync(process.argv);
  } catch (error) {
    sayError(error);
    process.exitCode = 1;
  }
  // A timer or socket of a library must not keep a finished command alive.
  process.exit(process.exitCode ?? 0);
}

if (require.main === module) void main();
