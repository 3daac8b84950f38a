import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { deadCitations, foreignReferences, headingAnchors } from './architecture/citations';

const ROOT = path.resolve(__dirname, '..');
const OURS = /\.(ts|js|mjs|py|go|md|sql|ya?ml|json)$|^(Dockerfile|\.ci\/run)$/;
const NOT_OURS = /(^|\/)package-lock\.json$|^test\/replay\/histories\//;

describe('citations', () => {
  it('name pages and headings that exist', () => {
    expect(deadCitations(repository())).toEqual([]);
  });

  it('name nothing outside this repository', () => {
    expect(foreignReferences(repository())).toEqual([]);
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
    ['a section of a foreign page', 'core/a.ts', '// (execution §3)'],
    ['a section alone', 'api/b/a.ts', '// its §4'],
    ['a seed document', 'docs/a.md', 'as Seed 000 says'],
    ['the id of a case', 'test/e2e/a.test.ts', "it('E21 fails', …)"],
    ['a folder beside the repository', 'README.md', 'see ../shared/data'],
  ])('sees %s', (_what, file, text) => {
    expect(foreignReferences(new Map([[file, text]]))).toEqual([`${file}:1: ${text}`]);
  });

  it('accepts sections of RFCs, and letters with numbers outside of tests', () => {
    const files = { 'api/a.ts': '// RFC 9110 §5.5; E7 and E10' };
    expect(foreignReferences(new Map(Object.entries(files)))).toEqual([]);
  });
});

/** Text of every tracked file; empty for formats that hold no citations. */
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
