import { fileOf, targetOf } from './import-graph';
import type { ModuleFacts } from './module-facts';

/** An export of product code that no other product module imports. */
export interface UnusedExport {
  readonly file: string;
  readonly name: string;
  readonly line: number;
}

/**
 * Exports that only tests import, or nothing at all. A type counts as used if its own module mentions
 * it: it describes a parameter or a result of another export.
 *
 * @param modules every module outside the tests, by its path from the root
 * @param isProduct whether the exports of a file are checked; the others count as users only
 */
export function unusedExports(
  modules: ReadonlyMap<string, ModuleFacts>,
  isProduct: (file: string) => boolean,
): UnusedExport[] {
  const used = usedNames(modules);
  return [...modules]
    .filter(([file]) => isProduct(file))
    .flatMap(([file, { exports }]) =>
      exports
        .filter(({ name, isType, usedInFile }) => !(isType && usedInFile) && !used(file, name))
        .map(({ name, line }) => ({ file, name, line })),
    );
}

function usedNames(modules: ReadonlyMap<string, ModuleFacts>) {
  const files = new Set(modules.keys());
  const names = new Map<string, Set<string>>();
  for (const [file, { imports }] of modules) {
    for (const { specifier, names: imported } of imports) {
      const target = fileOf(targetOf(file, specifier) ?? '', files);
      if (target === undefined || target === file) continue;
      const known = names.get(target) ?? new Set();
      names.set(target, known);
      for (const name of imported ?? ['*']) known.add(name);
    }
  }
  return (file: string, name: string): boolean => {
    const known = names.get(file);
    return known !== undefined && (known.has('*') || known.has(name));
  };
}
