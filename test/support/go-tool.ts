import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { programVariable } from '../../embedded/binaries/find-program';
import { findGoProgram, type GoProgram } from '../../embedded/binaries/go-program';
import { cachedProgram } from '../../embedded/binaries/program-cache';
import { VERSITYGW } from '../../embedded/binaries/versitygw';
import { HELM, PROMTOOL } from './go-programs';

/** Programs that tests run and that are built with Go if the machine has none, with pinned versions. */
const GO_TOOLS = {
  helm: HELM,
  promtool: PROMTOOL,
  versitygw: VERSITYGW,
} as const satisfies Record<string, GoProgram>;

/** A program of {@link GO_TOOLS}. */
export type GoToolName = keyof typeof GO_TOOLS;

/** The longest that {@link findGoTool} can take: a machine without the program builds it. */
export const GO_TOOL_MS = 15 * 60_000;

/**
 * Path of a program: on the PATH, in the cache, or built now, which takes minutes, once. Null if there is
 * neither the program nor Go. A build that fails is an error.
 */
export async function findGoTool(name: GoToolName): Promise<string | null> {
  if (!hasGoTool(name)) return null;
  const say = (message: string): void => void process.stderr.write(`${message}\n`);
  return (await findGoProgram(GO_TOOLS[name], { env: process.env, say })).path;
}

/**
 * `describe` for tests that need a program; inside, `findGoTool` returns its path. Without the program and
 * without Go, the tests are reported as skipped and the title says why.
 */
export function describeWithGoTool(name: GoToolName, title: string, body: () => void): void {
  if (hasGoTool(name)) describe(title, body);
  else describe.skip(`${title} (there is no ${name}, and no Go to build it)`, body);
}

function hasGoTool(name: GoToolName): boolean {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  return (
    Boolean(process.env[programVariable(name)]) ||
    fs.existsSync(cachedProgram(GO_TOOLS[name], process.env)) ||
    folders.some((folder) => fs.existsSync(path.join(folder, name))) ||
    spawnSync('go', ['version']).status === 0
  );
}
