'use strict';

/**
 * Compiles core/assembly/ to WebAssembly and writes the result as a module, core/openai/line-index-program.ts. So the
 * program is part of the sources for tests, builds and packages, and nothing has to find and read a file. `--check`
 * compares instead: the same sources and the same compiler give the same bytes.
 */
const fs = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..');
const SOURCE = 'core/assembly/line-index.ts';
const MODULE = path.join(ROOT, 'core/openai/line-index-program.ts');
const OPTIONS = ['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd'];
/** Pages of 64 KiB: lines of up to 1 MiB need no more. */
const MEMORY = ['--initialMemory', '17'];

async function compiled() {
  const { default: asc } = await import('assemblyscript/asc');
  let program;
  const { error, stderr } = await asc.main(
    [SOURCE, ...OPTIONS, ...MEMORY, '--baseDir', ROOT, '--outFile', 'program.wasm'],
    { writeFile: (_name, bytes) => void (program = Buffer.from(bytes)) },
  );
  if (error) throw new Error(`${SOURCE} cannot be compiled:\n${stderr.toString()}`);
  return program;
}

function moduleOf(program) {
  return `/**
 * core/assembly/ as WebAssembly, ${program.length} bytes in base64. \`npm run assembly\` writes this file, and a test checks that it is
 * current.
 */
export const LINE_INDEX_PROGRAM =
  '${program.toString('base64')}';
`;
}

async function main() {
  const text = moduleOf(await compiled());
  if (!process.argv.includes('--check')) return fs.writeFileSync(MODULE, text);
  if (fs.readFileSync(MODULE, 'utf8') === text) return;
  throw new Error('core/openai/line-index-program.ts is not current: run `npm run assembly`');
}

main().catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
