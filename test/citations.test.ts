import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { deadCitations, foreignReferences, headingAnchors } from './architecture/citations';

const ROOT = path.resolve(__dirname, '..');
/** One file for each room that still cites foreign documents, with the number of such lines. */
const TODO = path.join(__dirname, 'citations-todo');
const OURS = /\.(ts|js|mjs|py|go|md|sql|ya?ml|json)$|^(Dockerfile|\.ci\/run)$/;
const NOT_OURS = /(^|\/)package-lock\.json$|^test\/replay\/histories\//;

describe('citations', () => {
  it('name pages and headings that exist', () => {
    expect(deadCitations(repository())).toEqual([]);
  });

  it('name nothing outside this repository', () => {
    const found = foreignReferences(repository());
    const allowed = allowances();
    const rooms = [...new Set([...found.keys(), ...allowed.keys()])].sort();
    expect(rooms.flatMap((room) => judge(room, found.get(room) ?? [], allowed.get(room)))).toEqual(
      [],
    );
  });
});

describe('docs/design/README.md', () => {
  it('links to every design page', () => {
    const index = read('docs/design/README.md');
    const pages = fs
      .readdirSync(path.join(ROOT, 'docs/design'))
      .filter((name) => name !== 'README.md');
    expect(pages.filter((name) => !index.includes(`](${name})`))).toEqual([]);
  });

  it('indexes pages that can be read in one sitting', () => {
    const pages = fs.readdirSync(path.join(ROOT, 'docs/design'));
    const lines = (name: string): number => read(`docs/design/${name}`).split('\n').length;
    expect(pages.filter((name) => lines(name) > 500)).toEqual([]);
  });
});

describe('the check of citations', () => {
  const page = '# Title\n\n## A `b` c, d\n\n## Same\n\n```md\n## In code\n```\n\n## Same\n';

  it('makes anchors from headings as GitHub does', () => {
    expect([...headingAnchors(page)]).toEqual(['title', 'a-b-c-d', 'same', 'same-1']);
  });

  it.each([
    ['a page that does not exist', 'core/a.ts', '// docs/design/none.md', ['core/a.ts:1']],
    ['a heading that does not exist', 'core/a.ts', '\n// docs/p.md#none', ['core/a.ts:2']],
    ['a link to a page that does not exist', 'docs/a.md', '[x](none.md)', ['docs/a.md:1']],
    ['a link to a heading that does not exist', 'docs/a.md', '[x](p.md#none)', ['docs/a.md:1']],
    ['a link within a page to no heading', 'docs/a.md', '# A\n[x](#b)', ['docs/a.md:2']],
    ['a link that breaks over two lines', 'docs/a.md', '[x\ny](p.md#none)', ['docs/a.md:1']],
    ['nothing in a citation that resolves', 'core/a.ts', '// (docs/p.md#same-1).', []],
    ['nothing in links that resolve', 'docs/a.md', '[x](p.md#same) [y](../docs) [z](#a)\n# A', []],
    ['nothing in code', 'docs/a.md', '```sh\n[x](none.md)\n```', []],
  ])('sees %s', (_what, file, text, expected) => {
    const found = deadCitations(new Map([...Object.entries({ 'docs/p.md': page, [file]: text })]));
    expect(found.map((sentence) => sentence.split(': ')[0])).toEqual(expected);
  });

  it.each([
    ['a section of a foreign page', 'core/a.ts', '// (execution §3)', 'core'],
    ['a section alone', 'api/b/a.ts', '// its §4', 'api'],
    ['a seed document', 'docs/a.md', 'as Seed 000 says', 'docs'],
    ['the id of a case', 'test/e2e/a.test.ts', "it('E21 fails', …)", 'test.e2e'],
    ['a folder beside the repository', 'README.md', 'see ../shared/data', 'root'],
  ])('sees %s', (_what, file, text, room) => {
    expect([...foreignReferences(new Map([[file, text]])).keys()]).toEqual([room]);
  });

  it('accepts sections of RFCs, and letters with numbers outside of tests', () => {
    const files = { 'api/a.ts': '// RFC 9110 §5.5; E7 and E10' };
    expect(foreignReferences(new Map(Object.entries(files))).size).toBe(0);
  });

  it('asks for a lower number as soon as a room has fewer than listed', () => {
    expect(judge('core', ['a', 'b'], 2)).toEqual([]);
    expect(judge('core', ['a', 'b'], 1)[0]).toContain('core: 2 lines');
    expect(judge('core', ['a'], 2)[0]).toContain('write 1 into test/citations-todo/core.txt');
    expect(judge('core', [], 2)[0]).toContain('delete test/citations-todo/core.txt');
  });
});

function judge(room: string, found: readonly string[], allowed = 0): string[] {
  const file = `test/citations-todo/${room}.txt`;
  if (found.length > allowed) {
    const what = `${room}: ${found.length} lines cite documents outside the repository, at most ${allowed} may (${file})`;
    return [[what, ...found].join('\n')];
  }
  if (found.length === allowed) return [];
  const remedy = found.length === 0 ? `delete ${file}` : `write ${found.length} into ${file}`;
  return [`${room}: fewer lines than listed cite documents outside the repository: ${remedy}`];
}

function allowances(): Map<string, number> {
  const files = fs.existsSync(TODO) ? fs.readdirSync(TODO) : [];
  return new Map(
    files.map((name) => [
      name.replace(/\.txt$/, ''),
      Number(fs.readFileSync(path.join(TODO, name), 'utf8')),
    ]),
  );
}

/** Text of every tracked file that we wrote ourselves. */
function repository(): Map<string, string> {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' });
  const names = listed.split('\0').filter((name) => name !== '' && !NOT_OURS.test(name));
  return new Map(names.filter(exists).map((name) => [name, OURS.test(name) ? read(name) : '']));
}

function exists(name: string): boolean {
  return fs.existsSync(path.join(ROOT, name));
}

function read(name: string): string {
  return fs.readFileSync(path.join(ROOT, name), 'utf8');
}
