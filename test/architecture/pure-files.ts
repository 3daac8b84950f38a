import { fileOf, type ImportingModule, targetOf } from './import-graph';

/** Modules and packages without I/O that pure files may load. */
const HARMLESS = ['node:crypto', 'zod'];

/** One expression for patterns of paths in which `*` stands for any part of a name. */
export function patternOf(globs: readonly string[]): RegExp {
  const expressions = globs.map((glob) => glob.replaceAll('.', '\\.').replaceAll('*', '[^/]*'));
  return new RegExp(`^(${expressions.join('|')})$`);
}

/** For each pure file that loads a module with I/O, also indirectly, the way to it. Types do not count. */
export function impureImports(modules: readonly ImportingModule[], pure: RegExp): string[] {
  const byFile = new Map(modules.map((module) => [module.file, module]));
  const files = new Set(byFile.keys());
  return modules
    .filter(({ file }) => pure.test(file))
    .flatMap(({ file }) => effectsOf(file, { byFile, files }))
    .map((way) => `${way.join(' > ')}: a pure file does no I/O`);
}

interface Sources {
  readonly byFile: ReadonlyMap<string, ImportingModule>;
  readonly files: ReadonlySet<string>;
}

/** Ways from a file to modules that are not of the product, without the harmless ones and one for each module. */
function effectsOf(start: string, { byFile, files }: Sources): string[][] {
  const seen = new Set([start]);
  const found: string[][] = [];
  const walk = (way: readonly string[]): void => {
    const file = way.at(-1) ?? start;
    for (const { specifier, typeOnly } of byFile.get(file)?.imports ?? []) {
      if (typeOnly || HARMLESS.includes(specifier)) continue;
      const target = targetOf(file, specifier);
      const next = target === null ? specifier : (fileOf(target, files) ?? target);
      if (seen.has(next)) continue;
      seen.add(next);
      if (target === null) found.push([...way, next]);
      else walk([...way, next]);
    }
  };
  walk([start]);
  return found;
}
