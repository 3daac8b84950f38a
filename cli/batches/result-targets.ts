import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { NightshiftError } from '../../core/errors';

/** Where the result files of a batch go: paths, or `-` for stdout. */
export interface ResultTargets {
  readonly output: string;
  readonly errors: string;
  /** A folder for the files of speech; null if they are not unpacked. */
  readonly audio: string | null;
}

/** Flags that name the targets. */
export interface ResultFlags {
  readonly output?: string;
  readonly errors?: string;
  readonly audio?: string;
  readonly force?: boolean;
}

/** The name of stdout on a command line. */
export const STDOUT = '-';

/** The targets that the flags name. */
export function chosenTargets({ output, errors, audio }: ResultFlags): Partial<ResultTargets> {
  return {
    ...(audio === undefined ? {} : { audio }),
    ...(output === undefined ? {} : { output }),
    ...(errors === undefined ? {} : { errors }),
  };
}

/** Whether a result file goes to stdout. */
export function usesStdout({ output, errors }: Pick<ResultTargets, 'output' | 'errors'>): boolean {
  return output === STDOUT || errors === STDOUT;
}

/** @throws invalid_request if a JSON document and result lines would mix on stdout */
export function refuseMixedStdout(
  targets: ResultTargets,
  { json }: { readonly json?: boolean },
): void {
  if (json !== true || !usesStdout(targets)) return;
  throw refusal('--json and results on stdout (-) would mix: leave out one of them');
}

/** Results of `data/input.jsonl` go to `data/input.output.jsonl` and `data/input.errors.jsonl`. */
export function targetsBeside(input: string): ResultTargets {
  const extension = extname(input) || '.jsonl';
  const stem = input.slice(0, input.length - extname(input).length);
  return {
    ...{ output: `${stem}.output${extension}`, errors: `${stem}.errors${extension}` },
    audio: null,
  };
}

/** Result files named after the batch, in the current folder. */
export function targetsOf(batchId: string): ResultTargets {
  return targetsBeside(join('.', `${batchId}.jsonl`));
}

/** What results may overwrite. */
export interface TargetRules {
  readonly force: boolean;
  /** A file that must never be overwritten. */
  readonly input: string | null;
}

/**
 * Checks before anything is sent whether results can be written to their targets.
 *
 * @throws invalid_request if a folder is missing, a file would be overwritten, or both targets are the same
 */
export function checkTargets({ output, errors, audio }: ResultTargets, rules: TargetRules): void {
  if (realPathOf(output) === realPathOf(errors) && !isDevice(output)) {
    throw refusal(`output and errors would both go to ${output}: name another file with --errors`);
  }
  for (const target of [output, errors]) checkTarget(target, rules);
  if (audio === null) return;
  if (output === STDOUT || isDevice(output))
    throw refusal('--audio reads the output file: name a file with -o');
  if (existsSync(audio) && !statSync(audio).isDirectory()) {
    throw refusal(`${audio} is no folder: name another one with --audio`);
  }
}

function checkTarget(target: string, { force, input }: TargetRules): void {
  if (target === STDOUT || isDevice(target)) return;
  if (!existsSync(dirname(resolve(target)))) {
    throw refusal(
      `the folder ${dirname(target)} of ${target} does not exist: create it, or name another file`,
    );
  }
  if (!existsSync(target)) return;
  if (statSync(target).isDirectory()) throw refusal(`${target} is a folder: name a file in it`);
  if (input !== null && realPathOf(target) === realPathOf(input)) {
    throw refusal(`${target} is the input file: name another file with -o or --errors`);
  }
  if (!force) throw fileExists(target);
}

/** The error for a file that would be overwritten. */
export function fileExists(target: string): NightshiftError {
  return refusal(`${target} exists: add --force to overwrite it, or name another file`);
}

/** Whether the target is written into and not replaced: a pipe, `/dev/null`. */
export function isDevice(target: string): boolean {
  if (target === STDOUT || !existsSync(target)) return false;
  const stats = statSync(target);
  return !stats.isFile() && !stats.isDirectory();
}

function realPathOf(target: string): string {
  return existsSync(target) ? realpathSync(target) : resolve(target);
}

function refusal(message: string): NightshiftError {
  return new NightshiftError('invalid_request', message);
}
