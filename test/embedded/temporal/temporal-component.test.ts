import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { temporalComponent } from '../../../embedded/temporal/temporal-component';

const folder = mkdtempSync(join(tmpdir(), 'nightshift-temporal-'));
afterAll(() => rmSync(folder, { recursive: true }));

function argumentsWith(uiPort: number | null): readonly string[] {
  const binary = { path: 'temporal', serverVersion: '1.29.1' } as Parameters<
    typeof temporalComponent
  >[0]['binary'];
  return temporalComponent({ binary, folder, port: 7233, uiPort, env: {} }).args;
}

it('starts Temporal with its UI on its own port, or without a UI', () => {
  expect(argumentsWith(8233).join(' ')).toContain('--ui-port 8233');
  expect(argumentsWith(8233)).not.toContain('--headless');
  expect(argumentsWith(null)).toContain('--headless');
  expect(argumentsWith(null)).not.toContain('--ui-port');
});

it('starts Temporal on loopback only', () => {
  expect(argumentsWith(null).join(' ')).toContain('--ip 127.0.0.1');
});
