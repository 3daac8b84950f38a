import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasS3Objects, s3Component, s3Settings } from '../../../embedded/s3/s3-component';
import { openRunState } from '../../../embedded/supervision/run-state';
import { createSupervisor, type Supervisor } from '../../../embedded/supervision/supervisor';
import { freePort } from '../../support/free-port';
import { describeWithGoTool, findGoTool, GO_TOOL_MS } from '../../support/go-tool';

describeWithGoTool('versitygw', 'the embedded S3 server', () => {
  let program: string;
  let folder: string;
  let port: number;
  let supervisor: Supervisor;

  beforeAll(async () => {
    program = (await findGoTool('versitygw')) ?? '';
  }, GO_TOOL_MS);
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nightshift-s3-'));
    chmodSync(folder, 0o700);
    port = await freePort();
    supervisor = createSupervisor({
      logs: folder,
      state: openRunState(folder),
      onLine: () => undefined,
      onEvent: () => undefined,
    });
  });
  afterEach(async () => {
    await supervisor.stop(() => undefined);
    rmSync(folder, { recursive: true });
  });

  const component = () => s3Component({ program, folder: join(folder, 's3'), port });

  it('becomes ready, refuses requests without its key, and keeps the key to its owner', async () => {
    expect(hasS3Objects(join(folder, 's3'))).toBe(false);
    const spec = component();
    await supervisor.launch(spec);
    const { secret_access_key_file: file, endpoint } = s3Settings(join(folder, 's3'), port) as {
      secret_access_key_file: string;
      endpoint: string;
    };
    expect((await fetch(`${endpoint}/nightshift?list-type=2`)).status).toBe(403);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const secret = readFileSync(file, 'utf8').trim();
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    expect(spec.args.join(' ')).not.toContain(secret);
    expect(hasS3Objects(join(folder, 's3'))).toBe(true);
    expect(component().env['ROOT_SECRET_KEY']).toBe(secret);
  });
});
