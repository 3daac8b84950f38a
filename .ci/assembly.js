'use strict';

/**
 * Compiles the programs of core/assembly/ to WebAssembly and writes each as a module of its caller's folder. So they are part
 * of the sources for tests, builds and packages, and nothing has to find and read a file. `--check` compares instead:
 * the same sources and the same compiler give the same bytes.
 */
const fs = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..');
const OPTIONS = ['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd'];
/** Each program with its pages of memory, of 64 KiB. */
const PROGRAMS = [
  // Six for tables, 16 for a text of 1 MiB, and one behind it.
  { name: 'line-index', folder: 'core/openai', pages: 23 },
  // An answer of up to 1 MiB, and three times as much for what is made of it. Untouched pages cost nothing.
  { name: 'answer-index', folder: 'core/openai', pages: 66 },
  // Grows once, for the sources and windows of a merge.
  { name: 'frame-run', folder: 'core/journal', pages: 1 },
];

async function compiled({ name, pages }) {
  const source = `core/assembly/${name}.ts`;
  const { default: asc } = await import('assemblyscript/asc');
  let program;
  const memory = ['--initialMemory', String(pages)];
  const { error, stderr } = await asc.main(
    [source, ...OPTIONS, ...memory, '--baseDir', ROOT, '--outFile', 'program.wasm'],
    { writeFile: (_name, bytes) => void (program = Buffer.from(bytes)) },
  );
  if (error) throw new Error(`${source} cannot be compiled:\n${stderr.toString()}`);
  return program;
}

function moduleOf(name, program) {
  const constant = `${name.toUpperCase().replace('-', '_')}_PROGRAM`;
  return `/**
 * core/assembly/ as WebAssembly, ${program.length} bytes in base64. \`npm run assembly\` writes this file, and a test checks that it is
 * current.
 */
export const ${constant} =
  '${program.toString('base64')}';
`;
}

async function main() {
  for (const program of PROGRAMS) {
    const file = `${program.folder}/${program.name}-program.ts`;
    const text = moduleOf(program.name, await compiled(program));
    if (!process.argv.includes('--check')) fs.writeFileSync(path.join(ROOT, file), text);
    else if (fs.readFileSync(path.join(ROOT, file), 'utf8') !== text) {
      throw new Error(`${file} is not current: run \`npm run assembly\``);
    }
  }
}

main().catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
