import fs from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { createProgram } from '../../cli/program';
import { packageRoot } from '../../platform/package-root';

/** The text of a file of the repository. */
export function read(file: string): string {
  return fs.readFileSync(path.join(packageRoot(), file), 'utf8');
}

export function exists(file: string): boolean {
  return fs.existsSync(path.join(packageRoot(), file));
}

/** Words of a command line that the program does not know: its command, then its flags. */
export function unknownWords([name = '', ...words]: readonly string[]): string[] {
  const command = createProgram().commands.find((one: Command) => one.name() === name);
  if (!command) return [name];
  const flags = words.filter((word) => word.startsWith('-'));
  return flags.filter((flag) => !command.options.some(({ long }) => long === flag));
}
