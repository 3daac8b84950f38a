import { builtinModules } from 'node:module';
import path from 'node:path';
import rooms from '../../rooms.json';
import type { Graph } from './import-graph';
import { cyclesOf, fileOf, graphOf, targetOf } from './import-graph';
import { factsOf } from './module-facts';
import type { ImportFact, ModuleFacts } from './module-facts';
import { impureImports, patternOf } from './pure-files';

/** What `rooms.json` says of one room: a top-level folder with product code. */
interface Room {
  /** Imports lead to rooms of lower floors only. */
  readonly floor: number;
  /** Rooms, or single modules of rooms, whose values may be imported. */
  readonly values: readonly string[];
  /** Rooms of which types alone may be imported. */
  readonly types: readonly string[];
  /** npm packages, `@scope/*` for a family. */
  readonly packages: readonly string[];
  /** Whether it may import Node's own modules. */
  readonly node: boolean;
  /** Its files run in Temporal's workflow sandbox, which has no Buffer, except for these folders. */
  readonly sandbox?: { readonly except: readonly string[] };
  /** Patterns of its files that do no I/O, and load no file that does. `*` stands for any part of a name. */
  readonly pure?: readonly string[];
}

interface Module extends ModuleFacts {
  readonly file: string;
  readonly room: string;
}

/** The rooms by name: `rooms.json`, which lint, build and docs read too. */
export const ROOMS: Readonly<Record<string, Room>> = rooms;

const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 60;
/** Names under which anything would fit. */
const VAGUE = /(^|[-/.])(utils?|helpers?|commons?|managers?|misc)([-/.]|$)/;
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/;
/** Outside of core/: the engine of the simulator is told the time. */
const PURE_FOLDER = 'simulator/engine/';
/** Files that translate, by the patterns of their rooms. */
const PURE_FILES = patternOf(Object.values(ROOMS).flatMap(({ pure = [] }) => pure));
const CLOCK_AND_CHANCE = ['Date.now', 'Math.random', 'new Date', 'performance.now', 'process'];

/**
 * Every violation of the house rules in a tree of sources, one sentence each with file and line.
 *
 * @param files text of every .ts file, by its path from the repository's root with `/`
 */
export function houseViolations(files: ReadonlyMap<string, string>): string[] {
  const modules = [...files].map(([file, text]) => ({
    ...factsOf(file, text),
    file,
    room: roomOf(file),
  }));
  const product = modules.filter(({ room }) => room in ROOMS);
  return [
    ...modules.filter(({ room }) => room === 'src').map(({ file }) => `${file}: there is no src/`),
    ...modules.flatMap(importsForeignCode),
    ...modules.flatMap(breaksLength),
    ...product.flatMap((module) => [
      ...module.imports.flatMap((one) => breaksFloor(module, one)),
      ...breaksPurity(module),
      ...breaksForm(module),
    ]),
    ...impureImports(product, PURE_FILES),
    ...cyclesOf(moduleGraph(product, files)).map((cycle) => `cycle of modules: ${cycle}`),
    ...cyclesOf(roomGraph(product)).map((cycle) => `cycle of rooms: ${cycle}`),
  ];
}

/** Only the tests import cli/ and test/. */
function importsForeignCode({ file, room, imports }: Module): string[] {
  if (room === 'test') return [];
  return imports
    .map((one) => ({ ...one, target: targetOf(file, one.specifier) ?? '' }))
    .filter(({ target }) => /^(cli|test)\//.test(target) && !target.startsWith(`${room}/`))
    .map(({ line, target }) => `${file}:${line}: only tests import ${roomOf(target)}/`);
}

function breaksLength({ file, lines, functions }: Module): string[] {
  const long = functions.filter((one) => one.lines > MAX_FUNCTION_LINES);
  return [
    ...(lines > MAX_LINES ? [`${file}: ${lines} lines, at most ${MAX_LINES}`] : []),
    ...long.map(
      (one) => `${file}:${one.line}: function of ${one.lines} lines, at most ${MAX_FUNCTION_LINES}`,
    ),
  ];
}

function breaksFloor({ file, room }: Module, { specifier, typeOnly, line }: ImportFact): string[] {
  const rules = ROOMS[room];
  if (!rules) return [];
  const target = targetOf(file, specifier);
  const allowed =
    target === null
      ? mayUsePackage(rules, specifier)
      : mayReach(room, rules, target) || (typeOnly && rules.types.includes(roomOf(target)));
  const what = `${typeOnly ? 'types' : 'values'} of ${target ?? specifier}`;
  return allowed ? [] : [`${file}:${line}: ${room}/ may not import ${what}`];
}

function mayUsePackage(rules: Room, specifier: string): boolean {
  if (specifier.startsWith('node:')) return rules.node;
  if (builtinModules.includes(specifier)) return false;
  return rules.packages.some((name) =>
    name.endsWith('/*')
      ? specifier.startsWith(name.slice(0, -1))
      : specifier === name || specifier.startsWith(`${name}/`),
  );
}

function mayReach(room: string, rules: Room, target: string): boolean {
  if (roomOf(target) === room) return true;
  return rules.values.some((name) =>
    name.includes('/') ? target === name : roomOf(target) === name,
  );
}

function breaksPurity({ file, names }: Module): string[] {
  const forbidden = [
    ...(isPure(file) ? CLOCK_AND_CHANCE : []),
    ...(inSandbox(file) ? ['Buffer'] : []),
    ...(file === 'platform/config.ts' ? [] : ['process.env']),
  ];
  return names
    .filter(({ name }) => forbidden.includes(name))
    .map(({ name, line }) => `${file}:${line}: ${name} is not allowed here`);
}

function isPure(file: string): boolean {
  return roomOf(file) === 'core' || file.startsWith(PURE_FOLDER) || PURE_FILES.test(file);
}

function inSandbox(file: string): boolean {
  const sandbox = ROOMS[roomOf(file)]?.sandbox;
  return sandbox !== undefined && !sandbox.except.some((folder) => file.startsWith(`${folder}/`));
}

function breaksForm({ file, exports }: Module): string[] {
  const name = path.posix.basename(file);
  const bare = exports.filter(({ documented }) => !documented);
  return [
    ...(KEBAB.test(name) ? [] : [`${file}: file names are kebab-case`]),
    ...(VAGUE.test(file) ? [`${file}: the name does not say what is in it`] : []),
    ...bare.map((one) => `${file}:${one.line}: export ${one.name} has no doc comment`),
  ];
}

function roomOf(target: string): string {
  return target.split('/')[0] ?? '';
}

function moduleGraph(modules: readonly Module[], files: ReadonlyMap<string, string>): Graph {
  const known = new Set(files.keys());
  return graphOf(
    modules,
    (file) => file,
    (target) => fileOf(target, known),
  );
}

function roomGraph(modules: readonly Module[]): Graph {
  return graphOf(modules, roomOf, roomOf);
}
