import { sayError } from './output';
import { createProgram } from './program';

/** Runs the command of this process's arguments; the exit status says how it went. */
export async function main(): Promise<void> {
  // Whoever reads us may leave (`nightshift demo | head`): what is running must still be stopped in order.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    await createProgram().parseAsync(process.argv);
  } catch (error) {
    sayError(error);
    process.exitCode = 1;
  }
  // A library's timer or socket must not keep a finished command alive.
  process.exit(process.exitCode ?? 0);
}

if (require.main === module) void main();
