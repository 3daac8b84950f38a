import { builtinModules } from 'node:module';
import path from 'node:path';
import rooms from '../../rooms.json';
import { factsOf } from './module-facts';
import type { ImportFact, ModuleFacts } from './module-facts';

/** What the rooms' table says of one room. */
interface Room {
  readonly floor: number;
  /** Rooms, or single modules of rooms, whose values may be imported. */
  readonly values: readonly string[];
  /** Rooms of which types alone may be imported. */
  readonly types: readonly string[];
  /** npm packages, `@scope/*` for a family. */
  readonly packages: readonly string[];
  readonly node: boolean;
}

interface Module extends ModuleFacts {
  readonly file: string;
  readonly room: string;
}

/** The rooms of the house by name (`rooms.json`, shared with ESLint). */
export const ROOMS: Readonly<Record<string, Room>> = rooms;

const MAX_LINES = 400;
const DRAWERS = /(^|[-/.])(utils?|helpers?|commons?|managers?|misc)([-/.]|$)/;
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/;
/** Folders of `core/` that run outside the workflow sandbox as well and may use Buffer. */
const BUFFER_ROOMS = ['core/openai/', 'core/plan/', 'core/journal/'];
const CLOCK_AND_CHANCE = ['Date.now', 'Math.random', 'new Date', 'performance.now', 'process'];

/**
 * Everything that is wrong with a tree of sources, one sentence each with file and line; empty
 * for a house in order.
 *
 * @param files text of every .ts file, by its path from the repository's root with `/`
 */
export function houseViolations(files: ReadonlyMap<string, string>): string[] {
  const modules = [...files].map(([file, text]) => ({
    ...factsOf(file, text),
    file,
    room: file.split('/')[0] ?? '',
  }));
  const product = modules.filter(({ room }) => room in ROOMS);
  return [
    ...modules.filter(({ room }) => room === 'src').map(({ file }) => `${file}: there is no src/`),
    ...modules.flatMap(intrudes),
    ...product.flatMap((module) => [
      ...module.imports.flatMap((one) => breaksFloor(module, one)),
      ...breaksPurity(module),
      ...breaksForm(module),
    ]),
    ...cycles(moduleGraph(product, files), 'modules'),
    ...cycles(roomGraph(product), 'rooms'),
  ];
}

/** Nobody imports cli/ or test/, the tests aside. */
function intrudes({ file, room, imports }: Module): string[] {
  if (room === 'test') return [];
  return imports
    .map((one) => ({ ...one, target: targetOf(file, one.specifier) ?? '' }))
    .filter(({ target }) => /^(cli|test)\//.test(target) && !target.startsWith(`${room}/`))
    .map(({ line, target }) => `${file}:${line}: nobody imports ${target.split('/')[0]}/`);
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

function breaksPurity({ file, room, names }: Module): string[] {
  const isCore = room === 'core';
  const inSandbox =
    room === 'workflows' || (isCore && !BUFFER_ROOMS.some((folder) => file.startsWith(folder)));
  const forbidden = [
    ...(isCore ? CLOCK_AND_CHANCE : []),
    ...(inSandbox ? ['Buffer'] : []),
    ...(file === 'platform/config.ts' ? [] : ['process.env']),
  ];
  return names
    .filter(({ name }) => forbidden.includes(name))
    .map(({ name, line }) => `${file}:${line}: ${name} has no place here`);
}

function breaksForm({ file, lines, exports }: Module): string[] {
  const name = path.posix.basename(file);
  const bare = exports.filter(({ documented }) => !documented);
  return [
    ...(lines > MAX_LINES ? [`${file}: ${lines} lines, at most ${MAX_LINES}`] : []),
    ...(KEBAB.test(name) ? [] : [`${file}: file names are kebab-case`]),
    ...(DRAWERS.test(file) ? [`${file}: a drawer for everything is not a name`] : []),
    ...bare.map((one) => `${file}:${one.line}: export ${one.name} has no doc comment`),
  ];
}

/** Where a relative import leads, from the root and without an extension; null for a package. */
function targetOf(file: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier));
}

function roomOf(target: string): string {
  return target.split('/')[0] ?? '';
}

function moduleGraph(modules: readonly Module[], files: ReadonlyMap<string, string>): Graph {
  return graphOf(
    modules,
    ({ file }) => file,
    (target) => [`${target}.ts`, `${target}/index.ts`].find((name) => files.has(name)),
  );
}

function roomGraph(modules: readonly Module[]): Graph {
  // A room's contract is a floor of its own: others may import it, it imports nothing of theirs.
  return graphOf(
    modules,
    ({ room, file }) => partOf(file) ?? room,
    (target) => partOf(`${target}.ts`) ?? roomOf(target),
  );
}

function partOf(file: string): string | null {
  return file === 'workflows/contract.ts' ? 'workflows/contract' : null;
}

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** Edges of value imports alone: types are gone at run time. */
function graphOf(
  modules: readonly Module[],
  from: (module: Module) => string,
  to: (target: string) => string | undefined,
): Graph {
  const graph = new Map<string, Set<string>>();
  for (const module of modules) {
    const edges = graph.get(from(module)) ?? new Set<string>();
    graph.set(from(module), edges);
    for (const { specifier, typeOnly } of module.imports) {
      const target = typeOnly ? null : targetOf(module.file, specifier);
      const end = target === null ? undefined : to(target);
      if (end !== undefined && end !== from(module)) edges.add(end);
    }
  }
  return graph;
}

/** Every cycle found by a depth-first walk, as `a > b > a`. */
function cycles(graph: Graph, what: string): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const walk = (node: string, trail: readonly string[]): void => {
    const at = trail.indexOf(node);
    if (at >= 0) found.push(`cycle of ${what}: ${[...trail.slice(at), node].join(' > ')}`);
    if (at >= 0 || done.has(node)) return;
    for (const next of graph.get(node) ?? []) walk(next, [...trail, node]);
    done.add(node);
  };
  for (const node of graph.keys()) walk(node, []);
  return found;
}
