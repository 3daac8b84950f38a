import { sep } from 'node:path';
import { NightshiftError } from '../core/errors';

/** The last line of the bundle. Webpack's version decides whether it names a character set. */
const INLINE_MAP =
  /\n\/\/# sourceMappingURL=data:application\/json;(?:charset=utf-8;)?base64,([A-Za-z0-9+/=]+)\s*$/;

interface SourceMap {
  /** Paths, or names of webpack's own, which may contain paths. */
  readonly sources: readonly string[];
}

/**
 * Removes the sources from the bundle's source map and makes its paths relative to the package. Stack
 * traces need only the rest, and every worker would keep several copies of the sources, 13 MB in all. A
 * published package must not name the folders of the machine that built it.
 *
 * @throws internal if the bundle does not end with a source map
 */
export function leanBundle(code: string, root: string): string {
  const found = INLINE_MAP.exec(code);
  if (found?.[1] === undefined) {
    throw new NightshiftError('internal', 'the workflow bundle does not end with a source map');
  }
  const map = JSON.parse(Buffer.from(found[1], 'base64').toString()) as SourceMap;
  const sources = map.sources.map((name) => name.replaceAll(`${root}${sep}`, ''));
  const text = JSON.stringify({ ...map, sources, sourcesContent: undefined });
  const lean = Buffer.from(text).toString('base64');
  return `${code.slice(0, found.index)}\n//# sourceMappingURL=data:application/json;base64,${lean}`;
}
