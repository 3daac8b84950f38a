import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureBuilt } from '../../cli/prepare.js';
import { dataDirHolder } from '../../embedded/locks/data-dir-lock';
import { packageRoot } from '../../platform/package-root';
import { installPackage } from '../support/install-package';
import { until } from '../support/until';

/**
 * The package as its users get it: packed, installed into an empty folder without install scripts (as npm
 * 12 does by default), and used there. The programs below are type-checked with the package's own types.
 */
const LIMIT_MS = 180_000;

const COMMONJS = `
import { startStack, type RunningStack } from 'nightshift/testing';

async function runBatch({ baseUrl }: RunningStack): Promise<string> {
  const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: { model: 'm', messages: [] } };
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([JSON.stringify(line)]), 'input.jsonl');
  const file = await (await fetch(baseUrl + '/files', { method: 'POST', body: form })).json();
  const request = { input_file_id: file.id, endpoint: line.url, completion_window: '24h' };
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(request) };
  let batch = await (await fetch(baseUrl + '/batches', init)).json();
  while (['validating', 'in_progress', 'finalizing'].includes(batch.status)) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    batch = await (await fetch(baseUrl + '/batches/' + batch.id)).json();
  }
  return batch.status;
}

async function main(): Promise<void> {
  const stack = await startStack({ settings: { concurrency: { global: 4 } } });
  try {
    console.log(await runBatch(stack), stack.dataDir);
  } finally {
    await stack.stop();
  }
}

void main();
`;

const MODULE = `
import { startStack, type StartStackOptions } from 'nightshift/testing';

const options: StartStackOptions = { dataDir: 'kept', gatewayUrl: 'http://127.0.0.1:1', port: undefined };
const stack = await startStack(options);
const { status } = await fetch(stack.baseUrl + '/models/none');
console.log('answered', status);
// Not stopped: the stack ends with this process.
`;

const WRONG = `
import { startStack } from 'nightshift/testing';
void startStack({ prot: 8000 });
`;

let folder: string;
let installed: Awaited<ReturnType<typeof installPackage>>;

beforeAll(async () => {
  ensureBuilt();
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-package-'));
  // PostgreSQL runs as another user when we are root.
  fs.chmodSync(folder, 0o711);
  installed = await installPackage(folder);
}, LIMIT_MS);

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

describe('the npm package', () => {
  it('contains what runs, and neither sources nor tests nor paths of this machine', () => {
    const { files, packedBytes } = installed;
    expect(packedBytes).toBeLessThan(1_500_000);
    const folders = new Set(files.map((file) => file.split('/')[0]));
    expect([...folders].sort()).toEqual(
      [
        'LICENSE',
        'README.md',
        'cli',
        'dist',
        'examples',
        'package.json',
        'proto',
        'storage',
      ].sort(),
    );
    const types = files.filter((file) => file.endsWith('.ts'));
    expect(types).toEqual(['dist/embedded/start-stack.d.ts']);
    expect(files.filter((file) => file.endsWith('.map'))).toEqual([]);
    const bundle = fs.readFileSync(path.join(installed.path, 'dist', 'workflow-bundle.js'), 'utf8');
    const map = Buffer.from(bundle.slice(bundle.lastIndexOf('base64,') + 7), 'base64').toString();
    expect(map).toContain('"mappings"');
    // Not `toContain`, which would print megabytes.
    expect([bundle, map].map((text) => text.includes(packageRoot()))).toEqual([false, false]);
  });

  it(
    'runs the demo from an empty folder, and does not change itself',
    async () => {
      const before = filesBelow(installed.path);
      const { code, output } = await run('npx', ['--no-install', 'nightshift', 'demo']);
      expect({ code, output }).toMatchObject({
        code: 0,
        output: expect.stringMatching(/200 (of 200 )?completed|completed.*200/s),
      });
      expect(filesBelow(installed.path)).toEqual(before);
    },
    LIMIT_MS,
  );

  it(
    'exports startStack() to CommonJS and ES modules, with types',
    async () => {
      write('commonjs.cts', COMMONJS);
      write('module.mts', MODULE);
      write('wrong.cts', WRONG);
      const { output: errors } = await compile();
      // Nothing but the misspelled option is an error.
      expect(errors.trim().split('\n')).toEqual([
        expect.stringContaining('wrong.cts(3,19): error'),
      ]);
      expect(errors).toContain("'prot' does not exist");

      const [commonjs, module] = await Promise.all([
        run(process.execPath, ['commonjs.cjs']),
        run(process.execPath, ['module.mjs']),
      ]);
      const [status, dataDir = ''] = commonjs.output.trim().split(' ');
      expect({ ...commonjs, status }).toMatchObject({ code: 0, status: 'completed' });
      expect(fs.existsSync(dataDir)).toBe(false);

      expect(module).toEqual({ code: 0, output: 'answered 404\n' });
      const kept = path.join(folder, 'kept');
      expect(fs.existsSync(path.join(kept, 'run', 'config.json'))).toBe(true);
      // This program did not stop its stack, which ends because the program has ended.
      await until(() => dataDirHolder(kept) === null, 30_000, 'the end of the stack');
    },
    LIMIT_MS,
  );
});

function write(name: string, text: string): void {
  fs.writeFileSync(path.join(folder, name), text);
}

/** Compiles the programs as a strict project does that has no packages but this one. */
function compile(): Promise<Ended> {
  const compilerOptions = {
    module: 'node20',
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable'],
    strict: true,
    exactOptionalPropertyTypes: true,
    types: [],
  };
  write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['*.cts', '*.mts'] }));
  const tsc = path.join(packageRoot(), 'node_modules', 'typescript', 'bin', 'tsc');
  return run(process.execPath, [tsc, '-p', '.', '--pretty', 'false']);
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a program in the folder of the installation; its output is what it wrote to stdout. */
function run(command: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code !== 0 && output.stderr !== '') console.warn(output.stderr);
      resolve({ code, output: output.stdout });
    });
  });
}

function filesBelow(root: string): string[] {
  return fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
}
