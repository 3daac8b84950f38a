import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { NightshiftError } from '../../core/errors';

/** Where the result files of a batch go: paths, or `-` for stdout. */
export interface ResultTargets {
  readonly output: string;
  readonly errors: string;
}

/** stdout, as it is named on a command line. */
export const STDOUT = '-';

/** `data/input.jsonl` has its results in `data/input.output.jsonl` and `data/input.errors.jsonl`. */
export function targetsBeside(input: string): ResultTargets {
  const extension = extname(input) || '.jsonl';
  const stem = input.slice(0, input.length - extname(input).length);
  return { output: `${stem}.output${extension}`, errors: `${stem}.errors${extension}` };
}

/** Result files of a batch whose input is not at hand: named after it, in this folder. */
export function targetsOf(batchId: string): ResultTargets {
  return targetsBeside(join('.', `${batchId}.jsonl`));
}

/** What may be overwritten by results. */
export interface TargetRules {
  readonly force: boolean;
  /** A file that must never be overwritten. */
  readonly input: string | null;
}

/**
 * Whether results may go there, asked before anything is sent.
 *
 * @throws invalid_request where a folder is missing, a file would be overwritten, two things would
 * go to one file
 */
export function checkTargets({ output, errors }: ResultTargets, rules: TargetRules): void {
  if (placeOf(output) === placeOf(errors) && !isDevice(output)) {
    throw refusal(`output and errors would both go to ${output}: name another with --errors`);
  }
  for (const target of [output, errors]) checkTarget(target, rules);
}

function checkTarget(target: string, { force, input }: TargetRules): void {
  if (target === STDOUT || isDevice(target)) return;
  if (!existsSync(dirname(resolve(target)))) {
    throw refusal(`there is no folder ${dirname(target)} for ${target}`);
  }
  if (!existsSync(target)) return;
  if (statSync(target).isDirectory()) throw refusal(`${target} is a folder: name a file in it`);
  if (input !== null && placeOf(target) === placeOf(input)) {
    throw refusal(`${target} is the input file: name another with -o or --errors`);
  }
  if (!force) throw existing(target);
}

/** The refusal to overwrite. */
export function existing(target: string): NightshiftError {
  return refusal(`${target} exists: add --force to overwrite it, or name another file`);
}

/** Something that is written into and never replaced: a pipe, `/dev/null`. */
export function isDevice(target: string): boolean {
  if (target === STDOUT || !existsSync(target)) return false;
  const stats = statSync(target);
  return !stats.isFile() && !stats.isDirectory();
}

function placeOf(target: string): string {
  return existsSync(target) ? realpathSync(target) : resolve(target);
}

function refusal(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
