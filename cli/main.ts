import { sayError } from './output';
import { createProgram } from './program';

/** Runs the command of this process's arguments; the exit status says how it went. */
export async function main(): Promise<void> {
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
