import path from 'node:path';

/** Text of every file of the repository, by its path from the root with `/`. */
export type Files = ReadonlyMap<string, string>;

/** Citations of our own pages, as code and Markdown write them: `docs/design/page.md#heading`. */
const CITATION = /(?<![\w./-])docs\/[\w./-]+\.md(?:#[\w-]+)?/g;
const MARKDOWN_LINK = /\[[^\]]*\]\(<?(?!(?:https?|mailto):)([^)\s>]+)>?(?:\s+"[^"]*")?\)/g;

/** References to documents that readers of this repository do not have. */
const FOREIGN: readonly RegExp[] = [
  /\b(?:execution|contract|temporal|design|batch-gateway|parts|people|overview|limits) ?§/,
  /§ ?\d/,
  /\bseed 00\d/i,
  /\.\.\/shared\b/,
];
/** Sections of RFCs are public. */
const PUBLIC = /\bRFC \d+ §[\d.]+/g;
/** Numbers such as `E7` from a list that is not in the repository; only tests ever had them. */
const CASE_ID = /\bE\d{1,2}\b/;
/** Reads data that only some machines have, and says so when it skips. */
const READS_LOCAL_DATA = ['test/e2e/batches.test.ts'];
/** They hold the patterns themselves. */
const ABOUT_CITATIONS = ['test/architecture/citations.ts', 'test/citations.test.ts'];

/** Every citation and relative link that leads nowhere, one sentence each with file and line. */
export function deadCitations(files: Files): string[] {
  const anchors = new Map<string, ReadonlySet<string>>();
  const exists = foldersAndFiles(files);
  const isDead = (target: string): boolean => {
    const [file = '', anchor] = target.split('#');
    if (!exists.has(file)) return true;
    if (anchor === undefined || !file.endsWith('.md')) return false;
    const known = anchors.get(file) ?? headingAnchors(files.get(file) ?? '');
    anchors.set(file, known);
    return !known.has(anchor);
  };
  return [...files].flatMap(([file, text]) =>
    ABOUT_CITATIONS.includes(file)
      ? []
      : targetsOf(file, text)
          .filter(({ target }) => isDead(target))
          .map(({ line, target }) => `${file}:${line}: ${target} does not exist`),
  );
}

/** Lines that refer to documents outside the repository, as `file:line: text`. */
export function foreignReferences(files: Files): string[] {
  return [...files]
    .filter(([file]) => !ABOUT_CITATIONS.includes(file))
    .flatMap(([file, text]) =>
      text
        .split('\n')
        .map((line, index) => ({ line, at: `${file}:${index + 1}` }))
        .filter(({ line }) => isForeign(file, line))
        .map(({ line, at }) => `${at}: ${line.trim()}`),
    );
}

/** The anchors that GitHub gives to the headings of a page. */
export function headingAnchors(page: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  const uses = new Map<string, number>();
  for (const [, heading = ''] of withoutCode(page).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = slugOf(heading);
    const earlier = uses.get(slug) ?? 0;
    uses.set(slug, earlier + 1);
    anchors.add(earlier === 0 ? slug : `${slug}-${earlier}`);
  }
  return anchors;
}

function slugOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, '')
    .replace(/ /g, '-');
}

interface Target {
  readonly line: number;
  /** Path from the root, with its anchor. */
  readonly target: string;
}

function targetsOf(file: string, text: string): Target[] {
  const isPage = file.endsWith('.md');
  const read = isPage ? withoutCode(text) : text;
  const links = isPage
    ? [...read.matchAll(MARKDOWN_LINK)].map(({ 1: link = '', index }) => ({
        index,
        target: link.startsWith('#') ? `${file}${link}` : fromRoot(file, link),
      }))
    : [];
  const citations = [...read.matchAll(CITATION)].map(({ 0: target, index }) => ({ index, target }));
  // A link inside docs/ may itself look like a citation: it counts once, as a link.
  const inLinks = (index: number): boolean => /\]\(<?(?:\.\.?\/)*$/.test(read.slice(0, index));
  return [...links, ...citations.filter(({ index }) => !isPage || !inLinks(index))].map(
    ({ index, target }) => ({ target, line: read.slice(0, index).split('\n').length }),
  );
}

function fromRoot(file: string, link: string): string {
  const [target = '', anchor] = link.split('#');
  const joined = path.posix.normalize(path.posix.join(path.posix.dirname(file), target));
  const plain = joined.endsWith('/') ? joined.slice(0, -1) : joined;
  return anchor === undefined ? plain : `${plain}#${anchor}`;
}

/** Fenced code with its lines kept empty, so that line numbers stay true. */
function withoutCode(page: string): string {
  return page.replace(/^(```|~~~)[\s\S]*?^\1/gm, (block) => block.replace(/[^\n]/g, ''));
}

function foldersAndFiles(files: Files): ReadonlySet<string> {
  const known = new Set<string>(['.']);
  for (const file of files.keys()) {
    for (let name = file; name !== '.'; name = path.posix.dirname(name)) known.add(name);
  }
  return known;
}

function isForeign(file: string, line: string): boolean {
  const text = line.replace(PUBLIC, '');
  if (file.startsWith('test/') && CASE_ID.test(text)) return true;
  return FOREIGN.some(
    (pattern) =>
      pattern.test(text) && !(READS_LOCAL_DATA.includes(file) && pattern.source.includes('shared')),
  );
}
