import path from 'node:path';
import type { ImportFact } from './module-facts';

/** A module as the graph needs it. */
export interface ImportingModule {
  readonly file: string;
  readonly imports: readonly ImportFact[];
}

/** For each node the nodes that it imports, values and types alike. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** The target of a relative import, from the root and without an extension; null for a package. */
export function targetOf(file: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier));
}

/** The source file that a relative import loads, if it is one of `files`. */
export function fileOf(target: string, files: ReadonlySet<string>): string | undefined {
  // Plain JavaScript loads product code from the build output.
  const source = target.replace(/^dist\//, '');
  const plain = source.replace(/\.js$/, '');
  return [`${plain}.ts`, source, `${source}/index.ts`].find((name) => files.has(name));
}

/**
 * The graph of `modules`.
 *
 * @param from the node of an importing file
 * @param to the node of an import's target, undefined for targets outside the graph
 */
export function graphOf(
  modules: readonly ImportingModule[],
  from: (file: string) => string,
  to: (target: string) => string | undefined,
): Graph {
  const graph = new Map<string, Set<string>>();
  for (const { file, imports } of modules) {
    const edges = graph.get(from(file)) ?? new Set<string>();
    graph.set(from(file), edges);
    for (const { specifier } of imports) {
      const target = targetOf(file, specifier);
      const end = target === null ? undefined : to(target);
      if (end !== undefined && end !== from(file)) edges.add(end);
    }
  }
  return graph;
}

/**
 * Cycles of a graph as `a > b > a`: at least one for every group of nodes that reach each other. Each
 * begins with its alphabetically first node, so that the same cycle always reads the same.
 */
export function cyclesOf(graph: Graph): string[] {
  const done = new Set<string>();
  const found = new Set<string>();
  const walk = (node: string, trail: readonly string[]): void => {
    const at = trail.indexOf(node);
    if (at >= 0) found.add(rotated(trail.slice(at)));
    if (at >= 0 || done.has(node)) return;
    for (const next of graph.get(node) ?? []) walk(next, [...trail, node]);
    done.add(node);
  };
  for (const node of graph.keys()) walk(node, []);
  return [...found].sort();
}

function rotated(cycle: readonly string[]): string {
  const first = [...cycle].sort()[0] ?? '';
  const at = cycle.indexOf(first);
  return [...cycle.slice(at), ...cycle.slice(0, at), first].join(' > ');
}
