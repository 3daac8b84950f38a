import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ensureBuilt } from '../../cli/prepare.js';

const PROGRAM = join(__dirname, 'run.js');
/** Always the same ones: a failure here can be repeated. `npm run fuzz -- --gateway` sends others. */
const REQUESTS = ['--gateway', '--seed', '1', '--requests', '1000'];

it('a gateway withstands random requests to model servers that answer at random', async () => {
  ensureBuilt();
  const child = spawn(process.execPath, [PROGRAM, ...REQUESTS], { stdio: 'pipe' });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  }
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect({ code, said }).toEqual({ code: 0, said: expect.stringContaining('nothing wrong\n') });
}, 90_000);
